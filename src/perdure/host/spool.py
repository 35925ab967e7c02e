"""Where hooks leave their records: `<spool>/<agent>/<pid>-<event>…`, one a process and event, the newest."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

#: How long the records of a process that has ended are kept: they may tell where it was last.
KEPT = timedelta(days=1)

#: What hooks call their records, also those that are not whole yet.
_RECORD = re.compile(r"\.?[0-9]+-[0-9A-Za-z_.-]+")
#: A hook may have looked up the directory just before it was renamed.
_ROUNDS = 3

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
        for name in stale(_records(directory), now, is_alive):
            with suppress(OSError):
                os.unlink(os.path.join(directory, name))


def newest(directory: str) -> datetime | None:
    """Return when the newest record of an agent was written, None when there is none."""
    return max((written for name, written in _records(directory) if not name.startswith(".")), default=None)


def clear(directory: str) -> bool:
    """Delete an agent's records with their directory, which makes its hooks do nothing. Raises OSError.

    Nothing else is deleted, and no link followed. Returns whether there is no such directory any more.
    """
    if not os.path.lexists(directory):
        return True
    if os.path.islink(directory) or not os.path.isdir(directory):
        return False
    if not _has_others(directory):
        # Hooks that run now find no directory, instead of filling it while it is emptied.
        aside = f"{directory}.{os.getpid()}"
        os.rename(directory, aside)
        for _ in range(_ROUNDS):
            _delete_records(aside)
            with suppress(OSError):
                os.rmdir(aside)
                return True
        os.rename(aside, directory)
    _delete_records(directory)
    return False


def _delete_records(directory: str) -> None:
    for name, _ in _records(directory):
        with suppress(FileNotFoundError):
            os.unlink(os.path.join(directory, name))


def _has_others(directory: str) -> bool:
    """Say whether something that is no record is in there."""
    with os.scandir(directory) as entries:
        return not all(map(_is_record, entries))


def _is_record(entry: os.DirEntry[str]) -> bool:
    return _RECORD.fullmatch(entry.name) is not None and entry.is_file(follow_symlinks=False)


def _directories(spool: str) -> list[str]:
    try:
        with os.scandir(spool) as found:
            return [entry.path for entry in found if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []


def _records(directory: str) -> list[Dated]:
    found = []
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in filter(_is_record, entries):
            with suppress(OSError, ValueError, OverflowError):
                status = entry.stat(follow_symlinks=False)
                found.append((entry.name, datetime.fromtimestamp(status.st_mtime, UTC)))
    return found


def is_alive(pid: int) -> bool:
    """Say whether there is a process of this number."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return pid > 0
