"""Weighing evidence: the rules every agent shares."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from perdure.agents._case import About, Case, Trace
from perdure.model.identity import Evidence

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def case() -> Case:
    return Case(
        "ren", lambda conversation, evidence: About(prompted=conversation != "new", home="/srv"), profile="work"
    )


def read(record: Mapping[str, Any]) -> Trace | None:
    if record.get("about") == "weather":
        return None
    return Trace(conversation=record.get("id"), left=bool(record.get("left")))


def hooked(*newest_first: Mapping[str, Any] | bytes) -> tuple[Case, list[tuple[str | None, bool]]]:
    weighed = case()
    raw = [each if isinstance(each, bytes) else msgspec.json.encode(each) for each in newest_first]
    records = [(NOW - timedelta(seconds=place), record) for place, record in enumerate(raw)]
    return weighed, [(each.conversation, each.certain) for each in weighed.hooked(records, read)]


@pytest.mark.parametrize(
    ("records", "found", "left"),
    [
        ((), [], set()),
        (({"id": "a"},), [("a", True)], set()),
        (({"id": "b"}, {"id": "a", "left": True}, {"id": "a"}), [("b", True)], set()),
        (({"id": "a", "left": True}, {"id": "a"}), [], {"a"}),
        (({"id": "a", "left": True}, {"id": "b"}), [], {"a", "b"}),
        ((b"{cut", {"id": "a"}), [("a", False)], set()),
        (({"about": "weather"}, {"id": "a"}), [("a", True)], set()),
        (({"id": "b", "left": True}, b"", {"id": "a"}), [], {"a", "b"}),
    ],
)
def test_hooks_name_where_the_agent_is_or_what_it_left(
    records: tuple[Mapping[str, Any] | bytes, ...], found: list[tuple[str, bool]], left: set[str]
) -> None:
    weighed, said = hooked(*records)
    assert said == found
    assert weighed.left == left


def test_a_claim_carries_what_is_known_of_the_conversation_and_the_reasons_so_far() -> None:
    weighed = case()
    weighed.note("first")
    weighed.note("first")
    claim = weighed.claim("new", Evidence.REGISTRY, certain=True)
    assert (claim.agent, claim.profile, claim.prompted, claim.home) == ("ren", "work", False, "/srv")
    assert claim.because == ("first",)
    *_, last = weighed.closed([claim])
    assert (last.conversation, last.because) == (None, ("first",))


def test_a_command_line_stands_before_guesses_until_it_was_left() -> None:
    guess = (NOW, "b")
    assert [each.conversation for each in case().launched("a", [guess])] == ["a", "b"]
    gone = case()
    found = gone.launched("a", [guess], gone=True)
    assert [(each.conversation, each.certain) for each in found] == [("b", False), ("a", False)]
    assert gone.left == {"a"}
    lost = case().launched("a", [], lost=True)
    assert [(each.conversation, each.certain) for each in lost] == [("a", False)]


def test_what_hooks_say_was_left_makes_the_command_line_doubtful() -> None:
    weighed = case()
    weighed.hooked([(NOW, msgspec.json.encode({"id": "a", "left": True}))], read)
    (claim,) = weighed.launched("a", [])
    assert not claim.certain
    assert weighed.closed([claim])[-1].left == ("a",)
