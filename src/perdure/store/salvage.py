"""Getting snapshots, runs, events and chats out of a damaged SQLite file, row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

from perdure import errors
from perdure.model.chat import Chat
from perdure.model.event import StoredEvent
from perdure.model.run import Run
from perdure.model.snapshot import Snapshot
from perdure.store.chat_rows import SPAN, chat_from
from perdure.store.driver import Row
from perdure.store.foreign import file_uri
from perdure.store.numbers import EVENTS, RUNS, is_number
from perdure.store.queries import queries
from perdure.store.rows import snapshot_from, unpacked
from perdure.store.runs import event_from, run_from

#: Each way through a table ends where it meets a page it cannot read; together they get around it.
_WAYS = {
    "snapshots": ("seq", "snapshots_by_server", "snapshots_by_time"),
    "runs": ("number", "runs_by_end"),
    "events": ("seq", "events_by_run WHERE run IS NOT NULL", "events_by_time"),
    "chats": ("number", "chats_by_key", "chats_by_reach"),
    "turns": ("id",),
}


class Wreck:
    """A damaged file, opened read-only. Whatever cannot be read is left out."""

    def __init__(self, path: str) -> None:
        self._path = path

    def snapshots(self) -> Iterator[tuple[Snapshot, str | None]]:
        """Yield (snapshot, the id of its parent), oldest first, for every row that is whole."""
        for _, row in self._rows("snapshots", queries()["get_snapshot"].replace("WHERE id = :id", "WHERE seq = :key")):
            with suppress(errors.SnapshotDamaged):
                yield snapshot_from(row), row[13]

    def texts(self, digests: frozenset[str]) -> dict[str, bytes]:
        """Return those scrollback texts that are whole."""
        found: dict[str, bytes] = {}
        for connection in self._connections():
            for digest in digests - found.keys():
                with suppress(sqlite3.Error, ValueError, TypeError):
                    sql = "SELECT size, data FROM scrollbacks WHERE digest = ?"
                    for size, data in connection.execute(sql, (digest,)):
                        text = unpacked(data)
                        if len(text) == size:
                            found[digest] = text
        return found

    def runs(self) -> tuple[Run, ...]:
        """Return every run that is whole, each once: as the log has it, where that can be read."""
        found: dict[int, Run] = {}
        for number, row in self._rows("runs", queries()["get_run"].replace(":number", ":key")):
            run = run_from(row)
            if run is not None:
                found.setdefault(number, run)
        return tuple(found.values())

    def events(self) -> tuple[StoredEvent, ...]:
        """Return every event that is whole, each once."""
        found: dict[int, StoredEvent] = {}
        for seq, row in self._rows("events", "SELECT seq, happened_at, kind, run, body FROM events WHERE seq = :key"):
            event = event_from(row)
            if event is not None:
                found.setdefault(seq, event)
        return tuple(found.values())

    def chats(self) -> dict[int, Chat]:
        """Return by its number every chat whose record is whole."""
        found: dict[int, Chat] = {}
        for number, row in self._rows("chats", queries()["get_chat"].replace("id = :id", "number = :key")):
            with suppress(errors.ChatDamaged):
                found.setdefault(number, chat_from(row))
        return found

    def turns(self) -> dict[int, list[Row]]:
        """Return by the number of their chat the rows of all turns that can be had, in order, whole or not."""
        found: dict[int, Row] = {}
        sql = "SELECT id, role, at, hidden, seal, body FROM turns WHERE id = :key"
        for id, row in self._rows("turns", sql):
            found.setdefault(id, row)
        by_chat: dict[int, list[Row]] = {}
        for id in sorted(found):
            by_chat.setdefault(id // SPAN, []).append(found[id])
        return by_chat

    def highest(self) -> dict[str, int]:
        """Return by counter the highest number that is to be found anywhere, on what is damaged too."""
        sql = "SELECT value FROM counters WHERE name = ?"
        found = {RUNS: 0, EVENTS: 0}
        for connection in self._connections():
            for name in found:
                seen = [found[name], *self._keys(connection, name)]
                with suppress(sqlite3.Error):
                    seen += [value for (value,) in connection.execute(sql, (name,))]
                found[name] = max(filter(is_number, seen), default=0)
        return found

    def _rows(self, table: str, sql: str) -> Iterator[tuple[int, Row]]:
        """Yield (key, row) of what can be read, by `sql` for each `:key`; with the log, and once more without."""
        for connection in self._connections():
            for key in self._keys(connection, table):
                row = None
                with suppress(sqlite3.Error):
                    row = connection.execute(sql, {"key": key}).fetchone()
                if row is not None:
                    yield key, row

    def _keys(self, connection: sqlite3.Connection, table: str) -> list[int]:
        key, *indexes = _WAYS[table]
        ways = [f"NOT INDEXED ORDER BY {key}", f"NOT INDEXED ORDER BY {key} DESC"]
        ways += [f"INDEXED BY {index}" for index in indexes]
        keys: set[int] = set()
        for way in ways:
            with suppress(sqlite3.Error):
                for row in connection.execute(f"SELECT {key} FROM {table} {way}"):
                    if isinstance(row[0], int):
                        keys.add(row[0])
        return sorted(keys)

    def _connections(self) -> Iterator[sqlite3.Connection]:
        # With its log first; then without, for when the log is what is damaged.
        for options in ("mode=ro", "mode=ro&immutable=1"):
            with (
                suppress(sqlite3.Error),
                closing(sqlite3.connect(file_uri(self._path, options), uri=True)) as connection,
            ):
                # Also where some of what names the tables cannot be read: then the others are there all the same.
                connection.execute("PRAGMA writable_schema = ON")
                yield connection
