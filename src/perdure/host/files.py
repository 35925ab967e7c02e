"""The read-only view of a user's files that adapters judge by."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from datetime import UTC, datetime

from perdure.model.process import Process
from perdure.model.text import decode, encode
from perdure.ports import ForeignQuery


class Files:
    """`ports.HostView` over the real file system. Must run as the user whose files these are."""

    def __init__(self, home: str, *, spool: str, query: ForeignQuery) -> None:
        self.home = home
        self._spool = spool
        self._query = query

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        """Return the beginning or the end of a regular file, None when it is not one we can read."""
        try:
            # O_NONBLOCK: a fifo where a file should be must not hold up a save.
            handle = os.open(encode(path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        except (OSError, ValueError):
            return None
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                return None
            # Files of /proc say size 0 and are read from the start.
            if tail and status.st_size > limit:
                os.lseek(handle, -limit, os.SEEK_END)
            return _read_up_to(handle, limit)
        except OSError:
            return None
        finally:
            os.close(handle)

    def names(self, directory: str) -> Sequence[str]:
        """Return what a directory holds, () when there is none."""
        try:
            return [decode(name) for name in os.listdir(encode(directory))]
        except (OSError, ValueError):
            return ()

    def modified_at(self, path: str) -> datetime | None:
        """Return when the file was last written."""
        status = self._status(path)
        return None if status is None else _moment(status.st_mtime)

    def created_at(self, path: str) -> datetime | None:
        """Return when the file appeared, where the platform keeps that."""
        born = getattr(self._status(path), "st_birthtime", None)
        return None if born is None else _moment(born)

    def size(self, path: str) -> int | None:
        """Return the size in bytes."""
        status = self._status(path)
        return None if status is None else status.st_size

    def physical(self, path: str) -> str:
        """Return the path without symlinks."""
        try:
            return decode(os.path.realpath(encode(path)))
        except (OSError, ValueError):
            return path

    def open_files(self, pid: int) -> Sequence[str]:
        """Return what a process holds open."""
        directory = f"/proc/{pid}/fd"
        found = []
        for name in self.names(directory):
            try:
                found.append(decode(os.readlink(os.fsencode(f"{directory}/{name}"))))
            except OSError:
                continue
        return [path for path in found if path.startswith("/")]

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        """Return the payloads an agent's hooks dropped into `<spool>/<agent>/<pid>-*`, newest first, with their times.

        A record older than the process was left by another process that had the pid before. Of two written in one
        instant the one later in the alphabet is taken for newer: a `SessionStart` follows a `SessionEnd`.
        """
        directory = os.path.join(self._spool, agent)
        mine = [os.path.join(directory, name) for name in self.names(directory) if name.startswith(f"{process.pid}-")]
        dated = [(at, path) for path in mine if (at := self.modified_at(path)) and not os.path.isdir(encode(path))]
        mine_since = [each for each in sorted(dated, reverse=True) if each[0] >= process.started_at]
        # One that cannot be read is a record all the same: something happened after those before it.
        return [(written, self.read(path) or b"") for written, path in mine_since]

    def query(self, path: str, sql: str, parameters: Sequence[object] = ()) -> Sequence[tuple[object, ...]] | None:
        """Return rows of somebody's SQLite file."""
        return self._query(path, sql, parameters)

    @staticmethod
    def _status(path: str) -> os.stat_result | None:
        try:
            return os.stat(encode(path))
        except (OSError, ValueError):
            return None


def _moment(seconds: float) -> datetime | None:
    """Return the moment, None for one no calendar has: file systems keep what they are told."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _read_up_to(handle: int, limit: int) -> bytes:
    parts: list[bytes] = []
    while limit > 0 and (part := os.read(handle, min(limit, 1 << 20))):
        parts.append(part)
        limit -= len(part)
    return b"".join(parts)
