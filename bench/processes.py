"""What processes have used so far, by /proc: processor time, which other work on the machine does not change, and memory."""

from __future__ import annotations

import os
import re

from bench.sandbox import BenchFailed

_TICK = 1 / os.sysconf("SC_CLK_TCK")
# Behind the name in /proc/PID/stat: its own user and system time, and that of the children it has waited for.
_OWN, _CHILDREN = (11, 12), (13, 14)


def cpu(pid: int, *, children: bool = False) -> float:
    """Return the seconds of processor time a process has used, with `children` also those of its own that have ended."""
    fields = _read(pid, "stat").rpartition(")")[2].split()
    return sum(int(fields[each]) for each in (*_OWN, *(_CHILDREN if children else ()))) * _TICK


def peak(pid: int) -> int:
    """Return the most memory a process ever held, in KiB."""
    return _status(pid, "VmHWM")


def held(pid: int) -> int:
    """Return how much memory a process holds, in KiB."""
    return _status(pid, "VmRSS")


def _status(pid: int, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB$", _read(pid, "status"), re.MULTILINE)
    if found is None:
        raise BenchFailed(f"the kernel does not tell how much memory process {pid} holds")
    return int(found[1])


def _read(pid: int, name: str) -> str:
    try:
        with open(f"/proc/{pid}/{name}", encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as error:
        raise BenchFailed(f"process {pid} cannot be read any more: {error}") from None
