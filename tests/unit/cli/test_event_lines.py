"""Events as they are shown: in one line, without secrets, whatever is in them."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.event_lines import event_line
from perdure.live.event_row import event_row
from perdure.model.event import Event, EventKind, StoredEvent
from tests.builders import NOON

KEY = "sk-" + "a1b2c3d4" * 4
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _event(kind: EventKind, run: str | None = "r3", **data: object) -> StoredEvent:
    return StoredEvent(seq=12, event=Event(kind=kind, at=NOON, run=run, server="laptop/1000/tmp/s", data=data))


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (
            _event(EventKind.STATE_CHANGED, **{"from": "idle", "to": "busy", "state": "busy", "cause": "hook:x"}),
            "r3     state_changed     idle -> busy cause=hook:x A hook of the agent's has told it.",
        ),
        (_event(EventKind.TITLE_CHANGED, title="new", was="old"), "title_changed     new was=old"),
        (_event(EventKind.RUN_CREATED, target="work:0.0", agent=None), "run_created       work:0.0"),
        (
            _event(EventKind.SAVED, None, snapshot="abc"),
            "-      saved             snapshot=abc server=laptop/1000/tmp/s",
        ),
    ],
)
def test_a_line_says_what_matters_first(event: StoredEvent, words: str) -> None:
    line = event_line(event)
    assert line.startswith("    12  ")
    assert line.endswith(words)


@pytest.mark.parametrize("kind", EventKind)
def test_keys_are_not_shown(kind: EventKind) -> None:
    event = _event(kind, title=f"title {KEY}", text=KEY, was={"deep": [KEY]}, target=KEY, **{"from": KEY})
    assert KEY not in event_line(event)
    assert KEY not in msgspec.json.encode(event_row(event)).decode()


@given(kind=st.sampled_from(EventKind), data=st.dictionaries(st.text(max_size=8), VALUES, max_size=4))
def test_anything_is_one_line_that_moves_no_cursor(kind: EventKind, data: dict[str, object]) -> None:
    event = StoredEvent(seq=1, event=Event(kind=kind, at=NOON, data=data))
    line = event_line(event)
    assert line.isprintable()
    row = event_row(event)
    assert (row.seq, row.kind) == (1, kind.value)
    # What a cause means is added to it, and nothing else.
    assert [name for name in row.data if name != "because"] == [name for name in data if name != "because"]
