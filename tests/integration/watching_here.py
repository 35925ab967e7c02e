"""A daemon in the test's own process, for what cannot be brought about from outside."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from perdure.cli.up import open_world
from perdure.daemon.daemon import Daemon
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Run
from tests.tmux_server import PATIENCE


@asynccontextmanager
async def watching_here() -> AsyncIterator[Daemon]:
    """A daemon that has seen everything, to which nobody can connect; it ends with the block."""
    daemon = Daemon(partial(open_world, False))
    ready = asyncio.Event()

    def listen(_: Daemon) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(_for_ever())

    running = asyncio.get_running_loop().create_task(daemon.run(listen, ready=lambda *_: ready.set()))
    waiting = asyncio.get_running_loop().create_task(ready.wait())
    await asyncio.wait((running, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    try:
        if not running.done():
            yield daemon
    finally:
        daemon.stop()
        await running


async def _for_ever() -> None:
    await asyncio.Event().wait()


async def runs_of(daemon: Daemon) -> list[Run]:
    """Return the runs whose panes are there."""
    return await daemon.in_order(lambda rounds: list(rounds.supervisor.runs))


async def events_of(daemon: Daemon) -> list[StoredEvent]:
    """Return what is stored."""
    return await daemon.in_order(lambda rounds: list(rounds.world.store.read_events(limit=10_000)))


async def await_events(daemon: Daemon, kind: EventKind, count: int) -> list[Event]:
    """Return the events of a kind once there are so many of them."""
    until = time.monotonic() + PATIENCE
    while True:
        events = [each.event for each in await events_of(daemon)]
        found = [event for event in events if event.kind is kind]
        if len(found) >= count:
            return found
        assert time.monotonic() < until, [(event.kind, event.data) for event in events]
        await asyncio.sleep(0.05)


async def await_run(daemon: Daemon, target: str, is_it: Callable[[Run], bool] = lambda run: True) -> Run:
    """Return the run at a place once it is there and as it should be."""
    until = time.monotonic() + PATIENCE
    while True:
        runs = await runs_of(daemon)
        found = next((run for run in runs if run.place.target == target and is_it(run)), None)
        if found is not None:
            return found
        shown = [(run.id, run.place.target, run.status.word, run.status.cause, run.identity) for run in runs]
        assert time.monotonic() < until, f"{target} in vain: {shown}"
        await asyncio.sleep(0.02)
