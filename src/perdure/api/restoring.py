"""Restores that were asked for over HTTP: each a process of its own, followed line by line, and told of as it goes.

They are known for as long as the daemon runs; beyond that the events tell of them (`past`), and the journal what became of every pane.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from perdure.api.caller import Caller
from perdure.api.commands import refusal_of
from perdure.errors import Conflict, PerdureError
from perdure.host.run import Ran
from perdure.model.decoding import decoder_of
from perdure.model.event import Event, EventKind
from perdure.restore.shown import LeftOut, ProgressLine, Restored, StepRow, Summary, Trouble

#: How many that have ended are known.
_KEPT = 50
#: The least time between two events about the same restore, in seconds.
_HUSH = 0.3
#: What a step that is not settled says.
_PLANNED = "planned"


class State(StrEnum):
    """How a restore stands."""

    RUNNING = "running"
    DONE = "done"
    #: Something failed, and the rest is done.
    PARTLY = "partly"
    FAILED = "failed"
    #: It was ended before it was done; another goes on from there.
    INTERRUPTED = "interrupted"


class Follow(Protocol):
    """Runs a command of the program, handing on what it prints."""

    def __call__(self, take: Callable[[bytes], None], *words: str) -> Awaitable[Ran]:
        """Return how it ended. Cancelled, it is ended."""


class Asked(Struct, frozen=True, kw_only=True):
    """What is to be brought back, for whom."""

    words: tuple[str, ...]
    by: Caller
    #: Whose panes they are: for one user there is one restore at a time.
    uid: int
    snapshot: str | None = None
    targets: tuple[str, ...] = ()
    #: The key of the server, where there is one only.
    server: str | None = None


class Restoring:
    """One restore: what was asked for, and how far it has come."""

    def __init__(self, asked: Asked, began_at: datetime) -> None:
        self.id = f"x{os.urandom(8).hex()}"
        self.asked = asked
        self.began_at = began_at
        self.ended_at: datetime | None = None
        self.exit_code: int | None = None
        #: Why it could not be done; while it runs, what it says last of why nothing happens.
        self.message = ""
        self.restored: Restored | None = None
        #: Set whenever it has come further.
        self.further = asyncio.Event()
        self._steps: dict[int, StepRow] = {}
        self._changed: dict[int, StepRow] = {}

    @property
    def state(self) -> State:
        """How it stands."""
        if self.ended_at is None:
            return State.RUNNING
        return state_after(self.exit_code, has_result=self.restored is not None)

    @property
    def steps(self) -> Sequence[StepRow]:
        """What becomes of every pane, as far as it is known."""
        return self.restored.steps if self.restored is not None else tuple(self._steps.values())

    @property
    def settled(self) -> int:
        """How many steps came to their end."""
        return sum(step.result != _PLANNED for step in self.steps)

    @property
    def snapshots(self) -> tuple[str, ...]:
        """The snapshots it brings back, as far as they are known."""
        return self.restored.snapshots if self.restored is not None else tuple(filter(None, (self.asked.snapshot,)))

    @property
    def summary(self) -> Summary | None:
        """What it came to; None before its end."""
        return self.restored.summary if self.restored is not None else None

    @property
    def errors(self) -> tuple[Trouble, ...]:
        """The servers that could not be brought back."""
        return self.restored.errors if self.restored is not None else ()

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """The conversations it does not bring back; none before its end."""
        return self.restored.left_out if self.restored is not None else ()

    def take(self, raw: bytes) -> None:
        """Take in a line of its progress; what cannot be read says nothing."""
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            line = decoder_of(ProgressLine).decode(raw)
            if line.planned is not None:
                first = min((row.n for row in line.planned), default=1)
                self._steps = {n: row for n, row in self._steps.items() if n < first}
                self._note(line.planned)
            elif line.step is not None:
                self._note((line.step,))
            elif line.said:
                self.message = f"{line.said[0].upper()}{line.said[1:]}."
            elif line.restored is not None:
                self.restored = line.restored
                self.message = ""

    def news(self) -> list[StepRow]:
        """Return the steps that have changed since this was last asked, in their order."""
        self.further.clear()
        changed, self._changed = self._changed, {}
        return [changed[n] for n in sorted(changed)]

    def _note(self, rows: Sequence[StepRow]) -> None:
        self._steps |= {row.n: row for row in rows}
        self._changed |= {row.n: row for row in rows}
        self.further.set()


def state_after(exit_code: int | None, *, has_result: bool) -> State:
    """Return how a restore stands that has ended so; None: it was ended."""
    known = {0: State.DONE, 4: State.PARTLY}
    if exit_code is None or exit_code < 0:
        return State.INTERRUPTED
    return known.get(exit_code, State.FAILED) if has_result else State.FAILED


class Restores:
    """All of them. It belongs to the loop."""

    def __init__(self, follow: Follow, note: Callable[[Event], Awaitable[object]], now: Callable[[], datetime]) -> None:
        self._follow = follow
        self._note = note
        self._now = now
        self._known: dict[str, Restoring] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def known(self, caller: Caller) -> list[Restoring]:
        """Return those of a caller, root's being all, the one that was begun last first."""
        return [each for each in reversed(self._known.values()) if caller.uid in (0, each.asked.by.uid)]

    def find(self, id: str, caller: Caller) -> Restoring | None:
        """Return one of a caller, None when there is no such one."""
        return next((each for each in self.known(caller) if each.id == id), None)

    def begin(self, asked: Asked) -> Restoring:
        """Begin one, and return it at once. Raises `Conflict` while another is at work for the same user."""
        for each in self._known.values():
            if each.asked.uid == asked.uid and each.state is State.RUNNING:
                raise Conflict(f"Restore {each.id} is still running; another can begin when it has ended.")
        one = Restoring(asked, self._now())
        self._known[one.id] = one
        ended = [each.id for each in self._known.values() if each.state is not State.RUNNING]
        for id in ended[: max(0, len(ended) - _KEPT)]:
            del self._known[id]
        task = asyncio.get_running_loop().create_task(self._run(one))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return one

    def close(self) -> None:
        """End those that are at work; whoever asks for a restore the next time goes on from there."""
        for task in self._tasks:
            task.cancel()

    async def _run(self, one: Restoring) -> None:
        try:
            await self._carry_out(one)
        except BaseException:
            one.ended_at = self._now()
            raise
        at = self._now()
        try:
            # First written down: whoever sees that it is over finds that among the events, and so does the next daemon.
            with suppress(PerdureError):
                await self._tell(one)
                await self._note(self._end_of(one, at))
        finally:
            one.ended_at = at

    async def _carry_out(self, one: Restoring) -> None:
        telling = asyncio.get_running_loop().create_task(self._tell_on(one))
        try:
            ran = await self._follow(one.take, *one.asked.words)
            one.exit_code = ran.status
            if one.restored is None:
                one.message = refusal_of(ran).message
        except (PerdureError, OSError) as error:
            one.exit_code, one.message = 1, str(error)
        finally:
            telling.cancel()

    async def _tell_on(self, one: Restoring) -> None:
        while True:
            await one.further.wait()
            with suppress(PerdureError):
                await self._tell(one)
            await asyncio.sleep(_HUSH)

    async def _tell(self, one: Restoring) -> None:
        changed = one.news()
        if changed:
            data: dict[str, Any] = {
                "restore": one.id,
                "began_at": one.began_at.isoformat(),
                "snapshot": one.asked.snapshot,
                "settled": one.settled,
                "total": len(one.steps),
                "steps": [_told(row) for row in changed],
            }
            await self._note(Event(kind=EventKind.RESTORING, at=self._now(), server=one.asked.server, data=data))

    def _end_of(self, one: Restoring, at: datetime) -> Event:
        data = {
            "restore": one.id,
            "began_at": one.began_at.isoformat(),
            "socket": one.steps[0].socket if one.steps else None,
            "exit_code": one.exit_code,
            "message": one.message,
            "summary": None if one.summary is None else msgspec.structs.asdict(one.summary),
        }
        return Event(kind=EventKind.RESTORED, at=at, server=one.asked.server, data=data)


def _told(row: StepRow) -> dict[str, Any]:
    return {"n": row.n, "target": row.target, "action": row.action, "agent": row.agent, "result": row.result}
