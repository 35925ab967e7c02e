"""How much the machine is short of memory, as the kernel measures it (PSI)."""

from __future__ import annotations

import math
import re

from perdure.host.kernel import read_told

_MACHINE = "/proc/pressure/memory"
_OWN_CGROUP = "/proc/self/cgroup"
_CGROUPS = "/sys/fs/cgroup"
#: The share of the last ten seconds in which at least one task waited for memory.
_SOME = re.compile(rb"^some avg10=([0-9]+(?:\.[0-9]+)?) ", re.MULTILINE)
_UNIFIED = re.compile(rb"^0::(/.*)$", re.MULTILINE)


def memory_pressure(path: str = _MACHINE, *, own: str = _OWN_CGROUP, cgroups: str = _CGROUPS) -> float | None:
    """Return for how many percent of the last ten seconds something waited for memory; None where nobody tells.

    The machine's own number or that of the cgroup we are in (as the file `own` names it, below `cgroups`), whichever
    is higher: a cgroup may have reached its limit while the machine has room. Never raises.
    """
    known = [share for share in (_some(path), _some(_file_of(own, cgroups))) if share is not None]
    return max(known, default=None)


def _file_of(own: str, cgroups: str) -> str | None:
    """The pressure file of our cgroup; the root's has the machine's number, and there is none in it."""
    found = _UNIFIED.search(read_told(own))
    return f"{cgroups}{found[1].decode('utf-8', 'surrogateescape').rstrip('/')}/memory.pressure" if found else None


def _some(path: str | None) -> float | None:
    found = _SOME.search(read_told(path)) if path is not None else None
    share = float(found[1]) if found else math.nan
    return share if 0 <= share <= 100 else None
