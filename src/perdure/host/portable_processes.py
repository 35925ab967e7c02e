"""The process table where there is no /proc, by psutil. Slower, the same answers."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from typing import TypeVar

import psutil

from perdure.host.processes import Entry, ProcessTable
from perdure.model.process import Process
from perdure.model.secrets import is_secret_name, is_secret_value

T = TypeVar("T")


class PortableTable(ProcessTable):
    """A process table whose details psutil reads."""

    def __init__(self, names: Collection[str]) -> None:
        self._known = {process.pid: process for process in psutil.process_iter()}
        self._kids: dict[int, list[int]] = {}
        for pid in self._known:
            parent = _quietly(self._known[pid].ppid)
            if parent is not None:
                self._kids.setdefault(parent, []).append(pid)
        self._foreground = _foreground_groups()
        self._allowed = frozenset(name for name in names if not is_secret_name(name))

    def tree(self, root: int, tty: str) -> tuple[Process, ...]:
        """Return the process a pane was started with and all below it, parents first."""
        if root not in self._known or _quietly(self._known[root].terminal) not in (None, tty):
            return ()
        queue = [root]
        for pid in queue:
            queue.extend(self._kids.get(pid, ()))
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
                return Process(
                    pid=found.pid,
                    ppid=found.ppid(),
                    start_ticks=round(started * 100),
                    started_at=datetime.fromtimestamp(started, UTC),
                    pgid=pgid,
                    foreground=self._foreground.get(found.pid) == pgid,
                    comm=found.name(),
                    exe=_quietly(found.exe) or None,
                    argv=tuple(_quietly(found.cmdline) or ()),
                    cwd=_quietly(found.cwd) or None,
                    environ=self._environ(found),
                )
        except (psutil.Error, OSError):
            return None

    def _environ(self, found: psutil.Process) -> Mapping[str, str]:
        pairs = _quietly(found.environ) or {}
        return {name: value for name, value in pairs.items() if name in self._allowed and not is_secret_value(value)}


def read_portably(names: Collection[str]) -> ProcessTable:
    """Read the process table through psutil and one `ps` for the foreground groups."""
    return PortableTable(names)


def _foreground_groups() -> dict[int, int]:
    # psutil does not tell the foreground group of a terminal; every ps does.
    listed = subprocess.run(["ps", "-axo", "pid=,tpgid="], capture_output=True, check=False).stdout
    rows = (line.split() for line in listed.splitlines())
    return {int(row[0]): int(row[1]) for row in rows if len(row) == 2}


def _quietly(read: Callable[[], T]) -> T | None:
    """Return what psutil reads, None where it may not or the process is gone."""
    try:
        return read()
    except (psutil.Error, OSError):
        return None
