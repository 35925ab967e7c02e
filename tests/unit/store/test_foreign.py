"""Somebody else's SQLite files: read, and left exactly as they were."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from perdure.model import text
from perdure.store import foreign
from perdure.store.foreign import query
from tests.conftest import PrivateHome

SQL = "SELECT id, title FROM session ORDER BY id"
ROWS = [("1", "one"), ("2", "zwei ü")]


@pytest.fixture
def folder(private_home: PrivateHome) -> bytes:
    path = os.path.join(private_home.home, "theirs")
    os.mkdir(path)
    return os.fsencode(path)


def fill(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE session (id TEXT, title TEXT)")
    connection.executemany("INSERT INTO session VALUES (?, ?)", ROWS)
    connection.commit()


def state(folder: bytes) -> dict[bytes, tuple[bytes, int, int]]:
    """Every file's content, time and mode."""
    found = {}
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        with open(path, "rb") as file:
            found[name] = (file.read(), os.stat(path).st_mtime_ns, os.stat(path).st_mode)
    return found


def assert_untouched(folder: bytes, path: bytes, expected: object) -> None:
    before = state(folder)
    assert query(text.decode(path), SQL) == expected
    assert state(folder) == before


@pytest.mark.parametrize(
    "name", [b"plain.db", b"a b?c#d%41.db", "ünï.db".encode(), b"latin-\xe9.db", b"q'\"&=+.db", b"new\nline.db"]
)
def test_any_name_is_read(folder: bytes, name: bytes) -> None:
    path = os.path.join(folder, name)
    with closing(sqlite3.connect(os.fsdecode(os.path.join(folder, b"made.db")))) as connection:
        fill(connection)
    os.rename(os.path.join(folder, b"made.db"), path)
    assert_untouched(folder, path, ROWS)


@pytest.fixture
def writer(folder: bytes) -> Iterator[sqlite3.Connection]:
    """Their program, running, with its log not yet brought into the file."""
    with closing(sqlite3.connect(os.path.join(os.fsdecode(folder), "live.db"))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        fill(connection)
        yield connection


def test_a_database_in_use_is_read_with_its_log(folder: bytes, writer: sqlite3.Connection) -> None:
    # The index is shared memory, where readers leave their marks; what is kept stays as it was.
    before = {name: kept for name, kept in state(folder).items() if not name.endswith(b"-shm")}
    assert query(text.decode(folder + b"/live.db"), SQL) == ROWS
    after = state(folder)
    assert {name: kept for name, kept in after.items() if not name.endswith(b"-shm")} == before
    writer.execute("INSERT INTO session VALUES ('3', 'three')")
    writer.commit()
    assert query(text.decode(folder + b"/live.db"), "SELECT count(*) FROM session") == [(3,)]


def test_a_database_that_was_closed_gets_no_files_beside_it(folder: bytes) -> None:
    path = folder + b"/closed.db"
    with closing(sqlite3.connect(os.fsdecode(path))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        fill(connection)
    assert os.listdir(folder) == [b"closed.db"]
    assert_untouched(folder, path, ROWS)


def test_a_log_without_its_index_is_not_read_at_all(folder: bytes, writer: sqlite3.Connection) -> None:
    for ending in (b"", b"-wal"):
        shutil.copy(folder + b"/live.db" + ending, folder + b"/copy.db" + ending)
    assert_untouched(folder, folder + b"/copy.db", None)


def test_a_database_that_is_locked_costs_a_moment(folder: bytes) -> None:
    path = folder + b"/locked.db"
    with closing(sqlite3.connect(os.fsdecode(path), isolation_level=None)) as connection:
        fill(connection)
        connection.execute("BEGIN EXCLUSIVE")
        assert query(text.decode(path), SQL) is None


def test_what_cannot_be_read_is_none(folder: bytes) -> None:
    with open(folder + b"/text.db", "wb") as file:
        file.write(b"not a database at all " * 50)
    os.mkfifo(folder + b"/pipe.db")
    for name in (b"/none.db", b"/text.db", b"/pipe.db", b"", b"/none/x.db"):
        assert query(text.decode(folder + name), SQL) is None
    assert not os.path.exists(folder + b"/none.db")
    assert query("bad\0path", SQL) is None


def test_nothing_can_be_written(folder: bytes) -> None:
    path = folder + b"/plain.db"
    with closing(sqlite3.connect(os.fsdecode(path))) as connection:
        fill(connection)
    before = state(folder)
    for sql in ("DELETE FROM session", "CREATE TABLE x (a)", "PRAGMA journal_mode = WAL", "VACUUM", "nonsense"):
        query(text.decode(path), sql)
    assert query(text.decode(path), "ATTACH ? AS other", (os.fsdecode(folder + b"/new.db"),)) is None
    assert state(folder) == before


def test_parameters_and_odd_text(folder: bytes) -> None:
    path = folder + b"/odd.db"
    with closing(sqlite3.connect(os.fsdecode(path))) as connection:
        fill(connection)
        connection.execute("INSERT INTO session VALUES ('3', CAST(x'61ff62' AS TEXT))")
        connection.commit()
    assert query(text.decode(path), "SELECT title FROM session WHERE id = ?", ("3",)) == [(text.decode(b"a\xffb"),)]
    assert query(text.decode(path), SQL, ("one too many",)) is None


def test_a_file_that_is_written_while_it_is_read_is_read_again(folder: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    path = os.path.join(folder, b"theirs.db")
    with closing(sqlite3.connect(os.fsdecode(path))) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        fill(connection)
    read, readings = foreign._rows, []

    def read_while_written(*args: Any) -> Any:
        rows = read(*args)
        readings.append(rows)
        if len(readings) == 1:
            # Without a log nothing keeps SQLite from reading half of the old file and half of the new one.
            with closing(sqlite3.connect(os.fsdecode(path), isolation_level=None)) as writer:
                writer.execute("INSERT INTO session VALUES ('3', 'three')")
        return rows

    monkeypatch.setattr(foreign, "_rows", read_while_written)
    assert query(text.decode(path), SQL) == [*ROWS, ("3", "three")]
    assert len(readings) == 2
