"""Reading somebody else's SQLite file without leaving a trace."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Sequence
from contextlib import closing

from perdure.model import text

_PATIENCE = 0.25
_WAL = 2
#: How often a file is read again that was written while it was read as one that nobody writes.
_TRIES = 5
_UNWATCHED = "immutable=1"


def query(path: str, sql: str, parameters: Sequence[object] = ()) -> Sequence[tuple[object, ...]] | None:
    """Return rows of the SQLite file at `path`, text in the sense of `model.text`; None when it cannot be read.

    Nothing is written: not to the file, and no file appears beside it.
    """
    try:
        raw = text.encode(path)
        for _ in range(_TRIES):
            options = _options(raw)
            if options is None:
                return None
            before = _standing(raw)
            uri = file_uri(raw, options)
            with closing(sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)) as connection:
                rows = _rows(connection, sql, parameters)
            if _UNWATCHED not in options or _standing(raw) == before:
                return rows
        return None
    except (sqlite3.Error, sqlite3.Warning, OSError, ValueError, OverflowError):
        return None


def _standing(path: bytes) -> tuple[int, ...]:
    """What changes when somebody writes to a database: without its log SQLite would not notice."""
    status = os.stat(path)
    log = os.path.getsize(path + b"-wal") if os.path.exists(path + b"-wal") else 0
    return status.st_ino, status.st_size, status.st_mtime_ns, log


def _rows(connection: sqlite3.Connection, sql: str, parameters: Sequence[object]) -> list[tuple[object, ...]]:
    connection.text_factory = text.decode
    # Even a read-only connection would make the file that ATTACH names.
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.execute("PRAGMA query_only = ON")
    # The schema is a stranger's as well: its views get no functions that reach outside.
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection.execute(sql, tuple(parameters)).fetchall()


def _options(path: bytes) -> str | None:
    """How to open a database so that SQLite has no reason to make, change or remove a file; None for no way.

    `mode=ro` alone is not enough: for a database in WAL mode SQLite would still make the log and its index. With
    a log there, its index is used as it is; without one the file is all there is, and can be read as it stands.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        return None
    with open(path, "rb") as file:
        header = file.read(20)
    if len(header) < 20 or header[18] != _WAL:
        return "mode=ro"
    has_log = os.path.exists(path + b"-wal") and os.path.getsize(path + b"-wal") > 0
    return "mode=ro&readonly_shm=1" if has_log else f"mode=ro&{_UNWATCHED}"


def file_uri(path: str | bytes, options: str) -> str:
    """Return SQLite's address of a file. By hand: urllib is too dear for the save path."""
    raw = path if isinstance(path, bytes) else path.encode(errors="surrogateescape")
    plain = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"
    quoted = "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in raw)
    return f"file:{'//' if quoted.startswith('/') else ''}{quoted}?{options}"
