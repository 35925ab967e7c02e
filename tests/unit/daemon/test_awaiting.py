"""Waiting for a state: nothing that happens in between is missed, and waiting always ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from msgspec import structs

from perdure.daemon.awaiting import await_state
from perdure.errors import NoDaemon, NotReached, RunEnded, RunNotFound, UsageError
from perdure.live.feed import Feed
from perdure.model.event import EventKind
from perdure.model.run import Reason, Run, RunState
from tests.builders import NOON
from tests.unit.live.events import a_run, a_status, an_event

BUSY = a_run(status=a_status(RunState.BUSY))
DONE = a_run(status=a_status(RunState.ATTENTION, Reason.DONE))
GONE = a_run(status=a_status(RunState.EXITED))


class Desk:
    """One run that changes when a test says so."""

    def __init__(self, run: Run, most: int = 1024) -> None:
        self.run = run
        self.feed = Feed(most)
        self.seq = 0
        self.looks = 0

    async def find(self) -> Run:
        self.looks += 1
        found = self.run
        await asyncio.sleep(0)
        return found

    def become(self, run: Run, *, about: str = "r1") -> None:
        self.run = run
        self.seq += 1
        self.feed.publish(an_event(self.seq, EventKind.STATE_CHANGED, run=about))

    def wait(self, *until: str, timeout: float | None = 60) -> Awaitable[Run]:
        return await_state(self.feed, self.find, "r1", until, timeout)


def _play(desk: Desk, waiting: Callable[[], Awaitable[Run]], *steps: Callable[[], object]) -> Run:
    async def play() -> Run:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(_awaited(waiting))
            for step in steps:
                step()
                await asyncio.sleep(0)
        return task.result()

    try:
        return asyncio.run(play())
    except BaseExceptionGroup as group:
        raise group.exceptions[0] from None
    finally:
        assert len(desk.feed) == 0


async def _awaited(waiting: Callable[[], Awaitable[Run]]) -> Run:
    return await waiting()


def test_one_that_is_there_already_is_answered_at_once() -> None:
    desk = Desk(DONE)
    assert _play(desk, lambda: desk.wait("idle")) is DONE
    assert desk.looks == 1


def test_one_that_is_there_already_is_so_however_little_time_there_is() -> None:
    async def find() -> Run:
        await asyncio.sleep(0.05)  # there is other work before it
        return found

    found = DONE
    assert asyncio.run(_awaited(lambda: await_state(Feed(8), find, "r1", ["done"], 0))) is DONE
    with pytest.raises(NotReached):
        asyncio.run(_awaited(lambda: await_state(Feed(8), find, "r1", ["busy"], 0)))
    found = GONE
    with pytest.raises(RunEnded):
        asyncio.run(_awaited(lambda: await_state(Feed(8), find, "r1", ["busy"], 0)))


@pytest.mark.parametrize("before", range(6))
def test_a_change_at_any_moment_is_noticed(before: int) -> None:
    desk = Desk(BUSY)
    steps = [lambda: None] * before + [lambda: desk.become(DONE)] + [lambda: None] * 6
    assert _play(desk, lambda: desk.wait("done"), *steps) is DONE


def test_what_happens_to_others_is_not_looked_into() -> None:
    desk = Desk(BUSY)
    others = [lambda: desk.become(BUSY, about="r2")] * 10
    assert _play(desk, lambda: desk.wait("idle"), *others, lambda: desk.become(DONE)) is DONE
    assert desk.looks == 2


def test_more_news_than_may_wait_is_no_reason_to_miss_one() -> None:
    desk = Desk(BUSY, most=1)

    def burst() -> None:
        for _ in range(5):
            desk.become(BUSY)
        desk.become(DONE)

    assert _play(desk, lambda: desk.wait("idle"), lambda: None, lambda: None, lambda: None, lambda: None, burst) is DONE


def test_one_that_has_ended_is_not_waited_for() -> None:
    desk = Desk(BUSY)
    with pytest.raises(RunEnded, match="was not idle or error"):
        _play(desk, lambda: desk.wait("idle", "error"), lambda: None, lambda: desk.become(GONE))


def test_one_that_was_let_go_of_is_nobody() -> None:
    desk = Desk(BUSY)
    let_go = structs.replace(DONE, ended_at=NOON, detached=True)
    with pytest.raises(RunNotFound, match="`perdure follow r1` does so again"):
        _play(desk, lambda: desk.wait("idle"), lambda: None, lambda: desk.become(let_go))


def test_when_the_time_is_up_its_state_is_told() -> None:
    desk = Desk(BUSY)
    with pytest.raises(NotReached, match="r1 is busy") as raised:
        _play(desk, lambda: desk.wait("idle", timeout=0))
    assert (raised.value.exit_code, raised.value.data["state"]) == (4, "busy")


def test_a_daemon_that_ends_lets_go() -> None:
    desk = Desk(BUSY)
    with pytest.raises(NoDaemon):
        _play(desk, lambda: desk.wait("idle"), lambda: None, lambda: desk.feed.close())


def test_what_is_no_state_is_refused() -> None:
    desk = Desk(BUSY)
    with pytest.raises(UsageError):
        _play(desk, lambda: desk.wait("ready"))
