"""Where hooks leave their records: `<spool>/<agent>/<pid>-<event>…`, one a process and event, the newest."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

#: How long the records of a process that has ended are kept: they may tell where it was last.
KEPT = timedelta(days=1)

#: Name and time of writing.
Dated = tuple[str, datetime]


def spool_dir(state_dir: str) -> str:
    """Return the directory of all records."""
    return os.path.join(state_dir, "spool")


def stale(records: Iterable[Dated], now: datetime, is_alive: Callable[[int], bool]) -> list[str]:
    """Return the records nobody will ask for: of processes that have ended, and left half written, both a while ago."""
    doomed = []
    for name, written in records:
        pid = name.lstrip(".").partition("-")[0]
        if now - written > KEPT and (name.startswith(".") or not (pid.isdecimal() and is_alive(int(pid)))):
            doomed.append(name)
    return doomed


def prune(spool: str, now: datetime) -> None:
    """Delete what is stale. Nothing here is worth failing for: what cannot be deleted stays."""
    for directory in _directories(spool):
        for name in stale(_records(directory), now, _is_alive):
            with suppress(OSError):
                os.unlink(os.path.join(directory, name))


def newest(directory: str) -> datetime | None:
    """Return when the newest record of an agent was written, None when there is none."""
    return max((written for name, written in _records(directory) if not name.startswith(".")), default=None)


def clear(directory: str) -> None:
    """Delete an agent's records with their directory, which makes its hooks do nothing. Raises OSError."""
    for name, _ in _records(directory):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))
    with suppress(FileNotFoundError):
        os.rmdir(directory)


def _directories(spool: str) -> list[str]:
    try:
        with os.scandir(spool) as found:
            return [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _records(directory: str) -> list[Dated]:
    found = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with suppress(OSError, ValueError, OverflowError):
                status = entry.stat(follow_symlinks=False)
                found.append((entry.name, datetime.fromtimestamp(status.st_mtime, UTC)))
    return found


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return pid > 0
