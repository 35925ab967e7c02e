"""Restores that are followed: how far each has come, and what is told of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
import pytest
from msgspec import structs

from perdure.api.caller import Caller, Scope
from perdure.api.restores import shown
from perdure.api.restoring import Asked, Restores, Restoring, State
from perdure.errors import Conflict
from perdure.host.run import Ran
from perdure.model.event import Event, EventKind
from perdure.restore.shown import LeftOut, ProgressLine, Restored, StepRow, Summary
from tests.builders import at

ANN = Caller(uid=1000, user="ann", scope=Scope.WRITE, token="main")
BOB = Caller(uid=1001, user="bob", scope=Scope.WRITE, token="main")

Program = Callable[[Callable[[bytes], None]], Awaitable[Ran]]


def a_row(n: int, result: str = "planned") -> StepRow:
    return StepRow(
        n=n,
        target=f"work:{n}.0",
        action="shell",
        agent=None,
        conversation=None,
        argv=(),
        cwd="/home/dev",
        result=result,
        why="",
        user="ann",
        socket="/tmp/tmux-1000/default",
        pane=None,
        screen=(),
    )


def a_line(**said: object) -> bytes:
    return msgspec.json.encode(ProgressLine(**said)) + b"\n"  # type: ignore[arg-type]  # of the kinds it has


def an_end(*rows: StepRow) -> Restored:
    return Restored(snapshot="abc", snapshots=("abc",), steps=rows, summary=Summary(panes=len(rows)), errors=())


class Here:
    """Restores whose program the test is."""

    def __init__(self, program: Program) -> None:
        self.events: list[Event] = []
        self.words: list[tuple[str, ...]] = []
        self._program = program
        self.restores = Restores(self._follow, self._note, self._now)

    def begin(self, by: Caller = ANN) -> Restoring:
        return self.restores.begin(Asked(words=("restore",), by=by, uid=by.uid, snapshot="abc"))

    async def _follow(self, take: Callable[[bytes], None], *words: str) -> Ran:
        self.words.append(words)
        return await self._program(take)

    async def _note(self, event: Event) -> None:
        self.events.append(event)

    def _now(self) -> datetime:
        return at(len(self.events))


async def until(is_so: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not is_so():
            await asyncio.sleep(0.001)


def test_what_is_planned_again_takes_the_place_of_what_was() -> None:
    async def go() -> None:
        one = Restoring(Asked(words=(), by=ANN, uid=1000), at(0))
        one.take(a_line(planned=(a_row(1), a_row(2), a_row(3))))
        one.take(a_line(step=a_row(1, "done")))
        # The first server's part stays; that of the second is planned anew.
        one.take(a_line(planned=(a_row(2),)))
        one.take(b"nonsense\n")
        one.take(b"\xff\n")
        assert [(row.n, row.result) for row in one.steps] == [(1, "done"), (2, "planned")]
        assert (one.settled, one.state) == (1, State.RUNNING)
        assert [row.n for row in one.news()] == [1, 2, 3]
        assert one.news() == []

    asyncio.run(go())


def test_why_nothing_happens_is_told_while_it_is_so() -> None:
    going = asyncio.Event()

    async def program(take: Callable[[bytes], None]) -> Ran:
        take(a_line(planned=(a_row(1),)))
        take(a_line(said="memory is short, so 4 more agents wait until it is not"))
        await going.wait()
        take(last := a_line(restored=an_end(a_row(1, "done"))))
        return Ran(0, last, "")

    async def go() -> None:
        here = Here(program)
        one = here.begin()
        assert shown(one).message == ""
        await until(lambda: here.events)
        assert shown(one).message == "Memory is short, so 4 more agents wait until it is not."
        going.set()
        await until(lambda: one.state is State.DONE)
        assert shown(one).message == ""

    asyncio.run(go())


def test_what_is_not_brought_back_is_told_with_its_end() -> None:
    left = LeftOut(
        user="ann",
        socket="/tmp/tmux-1000/default",
        snapshot="abc",
        target="work:0.0",
        agent="simulant",
        conversation="c1",
        why="ended with the tmux server before",
        argv=("perdure", "restore", "--from", "abc", "work"),
        is_taken=False,
    )

    async def go() -> None:
        one = Restoring(Asked(words=(), by=ANN, uid=1000), at(0))
        assert shown(one).left_out == ()
        one.take(a_line(restored=structs.replace(an_end(a_row(1, "done")), left_out=(left,))))
        assert shown(one).left_out == (left,)

    asyncio.run(go())


def test_it_is_told_of_as_it_goes_and_in_the_end() -> None:
    going = asyncio.Event()

    async def program(take: Callable[[bytes], None]) -> Ran:
        take(a_line(planned=(a_row(1), a_row(2))))
        await going.wait()
        rows = (a_row(1, "done"), a_row(2, "failed"))
        for row in rows:
            take(a_line(step=row))
        take(last := a_line(restored=an_end(*rows)))
        return Ran(4, last, "")

    async def go() -> None:
        here = Here(program)
        one = here.begin()
        await until(lambda: here.events)
        assert (here.events[0].kind, here.events[0].data["settled"]) == (EventKind.RESTORING, 0)
        with pytest.raises(Conflict):
            here.begin()
        assert here.begin(BOB).state is State.RUNNING
        assert [each.asked.by for each in here.restores.known(ANN)] == [ANN]
        assert len(here.restores.known(Caller(uid=0, user="root", scope=Scope.READ, token="main"))) == 2
        assert (here.restores.find(one.id, BOB), here.restores.find(one.id, ANN)) == (None, one)
        going.set()
        await until(lambda: sum(event.kind is EventKind.RESTORED for event in here.events) == 2)
        mine = [event for event in here.events if event.data["restore"] == one.id]
        assert [event.kind for event in mine][-2:] == [EventKind.RESTORING, EventKind.RESTORED]
        assert mine[-2].data["steps"][-1]["result"] == "failed"
        assert (one.state, one.settled, mine[-1].data["exit_code"]) == (State.PARTLY, 2, 4)
        assert here.begin().id != one.id

    asyncio.run(go())


@pytest.mark.parametrize(
    ("ran", "state", "message"),
    [
        (Ran(3, b'{"error":{"message":"Nothing is saved.","code":3}}\n', ""), State.FAILED, "Nothing is saved."),
        (Ran(4, b'{"error":{"message":"No answer.","code":4}}\n', ""), State.FAILED, "No answer."),
        (Ran(-15, b"", "perdure: interrupted"), State.INTERRUPTED, "perdure: interrupted"),
        (Ran(1, b"", ""), State.FAILED, "It ended without a word."),
    ],
)
def test_one_that_comes_to_nothing_says_why(ran: Ran, state: State, message: str) -> None:
    async def program(take: Callable[[bytes], None]) -> Ran:
        take(ran.out)
        return ran

    async def go() -> None:
        here = Here(program)
        one = here.begin()
        await until(lambda: here.events)
        assert (one.state, one.message, one.ended_at is not None) == (state, message, True)
        assert here.events[-1].data["message"] == message

    asyncio.run(go())


def test_a_daemon_that_ends_interrupts_it() -> None:
    ended: list[bool] = []

    async def program(take: Callable[[bytes], None]) -> Ran:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append(True)
            raise
        raise AssertionError

    async def go() -> None:
        here = Here(program)
        one = here.begin()
        await until(lambda: here.words)
        here.restores.close()
        await until(lambda: one.state is not State.RUNNING)
        assert (one.state, ended) == (State.INTERRUPTED, [True])

    asyncio.run(go())


def test_it_is_over_when_its_end_is_written_down() -> None:
    """Whoever sees that it is over finds it so among the events, and a daemon that ends then has not forgotten it."""

    async def program(take: Callable[[bytes], None]) -> Ran:
        take(last := a_line(restored=an_end()))
        return Ran(0, last, "")

    async def go() -> None:
        here, written = Here(program), asyncio.Event()
        note = here.restores._note

        async def slowly(event: Event) -> None:
            states.append(one.state)
            await written.wait()
            await note(event)

        states: list[State] = []
        here.restores._note = slowly
        one = here.begin()
        await until(lambda: states)
        assert (one.state, one.ended_at) == (State.RUNNING, None)
        with pytest.raises(Conflict):
            here.begin()
        written.set()
        await until(lambda: one.state is State.DONE)
        assert states == [State.RUNNING]
        assert [event.kind for event in here.events] == [EventKind.RESTORED]
        assert here.events[0].at == one.ended_at

    asyncio.run(go())


def test_only_so_many_that_have_ended_are_known() -> None:
    async def program(take: Callable[[bytes], None]) -> Ran:
        take(last := a_line(restored=an_end()))
        return Ran(0, last, "")

    async def go() -> None:
        here = Here(program)
        for _ in range(60):
            one = here.begin()
            await until(lambda one=one: one.state is State.DONE)  # type: ignore[misc]
        assert len(here.restores.known(ANN)) == 51
        assert here.restores.known(ANN)[0] is one

    asyncio.run(go())
