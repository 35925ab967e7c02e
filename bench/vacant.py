"""A socket whose server has ended, and what was saved of it: the place where it is brought back, again and again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from msgspec import Struct

from bench.measures import cold
from bench.sandbox import PATIENCE, BenchFailed, Sandbox, run
from bench.servers import Server, Shape, listens
from bench.timing import timed

_PANES = "#{session_name} #{window_index} #{pane_index} #{pane_width}x#{pane_height} #{pane_current_path}"


class Vacant(Struct, frozen=True, kw_only=True):
    """What a restore starts from."""

    server: Server
    shape: Shape
    #: State directories that hold the one snapshot, without and with the scrollback of its panes.
    lean: str
    full: str
    #: What its panes were: where, how large, in which directory.
    panes: str
    #: The layouts of its windows, by `session:index`.
    layouts: Mapping[str, str]

    def timed(self, work: Callable[[], object]) -> float:
        """Return the seconds `work` takes to make all panes where no server is; raise when they are others."""
        with self.alone():
            seconds = timed(work)
            self.check()
            return seconds

    @contextmanager
    def alone(self) -> Iterator[None]:
        """End whatever server is there before and afterwards, and wait until nothing of it runs any more."""
        _end(self.server)
        try:
            yield
        finally:
            _end(self.server)

    def check(self) -> None:
        """Raise unless the panes are those that were saved."""
        if (found := _panes(self.server)) != self.panes:
            raise BenchFailed(f"expected these panes:\n{self.panes}\nbut found:\n{found}")


def vacate(server: Server, shape: Shape, sandbox: Sandbox) -> Vacant:
    """Save a server that is about to end."""
    lean, full = sandbox.directory("state"), sandbox.directory("state")
    cold.save(server, lean, "saved", "--no-scrollback")
    cold.save(server, full, "saved")
    windows = server.tmux("list-windows", "-a", "-F", "#{session_name}:#{window_index} #{window_layout}").splitlines()
    layouts = dict(line.split() for line in windows)
    return Vacant(server=server, shape=shape, lean=lean, full=full, panes=_panes(server), layouts=layouts)


def _panes(server: Server) -> str:
    # A shell changes into its directory before it is one, but not before its pane is there.
    return server.tmux("list-panes", "-a", "-F", _PANES)


def _end(server: Server) -> None:
    if not listens(server.socket):
        return
    pids = server.tmux("list-panes", "-a", "-F", "#{pid}\n#{pane_pid}").split()
    server.tmux("kill-server")
    deadline = time.monotonic() + PATIENCE
    while _running(server, pids):
        if time.monotonic() > deadline:
            raise BenchFailed(f"the server on {server.socket} did not end")
        time.sleep(0.02)


def _running(server: Server, pids: list[str]) -> bool:
    """Say whether one of these processes still runs; one that only waits to be reaped does not."""
    listed = run(["ps", "-A", "-o", "pid=,stat="], server.environ).splitlines()
    alive = {pid for pid, state in (line.split() for line in listed) if not state.startswith("Z")}
    return not alive.isdisjoint(pids)
