"""What of a transcript that comes in is news here."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.model.chat import Chat, CloseReason, Source, Turn
from perdure.model.chat_import import Arrival, News, come_in_closed, is_same_place, news
from tests.builders import at


def turns(text: str, hidden: str = "") -> list[Turn]:
    """A turn for each letter; those in `hidden` were taken back."""
    return [
        Turn(position=place, role="user", content=letter, at=at(place), hidden=letter in hidden)
        for place, letter in enumerate(text, 1)
    ]


def heard(new: News) -> tuple[Arrival, str, list[int]]:
    return new.result, "".join(turn.content for turn in new.rest), list(new.taken_back)


@pytest.mark.parametrize(
    ("here", "coming", "expected"),
    [
        (turns("ab"), turns("abc"), (Arrival.GREW, "c", [])),
        (turns("ab"), turns("ab"), (Arrival.UNCHANGED, "", [])),
        (turns(""), turns("a"), (Arrival.GREW, "a", [])),
        # It was gone on with here.
        (turns("abc"), turns("ab"), (Arrival.UNCHANGED, "", [])),
        (turns("abx"), turns("abc"), (Arrival.CHANGED, "", [])),
        (turns("xb"), turns("abc"), (Arrival.CHANGED, "", [])),
        # Taken back there, and gone on with.
        (turns("abc"), turns("abcd", hidden="bc"), (Arrival.GREW, "d", [2, 3])),
        (turns("abc"), turns("abc", hidden="c"), (Arrival.GREW, "", [3])),
        # Taken back here: whatever comes behind it there is not an answer to what is shown here.
        (turns("abc", hidden="c"), turns("abcd"), (Arrival.CHANGED, "", [])),
        (turns("abc", hidden="c"), turns("abc"), (Arrival.UNCHANGED, "", [])),
        (turns("abcd"), turns("abc", hidden="c"), (Arrival.CHANGED, "", [])),
    ],
)
def test_what_is_news(here: list[Turn], coming: list[Turn], expected: tuple[Arrival, str, list[int]]) -> None:
    assert heard(news(here, coming)) == expected


def test_when_something_was_said_and_what_is_kept_beside_it_make_no_difference() -> None:
    here = turns("ab")
    coming = [replace(turn, at=at(99), extra={"reasoning": "why"}, tokens=3) for turn in here]
    assert news(here, coming).result is Arrival.UNCHANGED
    assert news([replace(here[0], content=None)], [replace(here[0], content="")]).result is Arrival.UNCHANGED
    assert news(here, [here[0], replace(here[1], tool_calls=({"id": 1},))]).result is Arrival.CHANGED


@given(st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_what_is_written_is_always_behind_what_is_here(here: str, coming: str) -> None:
    new = news(turns(here), turns(coming))
    if new.result is Arrival.GREW:
        assert here + "".join(turn.content for turn in new.rest) == coming
    elif new.result is Arrival.UNCHANGED:
        assert here.startswith(coming)
    else:
        assert not coming.startswith(here)
        assert not here.startswith(coming)


def test_two_chats_of_one_id_are_one_only_where_nothing_speaks_against_it() -> None:
    source = Source(platform="telegram", chat_id="99", user_id="99")
    assert is_same_place(source, source)
    assert is_same_place(Source(platform="local", chat_id=""), source)
    assert is_same_place(source, replace(source, user_id=None))
    assert not is_same_place(source, replace(source, chat_id="100"))
    assert not is_same_place(source, replace(source, platform="signal"))
    assert not is_same_place(source, replace(source, chat_id="", user_id="100"))


def test_one_that_comes_in_closed_is_not_handed_on_again() -> None:
    source = Source(platform="telegram", chat_id="99")
    chat = Chat(id="c", key="k", source=source, opened_at=at(0), touched_at=at(5), notice=CloseReason.IDLE)
    closed = come_in_closed(chat)
    assert (closed.closed_at, closed.close_reason, closed.notice) == (at(5), CloseReason.IMPORTED, None)
    assert not closed.is_owed
    idle = come_in_closed(replace(chat, closed_at=at(9), close_reason=CloseReason.IDLE))
    assert (idle.closed_at, idle.close_reason, idle.is_owed) == (at(9), CloseReason.IDLE, False)
