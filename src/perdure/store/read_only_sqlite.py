"""An SQLite file read without making, changing or removing a file, and the stand-in for one that is missing."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence

from perdure import errors
from perdure.store import forking
from perdure.store.files import cannot
from perdure.store.foreign import file_uri
from perdure.store.sqlite import FAILURES, PATIENCE, SQLite, beside, translated


class ReadOnlySQLite(SQLite):
    """A `Driver` over an SQLite file that exists, as it stands."""

    #: The log, when it holds something and cannot be read.
    unread_log: str | None = None

    def __init__(self, path: str) -> None:
        self.path = path
        forking.lets_go(self)
        _, log, _ = beside(path)
        failure: errors.StoreUnusable | None = None
        for options in _ways(path):
            try:
                self._connection = _connected(path, options)
                self._writing = self._connection.cursor()
            except FAILURES as error:
                failure = failure or translated(path, error)
                continue
            if _IMMUTABLE in options and _has_content(log):
                self.unread_log = log
            return
        assert failure is not None
        raise failure

    @staticmethod
    def is_there(path: str) -> bool:
        """Return whether there is such a file. Raises `StoreUnusable` when that cannot be known."""
        try:
            os.stat(path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise cannot("The database", path, "be read", error) from error
        return True


class NoDatabase(SQLite):
    """A `Driver` over nothing: a database in memory, without tables yet."""

    files: Sequence[str] = ()

    def __init__(self) -> None:
        self.path = ":memory:"
        self._connection = sqlite3.connect(self.path, isolation_level=None)
        self._writing = self._connection.cursor()

    def serialized(self) -> bytes:
        """Return it as a file would have it."""
        return self._connection.serialize()


_IMMUTABLE = "immutable=1"


def _ways(path: str) -> Iterator[str]:
    """Yield how to open a database so that SQLite has no reason to make a file, the best way first.

    `mode=ro` alone would make the log and its index where it can, and fail where it cannot. With both there they
    are used as they are. Without them the file is all there is, unless a log was left without its index: then
    the file alone lacks what only the log holds.
    """
    _, log, index = beside(path)
    if os.path.exists(log) and os.path.exists(index):
        yield "mode=ro&readonly_shm=1"
    yield f"mode=ro&{_IMMUTABLE}"


def _connected(path: str, options: str) -> sqlite3.Connection:
    connection = sqlite3.connect(file_uri(path, options), uri=True, timeout=PATIENCE, isolation_level=None)
    try:
        # SQLite opens a file only when it is asked something.
        connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    except BaseException:
        connection.close()
        raise
    return connection


def _has_content(path: str) -> bool:
    try:
        return os.path.getsize(path) > 0
    except OSError:
        return False
