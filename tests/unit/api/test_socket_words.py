"""What is said over the WebSocket: understood, or answered with a sentence."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api import socket_words as words
from perdure.api.errors import ReadOnly
from perdure.errors import UsageError
from perdure.model.event import Event, EventKind, Lagged, StoredEvent
from perdure.model.terminal import Closed, Printed, Resized, Screen

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
ops = st.sampled_from(["subscribe", "open", "input", "take_size", "release_size", "close", "ping", "", "x"])
fields = st.fixed_dictionaries(
    {"op": ops},
    optional=dict.fromkeys(("run", "id", "text", "keys", "paste", "cols", "rows", "after", "more"), anything),
)


@given(st.text() | anything.map(json.dumps) | fields.map(json.dumps))
def test_whatever_is_said_is_understood_or_refused(message: str) -> None:
    with suppress(UsageError):
        assert isinstance(words.read(message), words.Asked)


@pytest.mark.parametrize(
    ("message", "asked"),
    [
        ({"op": "subscribe", "after": 41}, words.Subscribe(after=41)),
        ({"op": "subscribe", "after": None}, words.Subscribe()),
        ({"op": "open", "run": "r7"}, words.Open(run="r7")),
        ({"op": "input", "run": "r7", "id": 1, "text": ""}, words.Input(run="r7", id=1, text="")),
        ({"op": "input", "run": "r7", "keys": ["C-c"]}, words.Input(run="r7", keys=("C-c",))),
        ({"op": "take_size", "run": "r7", "cols": 80, "rows": 24}, words.TakeSize(run="r7", cols=80, rows=24)),
        ({"op": "ping"}, words.Ping()),
    ],
)
def test_what_can_be_asked(message: dict[str, object], asked: words.Asked) -> None:
    assert words.read(json.dumps(message)) == asked


def test_what_a_terminal_shows() -> None:
    screen = Screen(cols=2, rows=1, cursor=(1, 0), title="t", alternate=True, text="\x1b[mé")
    assert json.loads(words.frame("r1", screen)) == {
        "type": "screen",
        "run": "r1",
        "cols": 2,
        "rows": 1,
        "cursor": {"x": 1, "y": 0},
        "title": "t",
        "alternate": True,
        "text": "\x1b[mé",
    }
    said = [words.frame("r1", each) for each in (Printed(text="x"), Resized(cols=1, rows=2), Closed(why="gone"))]
    assert [json.loads(each)["type"] for each in said] == ["output", "resized", "closed"]


def test_an_event_is_put_into_words_once_and_never_mistaken_for_another() -> None:
    events = words.Events(most=2)
    at = datetime(2026, 11, 15, tzinfo=UTC)

    def stored(seq: int, title: str) -> StoredEvent:
        return StoredEvent(seq=seq, event=Event(kind=EventKind.TITLE_CHANGED, at=at, data={"title": title}))

    first = stored(7, "a")
    assert events.told(first) is events.told(first)
    # What could not be stored has the number 0, each time.
    for title in ("b", "c", "token=hunter2222"):
        told = json.loads(events.told(stored(0, title)))
        assert told["event"]["data"]["title"] == (title if len(title) == 1 else "token=***")
    for seq in (8, 9, 10):
        events.told(stored(seq, "d"))
    assert json.loads(events.told(first))["event"]["seq"] == 7
    assert json.loads(events.told(Lagged(after=3))) == {"type": "lagged", "after": 3}


def test_an_error_says_what_it_is_about() -> None:
    said = json.loads(words.error(ReadOnly(), run="r1"))
    assert (said["type"], said["code"], said["run"]) == ("error", "READ_ONLY", "r1")
    assert said["message"]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("{", "The message is no JSON that can be read."),
        ("[]", "The message has to be an object, not a list."),
        ("{}", "`op` is missing; it has to be one of {ops}."),
        ('{"op":"dance"}', "`op` has to be one of {ops}."),
        ('{"op":7}', "`op` has to be one of {ops}."),
        ('{"op":"open"}', "`run` is missing."),
        ('{"op":"open","run":7}', "`run` has to be a text, not a whole number."),
        ('{"op":"open","run":"r1","more":1}', "There is no field `more`."),
        ('{"op":"subscribe","after":-1}', "`after` has to be at least 0."),
        ('{"op":"input","run":"r1"}', "The message: exactly one of `text`, `keys` and `paste` is typed."),
    ],
)
def test_what_cannot_be_understood_is_said_in_words(message: str, said: str) -> None:
    ops = "subscribe, open, input, take_size, release_size, close, ping"
    with pytest.raises(UsageError) as refused:
        words.read(message)
    assert refused.value.message == said.format(ops=ops)
