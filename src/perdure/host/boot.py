"""When the machine was started."""

from __future__ import annotations

from datetime import datetime

from perdure.host.processes import read_processes


def booted_at() -> datetime:
    """Return when the machine was started, to the second, by the clock as it goes now. Reads the process table."""
    return read_processes(lambda *_: frozenset()).booted_at
