"""`perdure up` at work: what it uses while nothing happens, while agents work, for every change, and how soon it tells."""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bench.crowd import Pane, kept_busy, panes_of, start_agents
from bench.measures.delays import delays
from bench.processes import cpu, peak
from bench.results import Live, PerChange, Share
from bench.sandbox import Sandbox
from bench.servers import SHAPES, Server, Shape, serve
from bench.watching import Watcher, watching
from perdure.model.run import Run

IDLE = "perdure up, idle"
BUSY = "perdure up, agents busy"
IDLE_ALONE = "nobody, idle"
BUSY_ALONE = "nobody, agents busy"
POLL_1S = "tmux list-panes -a, every second, idle"
POLL_250MS = "tmux list-panes -a, four times a second, idle"
POLL_250MS_BUSY = "tmux list-panes -a, four times a second, agents busy"

PANES = 200
AGENTS = 20
#: How people work; what is measured here depends on panes, not on how they are spread.
SHAPE: Shape = SHAPES["Nx4"]
#: After a start, a daemon looks a few more times at what may still be starting, in seconds.
_SETTLE = 8.0
#: How many changes are made a second to see what one of them costs.
_RATE = 4.0


def measure(sandbox: Sandbox, *, seconds: float, samples: int, sizes: list[int], width: int) -> Live:
    """Measure everything there is about the daemon: shares over so many seconds, each delay so many times."""
    chance = random.Random(5)  # the same moments in every run
    changes = [_small(sandbox, panes, seconds / 4, width) for panes in sizes if panes < PANES]
    _say(f"{PANES} panes, {AGENTS} agents")
    with serve(sandbox, SHAPE, PANES, width) as server:
        panes = panes_of(server)
        crowd, shells = panes[:: PANES // AGENTS], panes[1 :: PANES // AGENTS]
        start_agents(server, crowd, sandbox)
        bounds = _bounds(server, crowd, seconds / 4)
        with watching(server, sandbox) as watcher:
            watcher.await_runs(_all_known, f"the daemon did not recognise {AGENTS} agents")
            time.sleep(_SETTLE)
            idle = _share(IDLE, server, watcher, seconds)
            with kept_busy(server, crowd):
                busy = _share(BUSY, server, watcher, seconds)
            time.sleep(_SETTLE)
            changes.append(_per_change(server, watcher, shells[0], seconds / 4))
            held = peak(watcher.pid)
            found = delays(server, sandbox, watcher, panes, samples, chance)
            return Live(
                panes=PANES,
                agents=AGENTS,
                seconds=seconds,
                shares={share.name: share for share in (idle, busy, *bounds)},
                memory={IDLE: held, "after all changes": peak(watcher.pid)},
                delays=found,
                changes=tuple(changes),
            )


def _all_known(runs: list[Run]) -> bool:
    return sum(run.program is not None and run.identity is not None and run.identity.certain for run in runs) == AGENTS


def _small(sandbox: Sandbox, panes: int, seconds: float, width: int) -> PerChange:
    _say(f"{panes} panes")
    with serve(sandbox, SHAPE, panes, width) as server, watching(server, sandbox) as watcher:
        time.sleep(_SETTLE)
        return _per_change(server, watcher, panes_of(server)[0], seconds)


# Processor time


def _bounds(server: Server, crowd: list[Pane], seconds: float) -> list[Share]:
    """Measure what a server uses by itself, and what those use who only ask it for its panes again and again."""
    time.sleep(_SETTLE)
    shares = [_share(IDLE_ALONE, server, None, seconds)]
    shares += [_poll(POLL_1S, server, 1.0, seconds), _poll(POLL_250MS, server, 0.25, seconds)]
    with kept_busy(server, crowd):
        shares.append(_share(BUSY_ALONE, server, None, seconds))
        shares.append(_poll(POLL_250MS_BUSY, server, 0.25, seconds))
    return shares


def _share(name: str, server: Server, watcher: Watcher | None, seconds: float) -> Share:
    _say(name)

    def used() -> float:
        return 0.0 if watcher is None else cpu(watcher.pid, children=True)

    with _measured(name, server, used) as result:
        time.sleep(seconds)
    return result[0]


def _poll(name: str, server: Server, gap: float, seconds: float) -> Share:
    """Ask for the panes as somebody does who knows no better; only the tmux clients are counted, not who starts them."""
    _say(name)
    with _measured(name, server, _of_children) as result:
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            server.tmux("list-panes", "-a")
            time.sleep(max(0.0, now + gap - time.monotonic()))
    return result[0]


@contextmanager
def _measured(name: str, server: Server, used: Callable[[], float]) -> Iterator[list[Share]]:
    """Measure what is used within the block; the list has the result behind it."""
    pid = int(server.tmux("display-message", "-p", "#{pid}"))
    result: list[Share] = []
    began, before, server_before = time.monotonic(), used(), cpu(pid)
    yield result
    seconds = time.monotonic() - began
    result.append(Share(name=name, seconds=seconds, used=used() - before, server=cpu(pid) - server_before))


def _of_children() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _per_change(server: Server, watcher: Watcher, pane: Pane, seconds: float) -> PerChange:
    """Return what a change of a title costs, beside what the daemon uses for the same time without any."""
    _say(f"changes of {server.panes} panes")
    still = _share("no change", server, watcher, seconds)
    made = 0
    with _measured("changes", server, lambda: cpu(watcher.pid, children=True)) as result:
        until = time.monotonic() + seconds
        while (now := time.monotonic()) < until:
            made += 1
            pane.entitle(f"change {made}")
            time.sleep(max(0.0, now + 1 / _RATE - time.monotonic()))
    return PerChange(
        panes=server.panes,
        made=made,
        used=max(0.0, result[0].used - still.used) / made,
        server=max(0.0, result[0].server - still.server) / made,
    )


def _say(what: str) -> None:
    print(f"live: {what} …", file=sys.stderr, flush=True)
