"""Processes as a pane's evidence, and commands as something to run."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from msgspec import Struct


class Process(Struct, frozen=True, kw_only=True):
    """One living process, as far as we may read it."""

    pid: int
    ppid: int
    #: Kernel start time in clock ticks since boot; with the pid it names a process that is never another.
    start_ticks: int
    started_at: datetime
    pgid: int
    #: In the foreground process group of its terminal.
    foreground: bool
    comm: str
    #: None where the kernel does not tell us (another user's process, a process that just ended).
    exe: str | None = None
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    #: Only allow-listed variables, and none that looks like a secret unless the configuration names it.
    environ: Mapping[str, str] = {}

    @property
    def is_wordless(self) -> bool:
        """Whether nothing can be read of what it runs: it is on its way out, and can become no other program any more."""
        return self.exe is None and not self.argv


class Command(Struct, frozen=True, kw_only=True):
    """Something that can be started: argv, never a shell string."""

    argv: tuple[str, ...]
    cwd: str
    environ: Mapping[str, str] = {}


def is_below(pid: int, ancestor: int, parents: Mapping[int, int]) -> bool:
    """Say whether a process was started by another, or by one that was. `parents` may run in a circle."""
    seen: set[int] = set()
    while pid in parents and pid not in seen:
        seen.add(pid)
        pid = parents[pid]
        if pid == ancestor:
            return True
    return False
