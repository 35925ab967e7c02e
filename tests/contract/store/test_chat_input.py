"""What people and gateways hand in that makes no sense: a sentence, whichever database it is, and nothing is changed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.chats.service import Chats
from perdure.model.chat import ResetMode, ResetPolicy, Tokens, Turn
from perdure.model.config import ChatsConfig, Config
from perdure.store.store import Store
from tests.builders import NOON
from tests.contract.store.chats import Clock, a_source, a_turn, nested

ALICE = a_source("alice")
#: Two halves of a character that are two characters in Python, and one to whoever reads JSON.
PAIR = "\ud83d\ude00"
HALVES = ("\ud83d", "\ude00\ud83d", "\ud83d \ude00", "\ud83d\ud83d", "\udcff\udcfe", "\U0001f600")


class _Colour(Enum):
    RED = "red"


def holds_itself() -> list[Any]:
    """A list that JSON would never be done with, whichever way it is gone through."""
    endless: list[Any] = []
    endless += [endless, endless]
    return endless


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
        {"tool_name": 5},
        {"tool_call_id": 7},
        {"tool_call_id": b"x"},
        {"model": 5},
        {"tokens": 1.5},
        {"tokens": "5"},
        {"tokens": True},
        {"tokens": float("nan")},
        {"hidden": "yes"},
        {"tool_calls": None},
        {"tool_calls": {"a": 1}},
        {"tool_calls": "text"},
        {"attachments": ("x",)},
        {"attachments": "x"},
        {"attachments": [[("a", 1)]]},
        {"extra": [1]},
        {"extra": None},
        {"extra": {1: "one"}},
        {"content": {"one": {1: 2}}},
        {"content": {"a", "b"}},
        {"content": [NOON]},
        {"content": Decimal("1.5")},
        {"extra": {"id": UUID(int=5)}},
        {"content": _Colour.RED},
        {"content": a_source()},
        {"content": object()},
        {"at": "2026"},
        {"at": None},
        {"at": datetime.min.replace(tzinfo=timezone(timedelta(hours=5)))},
        {"at": NOON.replace(tzinfo=timezone(timedelta(hours=5, seconds=7)))},
        {"content": nested(101)},
        {"content": nested(600)},
        {"extra": {"deep": nested(50_000)}},
        {"tool_calls": (holds_itself(),)},
        {"content": PAIR},
        {"content": [{"text": f"a{PAIR}b"}]},
        {"role": PAIR},
        {"tool_call_id": PAIR},
        {"extra": {PAIR: 1}},
    ],
    ids=lambda changes: next(iter(changes)),
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


def test_everything_json_can_say_comes_back_as_it_was(chats: Chats) -> None:
    id = chats.open(ALICE).id
    said = a_turn(
        [{"type": "text", "text": "hi"}, 1, -1.5, None, True, {"deep": nested(90)}, 10**30],
        tool_name="ls",
        tool_call_id="call",
        tool_calls=({"name": "ls", "input": {}},),
        attachments=({"path": "/home/dev/a.png"},),
        tokens=5,
        model="big",
        extra={"n": [1, [2, [3]]]},
        at=NOON.replace(tzinfo=timezone(timedelta(hours=5, minutes=30))),
    )
    chats.append(id, said)
    (back,) = chats.load(id).turns
    assert back == replace(said, position=1)


@pytest.mark.parametrize("text", HALVES, ids=ascii)
def test_halves_of_characters_that_are_no_pair_come_back_as_they_were(chats: Chats, text: str) -> None:
    id = chats.open(ALICE).id
    said = a_turn(text, role=text, tool_name=text, extra={text: [text]})
    chats.append(id, said)
    assert chats.load(id).turns == (replace(said, position=1),)


@pytest.mark.parametrize("wrong", [1.5, float("nan"), float("inf"), True, "5", None, -1, 1 << 63])
def test_only_whole_numbers_of_tokens_are_counted(chats: Chats, wrong: Any) -> None:
    id = chats.open(ALICE).id
    chats.add_tokens(id, "big", input=1, output=2)
    for counts in ({"input": wrong}, {"output": wrong}):
        with pytest.raises(errors.UsageError, match=r"[Tt]okens.*\.$"):
            chats.add_tokens(id, "big", **counts)
    for model in (5, None, b"big"):
        with pytest.raises(errors.UsageError, match=r"model.*\.$"):
            chats.add_tokens(id, model, input=1)  # type: ignore[arg-type]
    assert chats.open(ALICE).tokens == Tokens(input=1, output=2)


def test_tokens_never_become_more_than_can_be_counted(chats: Chats) -> None:
    id = chats.open(ALICE).id
    chats.add_tokens(id, "big", input=(1 << 63) - 1)
    with pytest.raises(errors.UsageError, match="tokens"):
        chats.add_tokens(id, "small", input=1)
    assert chats.open(ALICE).tokens.input == (1 << 63) - 1


@pytest.mark.parametrize("wrong", [{"start": 1.5}, {"start": "1"}, {"limit": 1.5}, {"limit": "1"}, {"start": None}])
def test_positions_are_whole_numbers(chats: Chats, wrong: dict[str, Any]) -> None:
    id = chats.open(ALICE).id
    chats.append(id, a_turn())
    with pytest.raises(errors.UsageError, match=r"whole number.*\.$"):
        chats.load(id, **wrong)


@pytest.mark.parametrize("shape", [list, dict])
def test_a_turn_too_deep_that_is_there_already_hinders_nobody(chats: Chats, shape: type) -> None:
    bob = a_source("bob")
    deep, other = chats.open(ALICE).id, chats.open(bob).id
    # As it was written down before it was refused.
    chats.store.append_turns(deep, [a_turn(nested(600, shape)), a_turn("tiles")], NOON)
    chats.append(other, a_turn("tiles"))
    assert [found.chat for found in chats.search(bob, "tiles")] == [other]
    assert [found.position for found in chats.search(ALICE, "tiles")] == [2]
    assert [found.position for found in chats.search(ALICE, "core")] == [1]
    assert len(chats.load(deep).turns) == 2


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


def test_however_much_is_asked_for_it_is_what_there_is(chats: Chats) -> None:
    id = chats.open(ALICE).id
    chats.append(id, a_turn("tiles"))
    huge = 10**30
    assert [chat.id for chat in chats.list(ALICE, active_within=timedelta.max, limit=huge)] == [id]
    assert [found.chat for found in chats.search(ALICE, "tiles", limit=huge)] == [id]
    assert len(chats.load(id, limit=huge).turns) == 1
    assert chats.load(id, start=huge).turns == ()
    assert len(chats.load(id, start=-huge).turns) == 1
    assert chats.list(ALICE, active_within=timedelta.min) == ()


@pytest.mark.parametrize("zone", ["Nope/Zone", "../../etc/passwd", "/etc/passwd", "a\0b"])
def test_a_zone_that_does_not_exist_is_a_sentence(chats: Chats, zone: str) -> None:
    with pytest.raises(errors.UsageError, match=r"zone.*\.$"):
        Chats(chats.store, Config(chats=ChatsConfig(zone=zone)), Clock())


@pytest.mark.parametrize("hour", [4.5, 4.0, "4", 24])
def test_an_hour_is_a_whole_number(chats: Chats, hour: Any) -> None:
    policy = ResetPolicy(mode=ResetMode.DAILY, at_hour=hour)
    other = Chats(chats.store, Config(chats=ChatsConfig(reset=policy)), Clock())
    other.open(ALICE)
    with pytest.raises(errors.UsageError, match="at_hour"):
        other.open(ALICE)
