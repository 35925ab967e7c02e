"""Handing on what was said in stale chats: once, ahead of the next message, and never counted as done when it failed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from perdure.chats.expiry import FAILURE, TRIES, Expired, Expiry
from perdure.chats.service import Chats
from perdure.model.chat import Chat, CloseReason, ResetMode, ResetPolicy
from perdure.model.config import ChatsConfig, Config
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_source, a_turn

ALICE, BOB = a_source("alice"), a_source("bob")


@pytest.fixture
def clock() -> Clock:
    """It is noon."""
    return Clock()


@pytest.fixture
def chats(threaded: Store, clock: Clock) -> Chats:
    """Chats that go stale after an hour."""
    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
    return Chats(threaded.chats, Config(chats=ChatsConfig(reset=policy)), clock)


def speak(chats: Chats, source: object = ALICE) -> Chat:
    chat = chats.open(source)  # type: ignore[arg-type]
    chats.append(chat.id, a_turn("hello"))
    return chats.store.get_chat(chat.id)


def test_a_stale_chat_is_handed_on_once_and_closed_for_good(chats: Chats, clock: Clock) -> None:
    chat, other = speak(chats), speak(chats, BOB)
    expiry = Expiry(chats)
    handed_on: list[Chat] = []
    assert expiry.run_once(handed_on.append) == Expired()
    clock.later(minutes=59)
    chats.touch(other.id)
    clock.later(minutes=2)
    assert [due.id for due in expiry.due(clock())] == [chat.id]
    assert expiry.run_once(handed_on.append) == Expired(flushed=(chat.id,))
    assert expiry.run_once(handed_on.append) == Expired()
    assert [each.id for each in handed_on] == [chat.id]
    closed = chats.store.get_chat(chat.id)
    assert (closed.close_reason, closed.flushed_at, closed.closed_at) == (CloseReason.IDLE, clock(), clock())
    # An answer that comes late does not bring it back, and neither does another policy.
    chats.append(chat.id, a_turn("late", "assistant"))
    again = Chats(chats.store, Config(), clock).open(ALICE)
    assert again.follows == chat.id
    assert chats.take_notice(again.id) is CloseReason.IDLE


def test_a_failure_is_noted_tried_again_and_given_up(chats: Chats, clock: Clock) -> None:
    chat, other = speak(chats), speak(chats, BOB)
    clock.later(hours=2)
    tried: list[str] = []

    def flush(found: Chat) -> None:
        tried.append(found.id)
        if found.id == chat.id:
            raise RuntimeError("with a secret in it")

    expiry = Expiry(chats)
    assert expiry.run_once(flush) == Expired(flushed=(other.id,), failed=(chat.id,))
    noted = chats.store.get_chat(chat.id)
    assert (noted.flush_failures, noted.flushed_at, noted.is_open) == (1, None, True)
    assert noted.extra == {FAILURE: "RuntimeError"}
    for _ in range(TRIES - 1):
        done = expiry.run_once(flush)
    # Not tried any more, and not passed over either.
    assert done == Expired(failed=(chat.id,), given_up=(chat.id,))
    assert expiry.run_once(flush) == Expired(given_up=(chat.id,))
    assert tried.count(chat.id) == TRIES
    assert chats.store.get_chat(chat.id).flushed_at is None
    # It goes the way of all stale chats, handed on or not.
    assert chats.open(ALICE).follows == chat.id


def test_it_succeeds_the_second_time(chats: Chats, clock: Clock) -> None:
    chat = speak(chats)
    clock.later(hours=2)
    tries = 0

    def flush(_: Chat) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError

    expiry = Expiry(chats)
    assert expiry.run_once(flush).failed == (chat.id,)
    assert expiry.run_once(flush).flushed == (chat.id,)
    done = chats.store.get_chat(chat.id)
    assert (done.flush_failures, dict(done.extra), done.is_open) == (0, {}, False)


def test_what_was_reset_before_anybody_handed_it_on_is_still_owed(chats: Chats, clock: Clock) -> None:
    chat = speak(chats)
    clock.later(hours=2)
    chats.open(ALICE)
    handed_on: list[Chat] = []
    assert Expiry(chats).run_once(handed_on.append).flushed == (chat.id,)
    assert chats.store.get_chat(chat.id).close_reason is CloseReason.IDLE
    assert Expiry(chats).due(clock()) == ()
    # What somebody closed by asking is theirs to hand on.
    chats.append(chats.open(ALICE).id, a_turn())
    chats.reset(ALICE)
    assert Expiry(chats).due(clock()) == ()


def test_a_try_during_which_the_process_dies_is_a_try(chats: Chats, clock: Clock) -> None:
    speak(chats)
    clock.later(hours=2)

    class DiesError(BaseException):
        pass

    def die(_: Chat) -> None:
        raise DiesError

    for _ in range(TRIES):
        with pytest.raises(DiesError):
            Expiry(chats).run_once(die)
    assert Expiry(chats).due(clock()) == ()


def test_a_clock_that_was_far_ahead_once_costs_nobody_anything(chats: Chats, clock: Clock) -> None:
    began = clock()
    chat, other, later = speak(chats), speak(chats, BOB), speak(chats, a_source("carol"))
    for ahead, each in ((datetime(9999, 12, 31, 23, 59, tzinfo=UTC), chat), (clock.later(days=9000), later)):
        clock.time = ahead
        chats.touch(each.id)
    clock.time = began
    clock.later(hours=2)
    # Those whose clock was right go stale as ever; the others count as used now, and go stale from now on.
    assert Expiry(chats).run_once(lambda _: None) == Expired(flushed=(other.id,))
    assert chats.open(ALICE).id == chat.id
    clock.later(hours=2)
    assert set(Expiry(chats).run_once(lambda _: None).flushed) == {chat.id, later.id}


def test_a_message_puts_right_what_the_clock_did(chats: Chats, clock: Clock) -> None:
    began, chat = clock(), speak(chats)
    clock.time = datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    chats.touch(chat.id)
    clock.time = began
    assert (chats.open(ALICE).id, chats.store.get_chat(chat.id).touched_at) == (chat.id, began)
    clock.later(minutes=61)
    assert chats.open(ALICE).follows == chat.id


def test_what_was_closed_while_the_clock_was_ahead_does_not_come_last(chats: Chats, clock: Clock) -> None:
    began, first = clock(), speak(chats)
    ahead = []
    for _ in range(3):
        clock.later(days=3)
        ahead.append(speak(chats))
    assert [chat.follows for chat in ahead] == [first.id, *(chat.id for chat in ahead[:-1])]
    clock.time = began
    assert chats.open(ALICE).id == ahead[-1].id
    clock.later(hours=2)
    assert ahead[-1].id in Expiry(chats).run_once(lambda _: None).flushed
    clock.later(minutes=1)
    after = speak(chats)
    assert after.follows == ahead[-1].id
    # So it goes on while the times of those before are still to come, and what is resumed comes last as ever.
    clock.later(hours=2)
    assert chats.open(ALICE).follows == after.id
    clock.later(minutes=1)
    chats.switch(ALICE, first.id)
    clock.later(hours=2)
    assert first.id in Expiry(chats).run_once(lambda _: None).flushed
    clock.later(minutes=1)
    assert chats.open(ALICE).follows == first.id


def test_one_that_is_used_meanwhile_stays_open(chats: Chats, clock: Clock) -> None:
    chat = speak(chats)
    clock.later(hours=2)

    def flush(found: Chat) -> None:
        chats.append(found.id, a_turn("still here"))

    assert Expiry(chats).run_once(flush) == Expired()
    found = chats.store.get_chat(chat.id)
    assert (found.is_open, found.flushed_at, found.flush_failures) == (True, None, 0)
    clock.later(hours=2)
    assert [due.id for due in Expiry(chats).due(clock())] == [chat.id]


@pytest.mark.parametrize("fails", [False, True])
def test_one_that_is_forgotten_meanwhile_costs_nobody_else_anything(chats: Chats, clock: Clock, fails: bool) -> None:
    sources = [a_source(name) for name in ("alice", "bob", "carol")]
    first, second, third = (speak(chats, source) for source in sources)
    clock.later(hours=2)
    for source in sources:
        chats.open(source)
    handed_on: list[str] = []

    def flush(found: Chat) -> None:
        handed_on.append(found.id)
        if found.id == first.id:
            for gone in (first.id, second.id):
                chats.store.forget_chat(gone)
            if fails:
                raise OSError

    assert Expiry(chats).run_once(flush) == Expired(flushed=(third.id,))
    assert handed_on == [first.id, third.id]


def test_one_that_cannot_be_read_any_more_costs_nobody_else_anything(
    chats: Chats, threaded: Store, clock: Clock
) -> None:
    first, second = speak(chats), speak(chats, BOB)
    clock.later(hours=2)

    def flush(found: Chat) -> None:
        if found.id == first.id:
            threaded.driver.execute("UPDATE chats SET body = :body WHERE id = :id", body=b"spoilt", id=first.id)

    assert Expiry(chats).run_once(flush) == Expired(flushed=(second.id,))


def test_a_chat_in_which_nothing_was_said_asks_for_nothing(chats: Chats, clock: Clock) -> None:
    chat = chats.open(ALICE)
    clock.later(hours=2)
    handed_on: list[Chat] = []
    assert Expiry(chats).run_once(handed_on.append).flushed == (chat.id,)
    assert handed_on == []
    assert not chats.store.get_chat(chat.id).is_open


def test_of_several_processes_one_is_at_it(chats: Chats, threaded: Store, clock: Clock) -> None:
    chat = speak(chats)
    clock.later(hours=2)
    first, second = (Expiry(chats, leases=threaded, holder=name) for name in ("a", "b"))
    seen: list[Expired] = []
    assert first.run_once(lambda _: seen.append(second.run_once(lambda _: None))).flushed == (chat.id,)
    assert seen == [Expired(held_by="a")]


def test_a_round_that_is_interrupted_keeps_nobody_else_from_going_on(
    chats: Chats, threaded: Store, clock: Clock
) -> None:
    chat = speak(chats)
    clock.later(hours=2)
    first, second = (Expiry(chats, leases=threaded, holder=name) for name in ("a", "b"))

    def interrupted(_: Chat) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        first.run_once(interrupted)
    assert second.run_once(lambda _: None).flushed == (chat.id,)
