"""SQLite, in WAL mode, with every commit on disk before it is reported."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import sleep
from typing import Any, NoReturn, TypeVar, cast

from perdure import errors
from perdure.model import text
from perdure.store import forking
from perdure.store.door import Door, Passage, door_of
from perdure.store.driver import Row, Spoilt, Value
from perdure.store.files import obstacle, private_directory, private_file
from perdure.store.foreign import file_uri

_Result = TypeVar("_Result")
_OLDEST = (3, 35, 0)
#: How long, in seconds, to wait for a lock.
PATIENCE = 10.0
_TRIES, _PAUSE = 100, 0.1

_CAUSES = {
    sqlite3.SQLITE_BUSY: "another process keeps it locked",
    sqlite3.SQLITE_LOCKED: "another process keeps it locked",
    sqlite3.SQLITE_READONLY: "it is read-only here",
    sqlite3.SQLITE_PERM: "access is denied",
    sqlite3.SQLITE_AUTH: "access is denied",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_IOERR: "reading or writing it failed",
    sqlite3.SQLITE_CANTOPEN: "it, or a file beside it, cannot be opened",
    sqlite3.SQLITE_TOOBIG: "a snapshot is too big for it",
    sqlite3.SQLITE_NOMEM: "there is not enough memory",
}
#: What SQLite says when a file cannot be made, changed or made longer; why it does not say.
_UNWRITABLE = {sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR}
_UNREADABLE = {sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS}
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT: "it is damaged",
    sqlite3.SQLITE_NOTADB: "it is not a database",
}
#: What SQLite says of a number in the header which no version of it has ever written there, and with no code of its own.
_NO_FORMAT = "unsupported file format"
#: What the caller did wrong, or asked for: raised as it is.
_NOT_ABOUT_THE_DATABASE = (sqlite3.ProgrammingError, sqlite3.IntegrityError)
#: What is raised over a database that cannot be used. A damaged page may say that a row is longer than any memory; and
#: what SQLite quotes of one may be no text.
FAILURES = (sqlite3.DatabaseError, MemoryError, UnicodeDecodeError)


#: Brings what is in the log into the database, as far as nobody is in the way, and in nobody's way.
CHECKPOINT = "PRAGMA wal_checkpoint(PASSIVE)"
#: How many pages of log whoever commits lets gather before doing that, where somebody else does it most of the time.
_PATIENT = 4000
#: How many KiB of pages a connection keeps that is one of several. What is read again comes out of the system's memory,
#: which costs next to nothing; what more takes and gives back, whenever others have written, leaves the process with holes.
_KEPT = 500


class SQLite:
    """A `Driver` over one SQLite file, made for the owner alone when it is missing; for one thread at a time."""

    dialect = "sqlite"
    #: Which file was opened; None where that does not matter.
    _file: tuple[int, int] | None = None
    #: Where to wait before writing; None where nothing is written.
    door: Door | None = None
    #: The thread that is inside SQLite, or inside a transaction; 0 for none.
    busy = 0
    _connection: sqlite3.Connection
    _writing: sqlite3.Cursor

    def __init__(self, path: str, *, again: tuple[int, int] | None = None) -> None:
        """With `again`, the `file` of a connection there was, that very file is opened: none is made in its place."""
        self.path = path
        if forking.is_barred():
            raise errors.StoreUnusable(
                f"The database {path} cannot be used: this process was forked off while its parent wrote to it.",
                path=path,
            )
        if sqlite3.sqlite_version_info < _OLDEST:
            raise errors.StoreUnusable(f"SQLite 3.35 or newer is needed; this Python has {sqlite3.sqlite_version}.")
        if os.path.exists(path) and not os.path.isfile(path):
            # Were a device taken for a damaged database, mending would move it away.
            raise errors.StoreUnusable(f"The database {path} cannot be used: it is not a regular file.", path=path)
        if again not in (None, _identity(path)):
            raise _replaced(path)
        refuse_lone_log(path)
        if again is None:
            private_directory(os.path.dirname(path))
            # SQLite gives the files it makes beside the database the database's own mode.
            private_file(os.path.realpath(path))
        self._file = again or _identity(path)
        if self._file is None:
            raise _replaced(path)
        self.door = door_of(path)
        if self.door.is_first:
            # Only then: whoever is in has read the log already, and what it takes grows with the log.
            refuse_broken_log(path)
        forking.lets_go(self)
        forking.enter(self)
        try:
            self._connect()
        finally:
            self.busy = 0
        self.door.look_is_over()

    def _connect(self) -> None:
        path = self.path
        try:
            # Never makes a file: where the one just seen is gone, its log would not outlive an empty one in its place.
            self._connection = sqlite3.connect(
                file_uri(path, "mode=rw"), uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
            )
        except _NOT_ABOUT_THE_DATABASE:
            raise
        except sqlite3.DatabaseError as error:
            raise translated(self.path, error) from error
        #: For what gives no rows back: every append would make four of them.
        self._writing = self._connection.cursor()
        try:
            self._prepare()
        except BaseException:
            self.close()
            raise

    @property
    def file(self) -> tuple[int, int] | None:
        """Which file was opened, whatever stands under its name by now; None where that does not matter."""
        return self._file

    def be_patient(self) -> None:
        """Leave it to others to empty the log: whoever commits here does so only when it has become very long."""
        self.fetch(f"PRAGMA wal_autocheckpoint = {_PATIENT}")

    def keep_little(self) -> None:
        """Keep few pages in memory: there is one such connection for every thread at work."""
        self.execute(f"PRAGMA cache_size = -{_KEPT}")

    @property
    def files(self) -> Sequence[str]:
        """The database and whatever SQLite has put beside it."""
        return tuple(name for name in beside(self.path) if os.path.exists(name))

    def execute(self, sql: str, **parameters: Value) -> int:
        """Run one statement and return how many rows it changed."""
        if not self.busy:
            return self._apart(lambda: self.execute(sql, **parameters))
        if Spoilt in map(type, parameters.values()):
            sql, parameters = _as_bytes(sql, parameters)
        try:
            return self._connection.execute(sql, parameters).rowcount
        except _NOT_ABOUT_THE_DATABASE:
            raise
        except FAILURES as error:
            raise translated(self.path, error) from error

    def run(self, sql: str, *values: Value) -> int:
        """Run one statement whose parameters have numbers and return how many rows it changed."""
        if not self.busy:
            return self._apart(lambda: self.run(sql, *values))
        try:
            return self._writing.execute(sql, values).rowcount
        except _NOT_ABOUT_THE_DATABASE:
            raise
        except FAILURES as error:
            raise translated(self.path, error) from error

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Run one statement for each of some rows, inside a transaction."""
        if not self.busy:
            return self._apart(lambda: self.execute_many(sql, rows))
        try:
            self._connection.executemany(sql, rows)
        except _NOT_ABOUT_THE_DATABASE:
            raise
        except FAILURES as error:
            raise translated(self.path, error) from error

    def fetch(self, sql: str, **parameters: Value) -> list[Row]:
        """Run one query and return all rows."""
        if not self.busy:
            return self._apart(lambda: self.fetch(sql, **parameters))
        if Spoilt in map(type, parameters.values()):
            sql, parameters = _as_bytes(sql, parameters)
        try:
            return self._connection.execute(sql, parameters).fetchall()
        except _NOT_ABOUT_THE_DATABASE:
            raise
        except FAILURES as error:
            raise translated(self.path, error) from error

    def fetch_as_is(self, sql: str, **parameters: Value) -> list[Row]:
        """Run one query and return all rows; text that is no UTF-8 is `Spoilt`."""
        try:
            return self.fetch(sql, **parameters)
        except errors.StoreDamaged as error:
            if not isinstance(error.__cause__, sqlite3.DatabaseError) or not _is_about_text(error.__cause__):
                raise
        # Only now: nearly always there is no such text, and to look at each costs several times what SQLite takes.
        self._connection.text_factory = text_of
        try:
            return self.fetch(sql, **parameters)
        finally:
            self._connection.text_factory = str

    def transaction(self, server: str | None = None) -> _Transaction:
        """Make everything inside happen or not happen; SQLite has one writer at a time, whatever the server."""
        return _Transaction(self)

    def begin(self) -> None:
        """Begin a transaction that writes."""
        forking.enter(self)
        try:
            self._begin()
        except BaseException:
            self.busy = 0
            raise

    def _begin(self) -> None:
        try:
            self._writing.execute("BEGIN IMMEDIATE")
        except sqlite3.DatabaseError as error:
            raise translated(self.path, error) from error
        try:
            found = os.stat(self.path)
            is_another = (found.st_dev, found.st_ino) != self._file
        except OSError:
            is_another = True
        except BaseException:
            self.roll_back()
            raise
        if is_another and self._file is not None:
            # What goes into a file that a repair has set aside is lost, and its numbers are given again elsewhere.
            self.roll_back()
            raise _replaced(self.path)

    def commit(self) -> None:
        """Let what was done since happen."""
        try:
            self._writing.execute("COMMIT")
        except BaseException as error:
            self.roll_back()
            if isinstance(error, sqlite3.DatabaseError):
                raise translated(self.path, error) from error
            raise
        self.busy = 0

    def roll_back(self) -> None:
        """Let nothing of what was done since happen."""
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if self._connection.in_transaction:
            with suppress(sqlite3.Error):
                self._connection.execute("ROLLBACK")
        self.busy = 0

    def has_table(self, name: str) -> bool:
        """Return whether there is such a table."""
        return bool(self.fetch("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = :name", name=name))

    def integrity(self) -> Sequence[str]:
        """Return what SQLite's own check finds, () for nothing."""
        try:
            found = [str(row[0]) for row in self.fetch("PRAGMA integrity_check(20)")]
        except errors.StoreDamaged as error:
            return (error.message,)
        return () if found == ["ok"] else tuple(line for text in found for line in text.splitlines())

    def close(self) -> None:
        """Let go of the database."""
        self.door = None
        with suppress(sqlite3.Error):
            self._apart(self._connection.close)

    def begin_anew(self) -> None:
        """Let go, in a child, of a connection that is the parent's; it has to be opened again here.

        Closed while nothing happens over it, it takes nothing from the parent, which holds the locks; but a transaction
        that was under way would be rolled back in the log that both have.
        """
        there = self.__dict__.get("_connection"), self.__dict__.get("_writing")
        if self.busy or not forking.is_still():
            forking.never_freed(there)
        elif there[0] is not None:
            with suppress(sqlite3.Error):
                there[0].close()
        self.busy, self.door = 0, None
        self._connection = self._writing = cast("Any", _Inherited(self.path))

    def _apart(self, call: Callable[[], _Result]) -> _Result:
        """Do one thing outside a transaction, when no child is being begun."""
        forking.enter(self)
        try:
            return call()
        finally:
            self.busy = 0

    def _prepare(self) -> None:
        if self.fetch("PRAGMA journal_mode") != [("wal",)]:
            self._switch_to_wal()
        self.execute("PRAGMA synchronous = FULL")
        self.execute("PRAGMA foreign_keys = ON")

    def _switch_to_wal(self) -> None:
        # Two processes that do this to a new database at once can get "locked" without SQLite ever waiting.
        for _ in range(_TRIES):
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                    break
                sleep(_PAUSE)
            else:
                return
        self.execute("PRAGMA journal_mode = WAL")


class _Inherited:
    """What a child has in place of its parent's connection."""

    in_transaction = False

    def __init__(self, path: str) -> None:
        self._path = path

    def close(self) -> None:
        """Do nothing."""

    def __getattr__(self, name: str) -> NoReturn:
        raise errors.StoreUnusable(
            f"The database {self._path} cannot be used: it was opened by the process that this one was forked off.",
            path=self._path,
        )


class _Transaction:
    """What `SQLite.transaction` returns. Not a generator: every append goes through here."""

    __slots__ = ("_driver", "_passage")

    def __init__(self, driver: SQLite) -> None:
        self._driver = driver
        self._passage: Passage | None = None

    def __enter__(self) -> None:
        door = self._driver.door
        if door is not None and not door.is_inside():
            self._passage = door.passed(PATIENCE)
            self._passage.__enter__()
        try:
            self._driver.begin()
        except BaseException:
            self._leave()
            raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._driver.commit()
            else:
                self._driver.roll_back()
        finally:
            self._leave()

    def _leave(self) -> None:
        if self._passage is not None:
            self._passage.__exit__(None, None, None)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def beside(path: str) -> tuple[str, str, str]:
    """Return the names of a database's files: itself, its log, the log's index."""
    return path, f"{path}-wal", f"{path}-shm"


def text_of(raw: bytes) -> str:
    """Return text out of a database; `Spoilt` when it is no UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return Spoilt(text.decode(raw))


def _as_bytes(sql: str, parameters: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
    """A statement and its parameters, of which those that are no UTF-8 are text by SQLite's word alone."""
    spoilt = {name: value.raw for name, value in parameters.items() if isinstance(value, Spoilt)}
    for name in spoilt:
        sql = re.sub(rf":{name}\b", f"CAST(:{name} AS TEXT)", sql)
    return sql, {**parameters, **spoilt}


def _is_about_text(error: sqlite3.DatabaseError) -> bool:
    """Whether it is Python that found text that is no UTF-8: SQLite itself does not mind."""
    return getattr(error, "sqlite_errorcode", None) is None and "decode" in str(error)


def lone_log(path: str) -> str | None:
    """Return the log of a database that is not there, or empty, where the log holds something; else None.

    SQLite takes such a log for a leftover and deletes it, even where it may only read. It can be all there is of the
    latest that was written, and belongs to a database that was moved away, say.
    """
    # SQLite, too, looks for it beside the file itself and not beside a link to it. The log first: a database that is
    # being made has something in it before its log has.
    database, log, _ = beside(os.path.realpath(path))
    return log if _size(log) and not _size(database) else None


def refuse_lone_log(path: str) -> None:
    """Raise `StoreDamaged` where opening the database at `path` would cost a log that is not its own to throw away."""
    log = lone_log(path)
    if log is not None:
        raise errors.StoreDamaged(
            f"The database {path} is {'empty' if os.path.exists(path) else 'not there'}, but its log {log} holds what "
            "was written to it: put the database back beside its log, or let `perdure check --repair` set the log "
            "aside and begin a new one.",
            path=path,
        )


def refuse_broken_log(path: str) -> None:
    """Raise `StoreDamaged` where opening the database at `path` would cost what was committed behind a damaged place."""
    log = beside(os.path.realpath(path))[1]
    if not _size(log):
        return
    from perdure.store.log import is_broken

    # Twice: a program that is not ours may write to it right now, and be read in the midst.
    if is_broken(log) and is_broken(log):
        raise errors.StoreDamaged(
            f"The database {path} cannot be used: its log {log} is damaged, and what was written behind that place "
            "would be lost; `perdure check --repair` reads it back.",
            path=path,
        )


def _size(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0


def _replaced(path: str) -> errors.StoreUnusable:
    return errors.StoreUnusable(
        f"The database {path} cannot be used: it was moved away, or another was put in its place, since it was opened; "
        "the store has to be opened again.",
        path=path,
    )


def translated(path: str, error: sqlite3.DatabaseError | MemoryError | UnicodeDecodeError) -> errors.StoreUnusable:
    """Return our sentence for what SQLite says about the database at `path`."""
    if isinstance(error, MemoryError):
        return errors.StoreDamaged(
            f"The database {path} cannot be used: SQLite asks for more memory than there is, as it does where a length in "
            "it is damaged; `perdure check --repair` sets it aside and rebuilds it where that is so.",
            path=path,
        )
    code = getattr(error, "sqlite_errorcode", None)
    primary = None if code is None else code & 0xFF
    if isinstance(error, UnicodeDecodeError) or primary in _DAMAGE or _is_about_text(error) or str(error) == _NO_FORMAT:
        cause = _DAMAGE.get(primary or 0, _DAMAGE[sqlite3.SQLITE_CORRUPT])
        return errors.StoreDamaged(
            f"The database {path} cannot be used: {cause}; `perdure check --repair` sets it aside and rebuilds it.",
            path=path,
        )
    is_about_writing = primary in _UNWRITABLE and code not in _UNREADABLE
    cause = (obstacle(path) if is_about_writing else None) or _CAUSES.get(primary or 0, str(error))
    return errors.StoreUnusable(f"The database {path} cannot be used: {cause}.", path=path, cause=cause)
