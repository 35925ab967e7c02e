"""The process table where there is no /proc, by psutil. Slower, the same answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, TypeVar

import psutil

from perdure.host.processes import Entry, Names, ProcessTable
from perdure.model.process import Process
from perdure.model.secrets import is_secret_name, is_secret_value
from perdure.model.text import decode

T = TypeVar("T")


class PortableTable(ProcessTable):
    """A process table whose details psutil reads."""

    def __init__(self, names: Names) -> None:
        self._known = {process.pid: process for process in psutil.process_iter()}
        self._kids: dict[int, list[int]] = {}
        for pid in self._known:
            parent = _quietly(self._known[pid].ppid)
            if parent is not None:
                self._kids.setdefault(parent, []).append(pid)
        self._terminals = _terminals()
        self._wanted = names

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

    def prefetch(self) -> None:
        """Do nothing: psutil reads what is asked for when it is asked for."""

    def _read_one(self, found: psutil.Process) -> Process | None:
        try:
            with found.oneshot():
                started = found.create_time()
                pgid = os.getpgid(found.pid)
                comm, exe = _text(found.name()), _text(_quietly(found.exe) or "") or None
                argv = tuple(_text(word) for word in _quietly(found.cmdline) or ())
                return Process(
                    pid=found.pid,
                    ppid=found.ppid(),
                    start_ticks=round(started * 100),
                    started_at=datetime.fromtimestamp(started, UTC),
                    pgid=pgid,
                    foreground=self._terminals.get(found.pid, _NO_TERMINAL).foreground == pgid,
                    comm=comm,
                    exe=exe,
                    argv=argv,
                    cwd=_text(_quietly(found.cwd) or "") or None,
                    environ=_environ(found, self._wanted(comm, exe, argv)),
                )
        except (psutil.Error, OSError):
            return None


def _environ(found: psutil.Process, wanted: frozenset[str]) -> Mapping[str, str]:
    pairs = _quietly(found.environ) or {}
    kept = {name: _text(value) for name, value in pairs.items() if name in wanted and not is_secret_name(name)}
    return {name: value for name, value in kept.items() if not is_secret_value(value)}


def read_portably(names: Names) -> ProcessTable:
    """Read the process table through psutil and one `ps` for the foreground groups."""
    return PortableTable(names)


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
