"""How a real tmux server ends, and what can be told of it afterwards by somebody who did not start it."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable

import pytest

from perdure.host.demise import Demise, DemiseKind, Vigil, cause
from perdure.host.exits import Exit, Exits
from perdure.host.processes import read_entry
from perdure.model.run import Program
from tests.tmux_server import PATIENCE, TmuxServer

Ending = Callable[[TmuxServer], object]


def ended(tmux: TmuxServer, end: Ending) -> tuple[Demise, Exit]:
    """What is said of a server that was ended this way, and how it ended."""
    tmux.run("new-session", "-d", "-s", "a", "-n", "a", "exec sleep 1000")
    pid = tmux.pid
    entry = read_entry(pid)
    assert entry is not None
    vigil = Vigil.of(Program(pid=pid, start_ticks=entry.start_ticks))
    exits = Exits[str]()
    try:
        exits.add(pid, entry.start_ticks, "server")
        end(tmux)
        assert select.select([exits], [], [], PATIENCE)[0], "the server did not end"
        exit = exits.read()["server"]
    finally:
        exits.close()
    return cause(vigil, exit), exit


def by(number: signal.Signals) -> Ending:
    return lambda tmux: os.kill(tmux.pid, number)


IN_ORDER: dict[str, Ending] = {
    "told to": lambda tmux: tmux.run("kill-server"),
    "last session": lambda tmux: tmux.run("kill-session", "-t", "=a"),
    "last program": lambda tmux: os.kill(int(tmux.show("#{pane_pid}", "=a:")), signal.SIGKILL),
    "terminated": by(signal.SIGTERM),
}


@pytest.mark.parametrize("end", IN_ORDER.values(), ids=IN_ORDER)
def test_a_server_that_ends_in_good_order_is_not_said_to_be_killed(tmux: TmuxServer, end: Ending) -> None:
    demise, exit = ended(tmux, end)
    # A kernel before 6.15 does not tell once the server was reaped.
    assert (demise.kind, exit) in ((DemiseKind.EXITED, Exit(status=0)), (DemiseKind.UNKNOWN, Exit()))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT], ids=lambda number: number.name)
def test_a_server_that_was_killed_is_not_said_to_have_ended(tmux: TmuxServer, number: signal.Signals) -> None:
    demise, exit = ended(tmux, by(number))
    # Somewhere on the machine memory may really have run out meanwhile.
    kinds = {DemiseKind.SIGNAL} | ({DemiseKind.OOM} if number is signal.SIGKILL else set())
    assert (demise.kind in kinds and exit.signal == number) or exit == Exit()
