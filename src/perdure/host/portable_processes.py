"""The process table where there is no /proc, by psutil. Slower, the same answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import psutil

from perdure.host.processes import Entry, Names, ProcessTable, Replayed, nothing_replayed
from perdure.model.process import Process
from perdure.model.secrets import is_secret_name, is_secret_value
from perdure.model.text import decode

T = TypeVar("T")


class PortableTable(ProcessTable):
    """A process table whose details psutil reads."""

    def __init__(self, names: Names, replayed: Replayed | None = None) -> None:
        self._known = {process.pid: process for process in psutil.process_iter()}
        self._kids: dict[int, list[int]] = {}
        for pid in self._known:
            parent = _quietly(self._known[pid].ppid)
            if parent is not None:
                self._kids.setdefault(parent, []).append(pid)
        self._terminals = _terminals()
        self._wanted = names
        self._kept = replayed or nothing_replayed

    def tree(self, root: int, tty: str) -> tuple[Process, ...]:
        """Return the process a pane was started with and all below it, parents first."""
        if root not in self._known or self._terminals.get(root, _NO_TERMINAL).name != tty:
            return ()
        queue = [root]
        for pid in queue:
            # With a number given out anew while the table was read, it may run in a circle.
            queue += [child for child in self._kids.get(pid, ()) if child not in queue]
        return tuple(process for pid in queue if (process := self._read_one(self._known[pid])))

    def entry(self, pid: int) -> Entry | None:
        """Return None: there are no kernel's lines here."""
        return None

    def foreground(self, pid: int) -> int | None:
        """Return the process group in the foreground of a process's terminal, None where it has none, or is not there."""
        group = self._terminals.get(pid, _NO_TERMINAL).foreground
        return group if group > 0 else None

    @property
    def booted_at(self) -> datetime:
        """When the machine was started, to the second."""
        return datetime.fromtimestamp(psutil.boot_time(), UTC)

    def of_user(self, uid: int) -> Iterator[Process]:
        """Yield every process of a user, as far as it still runs."""
        for found in self._known.values():
            owners = _quietly(found.uids)
            if owners is not None and owners.real == uid and (process := self._read_one(found)):
                yield process

    def prefetch(self) -> None:
        """Do nothing: psutil reads what is asked for when it is asked for."""

    def _read_one(self, found: psutil.Process) -> Process | None:
        try:
            with found.oneshot():
                started = found.create_time()
                pgid = os.getpgid(found.pid)
                comm, exe = _text(found.name()), _text(_quietly(found.exe) or "") or None
                argv = tuple(_text(word) for word in _quietly(found.cmdline) or ())
                foreground = self._terminals.get(found.pid, _NO_TERMINAL).foreground == pgid
                replayed = self._kept(comm, exe, argv, foreground)
                return Process(
                    pid=found.pid,
                    ppid=found.ppid(),
                    start_ticks=round(started * 100),
                    started_at=datetime.fromtimestamp(started, UTC),
                    pgid=pgid,
                    foreground=foreground,
                    comm=comm,
                    exe=exe,
                    argv=argv,
                    cwd=_text(_quietly(found.cwd) or "") or None,
                    environ=_environ(found, self._wanted(comm, exe, argv), replayed),
                )
        except (psutil.Error, OSError):
            return None


def is_alive_portably(pid: int, start_ticks: int) -> bool:
    """Say whether this very process still runs, by the start time psutil tells."""
    started = _quietly(lambda: psutil.Process(pid).create_time())
    return started is not None and round(started * 100) == start_ticks


def _environ(found: psutil.Process, wanted: frozenset[str], replayed: frozenset[str]) -> Mapping[str, str]:
    pairs = _quietly(found.environ) or {}
    kept = {name: _text(pairs[name]) for name in pairs.keys() & (wanted | replayed)}
    return {
        name: value
        for name, value in kept.items()
        if name in replayed or not (is_secret_name(name) or is_secret_value(value))
    }


def read_portably(names: Names, replayed: Replayed | None = None) -> ProcessTable:
    """Read the process table through psutil and one `ps` for the foreground groups."""
    return PortableTable(names, replayed)


class _Terminal(NamedTuple):
    """A process's terminal, and the process group in the foreground there."""

    name: str
    foreground: int


_NO_TERMINAL = _Terminal("", -1)


def _terminals() -> dict[int, _Terminal]:
    # psutil does not tell the foreground group, and knows only the terminals there were when it was first asked.
    listed = subprocess.run(["ps", "-axo", "pid=,tpgid=,tty="], capture_output=True, check=False).stdout
    rows = (line.decode(errors="replace").split() for line in listed.splitlines())
    return {int(row[0]): _Terminal(f"/dev/{row[2]}", int(row[1])) for row in rows if len(row) == 3}


def _text(raw: str) -> str:
    """Return what psutil decoded in Python's way, which cannot be stored, as our text."""
    return raw if raw.isascii() else decode(os.fsencode(raw))


def _quietly(read: Callable[[], T]) -> T | None:
    """Return what psutil reads, None where it may not or the process is gone."""
    try:
        return read()
    except (psutil.Error, OSError):
        return None
