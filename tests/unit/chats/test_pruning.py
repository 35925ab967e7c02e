"""Which chats are let go of, and which never."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.chats.pruning import choose
from perdure.model.chat import Chat, CloseReason, Kinship
from tests.builders import NOON, at
from tests.contract.store.chats import a_chat, a_source

OLD = at(-1)


def closed(id: str, **changes: object) -> Chat:
    """A chat that was used and closed before noon."""
    chat = a_chat(id, opened_at=at(-9), touched_at=OLD, closed_at=OLD, close_reason=CloseReason.ASKED, turns=1)
    return replace(chat, **changes)


def continuing(id: str, before: str, **changes: object) -> Chat:
    """A closed chat that goes on with another, made shorter."""
    return closed(id, follows=before, kinship=Kinship.CONTINUATION, **changes)


def ids(chats: tuple[Chat, ...]) -> list[str]:
    return [chat.id for chat in chats]


def test_only_what_was_neither_used_nor_closed_since_goes() -> None:
    chats = [
        closed("old"),
        closed("at the moment", touched_at=NOON),
        closed("used since", touched_at=at(1)),
        closed("closed since", closed_at=at(1)),
        a_chat("open", touched_at=OLD),
    ]
    assert ids(choose(chats, NOON).doomed) == ["old"]
    assert choose(chats, OLD).doomed == ()


def test_words_that_are_owed_are_kept_and_where_nothing_was_said_nothing_is_owed() -> None:
    idle = {"close_reason": CloseReason.IDLE}
    chats = [closed("owed", **idle), closed("silent", turns=0, **idle), closed("handed on", flushed_at=OLD, **idle)]
    choice = choose(chats, NOON)
    assert ids(choice.owed) == ["owed"]
    assert sorted(ids(choice.doomed)) == ["handed on", "silent"]


def test_what_is_owed_goes_where_nobody_hands_anything_on() -> None:
    owed = closed("owed", close_reason=CloseReason.IDLE)
    tried = closed("tried", close_reason=CloseReason.IDLE, flush_failures=3)
    choice = choose([owed, tried], NOON, owed=True)
    assert (sorted(ids(choice.doomed)), choice.owed) == (["owed", "tried"], ())


def test_what_has_jobs_running_is_kept_with_all_it_continues() -> None:
    chats = [
        closed("1"),
        continuing("2", "1", key="busy"),
        closed("3"),
        closed("busy but open", closed_at=None, key="busy"),
    ]
    choice = choose(chats, NOON, is_busy=lambda key: key == "busy")
    assert (ids(choice.doomed), ids(choice.busy), ids(choice.continued)) == (["3"], ["2"], ["1"])


def test_the_beginning_of_a_conversation_that_goes_on_is_kept() -> None:
    open_tip = a_chat("3", follows="2", kinship=Kinship.CONTINUATION)
    choice = choose([closed("1"), continuing("2", "1"), open_tip], NOON)
    assert choice.doomed == ()
    assert ids(choice.continued) == ["1", "2"]
    owed = continuing("2", "1", close_reason=CloseReason.DAILY)
    choice = choose([closed("1"), owed], NOON)
    assert (choice.doomed, ids(choice.continued), ids(choice.owed)) == ((), ["1"], ["2"])


def test_what_only_came_after_or_began_as_a_copy_keeps_nothing() -> None:
    for kinship in (Kinship.SUCCESSOR, Kinship.BRANCH):
        assert ids(choose([closed("1"), a_chat("2", follows="1", kinship=kinship)], NOON).doomed) == ["1"]


def test_a_conversation_that_is_over_goes_from_its_end() -> None:
    # Whenever each was used: a clock may have been wrong.
    chats = [closed("1", touched_at=at(-2)), continuing("2", "1", touched_at=at(-5)), continuing("3", "2")]
    assert ids(choose(chats, NOON).doomed) == ["3", "2", "1"]


def test_only_of_a_platform_when_one_is_named() -> None:
    chats = [closed("t"), closed("s", source=a_source(platform="slack"))]
    assert ids(choose(chats, NOON, platform="slack").doomed) == ["s"]
    assert choose(chats, NOON, platform="irc").doomed == ()


@st.composite
def crowds(draw: st.DrawFn) -> list[Chat]:
    """Some chats that follow from each other, or from themselves, or from what is not there."""
    names = [str(number) for number in range(draw(st.integers(0, 8)))]
    return [
        a_chat(
            name,
            touched_at=NOON + timedelta(seconds=draw(st.integers(-2, 1))),
            closed_at=draw(st.sampled_from([None, OLD, NOON])),
            close_reason=draw(st.sampled_from(list(CloseReason))),
            turns=draw(st.integers(0, 1)),
            flushed_at=draw(st.sampled_from([None, OLD])),
            follows=draw(st.sampled_from([None, "gone", *names])),
            kinship=draw(st.sampled_from([None, *Kinship])),
        )
        for name in names
    ]


@given(crowds())
def test_nothing_that_is_needed_ever_goes(chats: list[Chat]) -> None:
    choice = choose(chats, NOON)
    doomed = ids(choice.doomed)
    assert len(set(doomed)) == len(doomed)
    assert not set(doomed) & {*ids(choice.owed), *ids(choice.continued)}
    for chat in chats:
        if chat.id in doomed:
            assert not chat.is_open
            assert max(chat.touched_at, chat.closed_at or NOON) < NOON
            assert not (chat.is_owed and chat.turns)
        elif chat.kinship is Kinship.CONTINUATION:
            assert chat.follows not in doomed
