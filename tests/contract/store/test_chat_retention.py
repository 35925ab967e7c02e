"""Closed chats that go by themselves once they were kept long enough, and only where somebody has said how long."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from perdure.chats.expiry import Expiry
from perdure.chats.reset import JobCheck
from perdure.chats.retention import MOST_CHATS, MOST_TURNS, tidy
from perdure.chats.service import Chats
from perdure.model.chat import Chat, ResetMode, ResetPolicy
from perdure.model.config import ChatsConfig, Config
from perdure.store.store import Store
from tests.contract.store.chats import Clock, a_source, a_turn

ALICE, BOB = a_source("alice"), a_source("bob")
Make = Callable[..., Chats]


@pytest.fixture
def clock() -> Clock:
    """It is noon."""
    return Clock()


@pytest.fixture
def make(threaded: Store, clock: Clock) -> Make:
    """Makes the service of a gateway whose chats go stale after an hour, with more that is set about chats."""

    def made(has_jobs: JobCheck | None = None, **chats: object) -> Chats:
        policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60)
        config = Config(chats=ChatsConfig(reset=policy, **chats))  # type: ignore[arg-type]
        return Chats(threaded.chats, config, clock, has_jobs=has_jobs)

    return made


def speak(chats: Chats, source: object = ALICE, count: int = 1) -> str:
    chat = chats.open(source)  # type: ignore[arg-type]
    chats.append(chat.id, *[a_turn("hello")] * count)
    return chat.id


def there(chats: Chats) -> set[str]:
    return {chat.id for chat in chats.store.list_chats()}


def handed_on(chat: Chat) -> None:
    """What a gateway does with it."""


def test_previous_chats_are_kept_for_good_unless_somebody_says_otherwise(make: Make, clock: Clock) -> None:
    chats = make()
    speak(chats)
    chats.reset(ALICE)
    clock.later(days=4000)
    before = there(chats)
    assert tidy(chats).gone == ()
    assert Expiry(chats).run_once(handed_on).pruned == ()
    assert there(chats) == before


def test_what_was_kept_long_enough_goes_and_nothing_else(make: Make, clock: Clock) -> None:
    chats = make(keep_days=30)
    old = speak(chats)
    chats.reset(ALICE)
    clock.later(days=1)
    later = speak(chats)
    still = chats.reset(ALICE).id
    clock.later(days=29)
    assert tidy(chats).gone == ()
    clock.later(seconds=1)
    done = tidy(chats)
    assert ([chat.id for chat in done.gone], done.is_more) == ([old], False)
    clock.later(days=400)
    # Never an open one, however long nobody has used it.
    tidy(chats)
    assert there(chats) == {still}
    assert later not in there(chats)


def test_one_that_ended_by_itself_waits_to_be_handed_on_unless_nobody_does_that(make: Make, clock: Clock) -> None:
    chats = make(keep_days=30)
    owed = speak(chats)
    clock.later(hours=2)
    open_one = speak(chats)
    clock.later(days=40)
    assert tidy(chats).gone == ()
    assert there(chats) == {owed, open_one}
    assert [chat.id for chat in tidy(make(keep_days=30, keep_owed=False)).gone] == [owed]


def test_one_whose_conversation_has_jobs_running_stays_and_so_it_does_when_that_is_not_known(
    make: Make, clock: Clock
) -> None:
    chats = make(keep_days=1)
    mine, other = speak(chats), speak(chats, BOB)
    key = chats.store.get_chat(mine).key
    chats.reset(ALICE)
    chats.reset(BOB)
    clock.later(days=2)
    asked: list[timedelta] = []

    def has_jobs(owner: str, age: timedelta) -> bool:
        asked.append(age)
        return owner == key

    def cannot_tell(owner: str, age: timedelta) -> bool:
        raise RuntimeError("nobody answers")

    assert tidy(make(cannot_tell, keep_days=1)).gone == ()
    assert [chat.id for chat in tidy(make(has_jobs, keep_days=1)).gone] == [other]
    # However old a job is: it keeps no chat open for ever, but what it was begun in is still there when it ends.
    assert min(asked) > timedelta(days=36525)
    assert [chat.id for chat in tidy(chats).gone] == [mine]


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_at_once_only_a_few_go(make: Make, clock: Clock) -> None:
    chats = make(keep_days=1)
    for _ in range(MOST_CHATS + 3):
        speak(chats)
        chats.reset(ALICE)
    clock.later(days=2)
    first, second, third = tidy(chats), tidy(chats), tidy(chats)
    assert [len(each.gone) for each in (first, second, third)] == [MOST_CHATS, 3, 0]
    assert [each.is_more for each in (first, second, third)] == [True, False, False]
    for _ in range(2):
        speak(chats, count=MOST_TURNS)
        chats.reset(ALICE)
    clock.later(days=2)
    rounds = [sum(chat.turns for chat in tidy(chats).gone) for _ in range(3)]
    assert rounds == [MOST_TURNS, MOST_TURNS, 0]


def test_whoever_hands_chats_on_keeps_house_too_once_an_hour(make: Make, clock: Clock) -> None:
    chats = make(keep_days=1)
    expiry = Expiry(chats)
    first = speak(chats)
    clock.later(hours=2)
    assert expiry.run_once(handed_on).flushed == (first,)
    second = speak(chats)
    clock.later(days=1, hours=1)
    assert expiry.run_once(handed_on).pruned == (first,)
    clock.later(minutes=59)
    assert expiry.run_once(handed_on).pruned == ()
    assert there(chats) == {second}
    clock.later(days=2)
    assert expiry.run_once(handed_on).pruned == (second,)
