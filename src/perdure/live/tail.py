"""The end of a transcript without its beginning: whoever wants to know what was said last reads little, however long it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from perdure.model.process import Process
from perdure.ports import HostView

#: What is read of the end of a file.
TAIL = 1 << 19
#: The largest file that is read from its beginning: a document cannot be understood from its middle.
WHOLE = 1 << 22
#: Messages a database is asked for.
ROWS = 200


class TailView:
    """`ports.RecentView` over another view: the same files, of which only the ends are read."""

    def __init__(self, host: HostView, *, tail: int = TAIL, whole: int = WHOLE, rows: int = ROWS) -> None:
        self._host = host
        self._tail = tail
        self._whole = whole
        self.rows = rows

    @property
    def home(self) -> str:
        """The user's home directory."""
        return self._host.home

    def read(self, path: str, *, limit: int = 1 << 20, tail: bool = False) -> bytes | None:
        """Return the end of a file, or its beginning; nothing of one that would have to be read whole and is too large."""
        if tail:
            return self._host.read(path, limit=min(limit, self._tail), tail=True)
        if limit > self._whole and (self._host.size(path) or 0) > self._whole:
            return None
        return self._host.read(path, limit=limit)

    def names(self, directory: str) -> Sequence[str]:
        """Return what a directory holds."""
        return self._host.names(directory)

    def modified_at(self, path: str) -> datetime | None:
        """Return when the file was last written."""
        return self._host.modified_at(path)

    def created_at(self, path: str) -> datetime | None:
        """Return when the file appeared."""
        return self._host.created_at(path)

    def size(self, path: str) -> int | None:
        """Return the size in bytes, of the whole file."""
        return self._host.size(path)

    def physical(self, path: str) -> str:
        """Return the path without symlinks."""
        return self._host.physical(path)

    def open_files(self, pid: int) -> Sequence[str]:
        """Return what a process holds open."""
        return self._host.open_files(pid)

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        """Return what hooks recorded."""
        return self._host.hooks(agent, process)

    def query(self, path: str, sql: str, parameters: Sequence[object] = ()) -> Sequence[tuple[object, ...]] | None:
        """Return rows of an SQLite file."""
        return self._host.query(path, sql, parameters)
