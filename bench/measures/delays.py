"""How soon a change is told: from just before it is made until the event came in at somebody who follows."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from bench.crowd import Pane, switch
from bench.sandbox import BenchFailed, Sandbox
from bench.servers import Server, await_server
from bench.timing import Timing
from bench.watching import Follower, IsIt, Watcher
from perdure.model.event import Event, EventKind
from perdure.model.run import Run, RunState

TITLE = "title -> event"
REGISTRY = "registry -> event"
AGENT_ENDED = "agent ended -> event"
PANE_KILLED = "pane killed -> event"
SERVER_KILLED = "server killed -> event"
IDENTITY_KEPT = "conversation -> store"
WINDOW_KEPT = "new window -> store"
NAME_KEPT = "window renamed -> store"

#: Changes come when they come: with pauses between these, in seconds.
_PAUSES = (0.2, 0.8)
#: Servers are killed once for so many other changes, since each has to be started first.
_PER_SERVER = 5


class _Stage(Struct, kw_only=True):
    """What the changes are made to."""

    server: Server
    watcher: Watcher
    follower: Follower
    panes: Sequence[Pane]
    samples: int
    chance: random.Random

    def pause(self) -> None:
        time.sleep(self.chance.uniform(*_PAUSES))

    def agents(self) -> list[Run]:
        """The runs with an agent in them, once there are as many as there were."""
        return [run for run in self.watcher.runs() if run.program is not None]


def delays(
    server: Server, sandbox: Sandbox, watcher: Watcher, panes: Sequence[Pane], samples: int, chance: random.Random
) -> dict[str, Timing]:
    """Return all delays; every kind of change is made so often, and awaited every time."""
    stage = _Stage(
        server=server, watcher=watcher, follower=watcher.follow(), panes=panes, samples=samples, chance=chance
    )
    found: dict[str, list[float]] = {}
    for measure in (_titles, _conversations, _ends, _windows, _servers):
        what = measure.__name__.strip("_")
        print(f"live: {what} …", file=sys.stderr, flush=True)
        try:
            found |= measure(stage, sandbox)
        except BenchFailed as error:
            raise BenchFailed(f"{what}: {error}") from None
    return {name: Timing(samples=tuple(taken)) for name, taken in found.items()}


def _titles(stage: _Stage, _: Sandbox) -> dict[str, list[float]]:
    taken = []
    for number in range(stage.samples):
        stage.pause()
        pane, title = stage.chance.choice(stage.panes), f"at step {number}"
        taken += stage.follower.delay(lambda: pane.entitle(title), _told(EventKind.TITLE_CHANGED, title=title))  # noqa: B023
    return {TITLE: taken}


def _conversations(stage: _Stage, _: Sandbox) -> dict[str, list[float]]:
    agents, home = stage.agents(), stage.server.environ["HOME"]
    told, kept = [], []
    for number in range(stage.samples):
        stage.pause()
        program = agents[number % len(agents)].program
        assert program is not None
        now: list[str] = []
        first, second = stage.follower.delay(
            lambda: now.append(switch(home, program.pid)),  # noqa: B023
            lambda event: event.kind is EventKind.IDENTITY_CHANGED and event.data["conversation"] in now,  # noqa: B023
            _told(EventKind.SAVED),
        )
        told.append(first)
        kept.append(second)
    return {REGISTRY: told, IDENTITY_KEPT: kept}


def _ends(stage: _Stage, _: Sandbox) -> dict[str, list[float]]:
    taken: list[float] = []
    everyone = len(stage.agents())
    while len(taken) < stage.samples:
        for run in stage.agents()[: stage.samples - len(taken)]:
            stage.pause()
            taken += stage.follower.delay(
                _killed(run), _told(EventKind.STATE_CHANGED, of=run.id, state=str(RunState.EXITED))
            )
        stage.watcher.await_runs(
            lambda runs: sum(run.program is not None for run in runs) == everyone, "the agents did not come back"
        )
    return {AGENT_ENDED: taken}


def _windows(stage: _Stage, _: Sandbox) -> dict[str, list[float]]:
    """Make a window of two panes, rename it, and kill both panes."""
    made, named, killed = [], [], []
    tmux, delay = stage.server.tmux, stage.follower.delay
    for number in range((stage.samples + 1) // 2):
        stage.pause()
        where = f"=s0:{100 + number}"
        made += delay(
            lambda: tmux("new-window", "-d", "-t", where, "-n", "made"),  # noqa: B023
            _told(EventKind.RUN_CREATED),
            _told(EventKind.SAVED),
        )[1:]
        delay(lambda: tmux("split-window", "-d", "-t", where), _told(EventKind.RUN_CREATED), _told(EventKind.SAVED))  # noqa: B023
        stage.pause()
        named += delay(lambda: tmux("rename-window", "-t", where, "renamed"), _told(EventKind.SAVED))  # noqa: B023
        ids = tmux("list-panes", "-t", where, "-F", "#{pane_id}").split()
        runs = {run.pane: run.id for run in stage.watcher.runs()}
        for id in ids:
            stage.pause()
            killed += delay(lambda: tmux("kill-pane", "-t", id), _told(EventKind.RUN_DELETED, of=runs[id]))  # noqa: B023
    return {WINDOW_KEPT: made, NAME_KEPT: named, PANE_KILLED: killed}


def _servers(stage: _Stage, sandbox: Sandbox) -> dict[str, list[float]]:
    """Start small servers beside the large one, and kill each with -9."""
    taken: list[float] = []
    folder, home = os.path.dirname(stage.server.socket), sandbox.environ["HOME"]
    for number in range(max(1, stage.samples // _PER_SERVER)):
        socket = os.path.join(folder, f"small{number}")
        argv = ["tmux", "-D", "-f", "/dev/null", "-S", socket]
        process = subprocess.Popen(argv, env=stage.server.environ, cwd="/", start_new_session=True)
        try:
            await_server(socket)
            small = Server(panes=1, socket=socket, environ=stage.server.environ)
            stage.follower.delay(
                lambda: small.tmux("new-session", "-d", "-s", "a", "-n", "a", "-c", home),  # noqa: B023
                _told(EventKind.SERVER_APPEARED, socket=os.path.realpath(socket)),
            )
            stage.pause()
            taken += stage.follower.delay(process.kill, _told(EventKind.SERVER_DIED, socket=os.path.realpath(socket)))
        finally:
            process.kill()
            process.wait()
            os.unlink(socket)
    return {SERVER_KILLED: taken}


def _killed(run: Run) -> Callable[[], None]:
    assert run.program is not None
    pid = run.program.pid
    return lambda: os.kill(pid, signal.SIGKILL)


def _told(kind: EventKind, *, of: str | None = None, **data: object) -> IsIt:
    """Return what recognises an event of a kind, of a run, with these data."""

    def is_it(event: Event) -> bool:
        return event.kind is kind and of in (None, event.run) and all(event.data.get(k) == v for k, v in data.items())

    return is_it
