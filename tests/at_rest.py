"""Whether the programs of a tmux server have become themselves and have nothing left to do: what is seen then stays so."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tests.tmux_server import TmuxServer

#: Waiting for something to happen, stopped, or over: whoever is none of these is about to do something.
_RESTING = frozenset(b"STtZX")
HAS_PROC = os.path.isdir("/proc/self/task")


class Stand(NamedTuple):
    """How a process stands: unchanged between two looks, it has not run in between."""

    pid: int
    words: bytes
    state: int
    #: How often it was given, or gave up, a processor.
    switches: tuple[bytes, ...]


def descendants(pid: int) -> list[int]:
    """Return every process below one."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
    except OSError:
        return []
    return [each for child in children for each in (child, *descendants(child))]


def words_of(pid: int) -> bytes:
    """Return the words of a process as the kernel has them; nothing of one that is gone."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except OSError:
        return b""


def has_begun(tmux: TmuxServer, pane: str) -> bool:
    """Return whether a pane runs its program: for a while after the fork it is a copy of tmux.

    What tmux calls it says nothing in the first moments: that is the command it was asked for, whether or not it runs.
    """
    server, pid = map(int, tmux.show("#{pid} #{pane_pid}", pane).split())
    if not HAS_PROC:
        return tmux.show("#{pane_current_command}", pane) != "tmux"
    return words_of(pid) not in (b"", words_of(server))


def stand_of(pid: int) -> Stand | None:
    """Return how a process stands; None when it is gone."""
    try:
        with open(f"/proc/{pid}/status", "rb") as file:
            lines = file.read().splitlines()
    except OSError:
        return None
    state = next(line.split()[1] for line in lines if line.startswith(b"State:"))
    return Stand(pid, words_of(pid), state[0], tuple(line for line in lines if b"ctxt_switches" in line))


class Rest:
    """Looks at processes again and again; the call says whether all of them wait, and have done nothing since the last."""

    def __init__(self, pids: Callable[[], Sequence[int]]) -> None:
        self._pids = pids
        self._before: list[Stand | None] = []

    def __call__(self) -> bool:
        before, self._before = self._before, [stand_of(pid) for pid in self._pids()]
        return self._before == before and all(each is not None and each.state in _RESTING for each in self._before)


def rest_of(tmux: TmuxServer) -> Callable[[], bool]:
    """Return what says whether all panes of a server run their programs, and all there is in them waits."""

    def in_panes() -> list[int]:
        rows = [row.split() for row in tmux.run("list-panes", "-a", "-F", "#{pane_dead} #{pane_pid}").splitlines()]
        living = [int(pid) for dead, pid in rows if dead == b"0"]
        return [each for pid in living for each in (pid, *descendants(pid))]

    def have_begun() -> bool:
        if HAS_PROC:
            server = words_of(tmux.pid)
            return not any(words_of(pid) in (b"", server) for pid in in_panes())
        return b"tmux" not in tmux.run("list-panes", "-a", "-F", "#{pane_current_command}").split()

    rest = Rest(in_panes)
    return lambda: have_begun() and (not HAS_PROC or rest())
