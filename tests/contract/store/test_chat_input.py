"""What people and gateways hand in that makes no sense: a sentence, whichever database it is, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from perdure import errors
from perdure.chats.service import Chats
from perdure.model.chat import Turn
from perdure.model.config import Config
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_source, a_turn

ALICE = a_source("alice")


@pytest.fixture
def chats(threaded: Store) -> Chats:
    """Chats of a gateway."""
    return Chats(threaded.chats, Config(), Clock())


@pytest.mark.parametrize("typed", ["\ud800", "a\0b", "caf\udce9", "\0"])
def test_what_no_database_takes_is_no_chat(chats: Chats, typed: str) -> None:
    verbs: tuple[Callable[[], object], ...] = (
        lambda: chats.get(ALICE, typed),
        lambda: chats.find(ALICE, typed),
        lambda: chats.resume(ALICE, typed),
        lambda: chats.switch(ALICE, typed),
        lambda: chats.load(typed),
        lambda: chats.append(typed, a_turn()),
        lambda: chats.rewrite(typed, 1),
        lambda: chats.undo(typed),
        lambda: chats.compress(typed, [a_turn()]),
        lambda: chats.grant(ALICE, typed, a_source("bob")),
        lambda: chats.set_title(ALICE, typed, "Plan"),
        lambda: chats.add_tokens(typed, "model", input=1),
    )
    for verb in verbs:
        with pytest.raises(errors.ChatNotFound) as caught:
            verb()
        assert caught.value.message.isprintable()
    assert chats.touch(typed) is False


@pytest.mark.parametrize(
    "changes",
    [
        {"role": 5},
        {"at": datetime(2026, 11, 15)},  # noqa: DTZ001
        {"content": float("nan")},
        {"content": {"deep": [1.0, float("inf")]}},
        {"content": b"raw"},
        {"tool_calls": ({"input": bytearray(b"raw")},)},
        {"extra": {"raw": b"raw"}},
    ],
)
def test_what_would_not_come_back_as_it_was_is_not_written_down(chats: Chats, changes: dict[str, Any]) -> None:
    id = chats.open(ALICE).id
    chats.append(id, a_turn("one"))
    wrong: Turn = a_turn(**changes)
    for verb in (
        chats.append,
        lambda id, turn: chats.rewrite(id, 1, turn),
        lambda id, turn: chats.compress(id, [turn]),
    ):
        with pytest.raises(errors.UsageError, match=r"\.$"):
            verb(id, wrong)
    assert [turn.content for turn in chats.load(id).turns] == ["one"]
    assert chats.open(ALICE).id == id


@pytest.mark.parametrize("start", [0, -5, 5, 99])
def test_nothing_is_rewritten_where_nothing_can_be(chats: Chats, start: int) -> None:
    id = chats.open(ALICE).id
    chats.append(id, a_turn("one"), a_turn("two"), a_turn("three"))
    with pytest.raises(errors.UsageError, match="positions from 1 to 4"):
        chats.rewrite(id, start, a_turn("new"))
    assert [turn.content for turn in chats.load(id).turns] == ["one", "two", "three"]
    assert chats.rewrite(id, 4, a_turn("four")) == 5
    assert [turn.content for turn in chats.load(id).turns] == ["one", "two", "three", "four"]


def test_less_than_nothing_is_not_read(chats: Chats) -> None:
    id = chats.open(ALICE).id
    chats.append(id, a_turn())
    assert chats.load(id, limit=0).turns == ()
    with pytest.raises(errors.UsageError, match="-1 turns"):
        chats.load(id, limit=-1)


def test_a_platform_nobody_knows_opens_nothing_and_the_known_ones_are_named(chats: Chats) -> None:
    for open_one in (chats.open, chats.reset):
        with pytest.raises(errors.UsageError, match=r"telegram may be meant\. There are: .*slack.*whatsapp"):
            open_one(a_source("alice", platform="telegramm"))
    assert not chats.has_any()


def test_a_time_without_a_zone_is_a_mistake_wherever_it_is_told(chats: Chats) -> None:
    naive = datetime(2026, 11, 15)  # noqa: DTZ001
    with pytest.raises(errors.UsageError, match="zone"):
        Chats(chats.store, Config(), lambda: naive).open(ALICE)
    for when in ({"since": naive}, {"until": naive}):
        with pytest.raises(errors.UsageError, match="zone"):
            chats.search(ALICE, "tiles", **when)  # type: ignore[arg-type]
