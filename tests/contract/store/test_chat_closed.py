"""Chats that were closed while somebody was about to say something in them: nothing is lost there, and nobody is told otherwise."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure import errors
from perdure.chats.expiry import Expired, Expiry
from perdure.chats.service import Chats
from perdure.model.chat import Chat, CloseReason, ResetMode, ResetPolicy
from perdure.model.config import ChatsConfig, Config
from perdure.store import open_store
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import Clock, a_chat, a_source, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.test_chat_together import leading

ALICE = a_source("alice")
CONFIG = Config(chats=ChatsConfig(reset=ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)))


@pytest.fixture
def clock() -> Clock:
    """It is noon."""
    return Clock()


@pytest.fixture
def chats(threaded: Store, clock: Clock) -> Chats:
    """Chats that go stale after an hour."""
    return Chats(threaded.chats, CONFIG, clock)


@pytest.fixture
def others(place: Place, clock: Clock) -> Iterator[Chats]:
    """The same as another process has them, which knows nothing of what this one knows."""
    store = open_store(place.url, state_dir=place.state_dir, threads=True)
    yield Chats(store.chats, CONFIG, clock)
    store.close()


def spoken(chats: Chats) -> Chat:
    """A chat with two turns, by a process that knows where it goes on."""
    chat = chats.open(ALICE)
    for role in ("user", "assistant"):
        chats.append(chat.id, a_turn(role, role))
    return chat


def contents(chats: Chats, id: str) -> list[object]:
    return [turn.content for turn in chats.load(id).turns]


def compress(chats: Chats, chat: Chat, clock: Clock) -> None:
    chats.compress(chat.id, [a_turn("in short")], expect=chats.load(chat.id).next)


def reset(chats: Chats, chat: Chat, clock: Clock) -> None:
    chats.reset(ALICE)


def switch(chats: Chats, chat: Chat, clock: Clock) -> None:
    chats.branch(ALICE, chat.id)


def go_stale(chats: Chats, chat: Chat, clock: Clock) -> None:
    clock.later(hours=2)
    chats.open(ALICE)


def expire(chats: Chats, chat: Chat, clock: Clock) -> None:
    clock.later(hours=2)
    assert Expiry(chats).run_once(lambda _: None).flushed == (chat.id,)


CLOSING: dict[str, Callable[[Chats, Chat, Clock], None]] = {
    "made shorter": compress,
    "reset": reset,
    "switched away from": switch,
    "stale at a message": go_stale,
    "handed on": expire,
}


@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
@pytest.mark.parametrize("how", CLOSING)
def test_whoever_expects_a_chat_to_go_on_learns_that_it_does_not(
    chats: Chats, others: Chats, clock: Clock, how: str, here: bool
) -> None:
    chat = spoken(chats)
    before = chats.load(chat.id)
    CLOSING[how](chats if here else others, chat, clock)
    with pytest.raises(errors.Conflict, match="closed"):
        chats.append(chat.id, a_turn("lost"), expect=before.next)
    # Nor does it help to look again: it is another chat that goes on.
    with pytest.raises(errors.Conflict):
        chats.append(chat.id, a_turn("lost"), expect=chats.load(chat.id).next)
    with pytest.raises(errors.Conflict, match="closed"):
        chats.rewrite(chat.id, 1, a_turn("lost"), expect=before.next)
    with pytest.raises(errors.Conflict, match="closed"):
        chats.rewrite(chat.id, 1, a_turn("lost"))
    with pytest.raises(errors.Conflict, match="closed"):
        chats.undo(chat.id)
    assert chats.load(chat.id) == before
    # Whoever is told so begins anew, and ends up where the conversation is.
    now = chats.open(ALICE)
    assert now.id != chat.id
    assert chats.append(now.id, a_turn("kept"), expect=chats.load(now.id).next)


def test_one_that_is_gone_on_with_again_takes_what_is_expected(chats: Chats, others: Chats) -> None:
    chat = spoken(chats)
    others.reset(ALICE)
    others.switch(ALICE, chat.id)
    assert chats.append(chat.id, a_turn("more"), expect=3) == 3
    assert chats.undo(chat.id).content == "more"


def test_nothing_acknowledged_is_missing_from_what_a_chat_goes_on_in(chats: Chats, others: Chats) -> None:
    acknowledged: list[str] = []
    is_over = threading.Event()

    def speak(name: str) -> None:
        for number in range(25):
            while True:
                chat = chats.open(ALICE)
                before = chats.load(chat.id)
                try:
                    chats.append(chat.id, a_turn(f"{name}{number}"), expect=before.next)
                except errors.Conflict:
                    continue
                acknowledged.append(f"{name}{number}")
                break

    def shorten(by: Chats) -> None:
        while not is_over.is_set():
            chat = by.open(ALICE)
            before = by.load(chat.id)
            try:
                # Nothing is left out: whatever is missing afterwards was lost.
                by.compress(chat.id, before.turns, expect=before.next)
            except errors.Conflict:
                continue
            is_over.wait(0.01)

    with ThreadPoolExecutor() as pool:
        shortening = [pool.submit(shorten, by) for by in (chats, others)]
        try:
            for speaking in [pool.submit(speak, name) for name in "abc"]:
                speaking.result()
        finally:
            is_over.set()
        for each in shortening:
            each.result()
    assert len(acknowledged) == 75
    assert sorted(map(str, contents(chats, chats.open(ALICE).id))) == sorted(acknowledged)


@pytest.mark.skipif(sys.platform != "linux", reason="there is no desk elsewhere")
@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_what_another_process_writes_for_us_is_asked_the_same(place: Place, chats: Chats, clock: Clock) -> None:
    chat = spoken(chats)
    expire(chats, chat, clock)
    store = chats.store
    store.begin_chat(a_chat("common", touched_at=clock()))
    with leading(place, "goes on") as leader:
        with pytest.raises(errors.Conflict, match="closed"):
            store.append_turns(chat.id, [a_turn("lost")], at(0), expect=3)
        assert leader.wait() == 0
    with leading(place, "goes on") as leader:
        assert store.append_turns(chat.id, [a_turn("late")], at(0)) == 3
        assert leader.wait() == 0
    assert [due.id for due in Expiry(chats).due(clock())] == [chat.id]


@pytest.mark.parametrize("here", [True, False], ids=["here", "elsewhere"])
def test_an_answer_that_comes_late_is_kept_and_handed_on(chats: Chats, others: Chats, clock: Clock, here: bool) -> None:
    chat = spoken(chats)
    expire(chats if here else others, chat, clock)
    assert chats.append(chat.id, a_turn("late", "assistant")) == 3
    assert chats.append(chat.id, a_turn("later", "assistant")) == 4
    owed = chats.store.get_chat(chat.id)
    assert (owed.is_owed, owed.is_open, owed.close_reason, owed.turns) == (True, False, CloseReason.IDLE, 4)
    handed_on: list[list[object]] = []
    expiry = Expiry(others)
    assert expiry.run_once(lambda found: handed_on.append(contents(others, found.id))) == Expired(flushed=(chat.id,))
    assert handed_on == [["user", "assistant", "late", "later"]]
    assert expiry.run_once(lambda _: None) == Expired()


def test_what_is_said_late_in_a_chat_in_which_nothing_was_is_handed_on(chats: Chats, clock: Clock) -> None:
    chat = chats.open(ALICE)
    expire(chats, chat, clock)
    chats.append(chat.id, a_turn("late"))
    assert Expiry(chats).run_once(lambda _: None).flushed == (chat.id,)


@pytest.mark.parametrize("how", ["made shorter", "reset", "switched away from"])
def test_what_somebody_closed_is_theirs_to_hand_on_late_or_not(chats: Chats, clock: Clock, how: str) -> None:
    chat = spoken(chats)
    CLOSING[how](chats, chat, clock)
    assert chats.append(chat.id, a_turn("late")) == 3
    assert contents(chats, chat.id)[-1] == "late"
    assert not chats.store.get_chat(chat.id).is_owed
    assert Expiry(chats).due(clock()) == ()


def test_late_words_in_a_chat_whose_record_is_damaged_are_kept(chats: Chats, threaded: Store, clock: Clock) -> None:
    chat = spoken(chats)
    expire(chats, chat, clock)
    threaded.driver.execute("UPDATE chats SET body = :body WHERE id = :id", body=b"spoilt", id=chat.id)
    assert chats.append(chat.id, a_turn("late")) == 3
    assert contents(chats, chat.id)[-1] == "late"


def test_what_is_said_during_the_flush_is_handed_on_whatever_the_clock_says(chats: Chats, clock: Clock) -> None:
    chat = spoken(chats)
    clock.later(hours=2)
    late = clock()

    def flush(found: Chat) -> None:
        # By a machine whose clock is behind.
        chats.store.append_turns(found.id, [a_turn("meanwhile")], at(0))

    assert Expiry(chats).run_once(flush) == Expired()
    assert [due.id for due in Expiry(chats).due(late)] == [chat.id]


@pytest.mark.parametrize("how", ["rewritten", "taken back and said again", "said and taken back"])
def test_what_is_changed_during_the_flush_is_handed_on_though_it_is_as_many_turns(
    chats: Chats, clock: Clock, how: str
) -> None:
    chat = spoken(chats)
    clock.later(hours=2)
    store, handed_on = chats.store, []

    def flush(found: Chat) -> None:
        handed_on.append(contents(chats, found.id))
        if len(handed_on) > 1:
            return
        # By a machine whose clock is behind.
        if how == "rewritten":
            store.rewrite_turns(found.id, 2, [a_turn("meanwhile")], at(0))
        elif how == "said and taken back":
            store.append_turns(found.id, [a_turn("meanwhile")], at(0))
            store.undo_turns(found.id, 1, at(0))
        else:
            store.undo_turns(found.id, 1, at(0))
            store.append_turns(found.id, [a_turn("meanwhile")] * (found.turns - store.get_chat(found.id).turns), at(0))

    before = store.get_chat(chat.id)
    assert Expiry(chats).run_once(flush) == Expired()
    found = store.get_chat(chat.id)
    assert (found.touched_at, found.turns) == (before.touched_at, before.turns)
    assert (found.is_open, found.flushed_at, found.flush_failures) == (True, None, 0)
    assert Expiry(chats).run_once(flush).flushed == (chat.id,)
    assert handed_on[1] == contents(chats, chat.id)


def test_one_that_is_not_stale_any_more_after_its_flush_is_handed_on_when_it_is(threaded: Store, clock: Clock) -> None:
    jobs: list[str] = []
    chats = Chats(threaded.chats, CONFIG, clock, has_jobs=lambda key, since: bool(jobs))
    chat = spoken(chats)
    clock.later(hours=2)
    # Its jobs began meanwhile: it is gone on with.
    assert Expiry(chats).run_once(lambda found: jobs.append(found.key)) == Expired()
    assert chats.append(chats.open(ALICE).id, a_turn("more"), expect=3) == 3
    jobs.clear()
    clock.later(hours=2)
    assert Expiry(chats).run_once(lambda _: None).flushed == (chat.id,)
