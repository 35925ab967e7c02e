"""Getting snapshots out of a damaged SQLite file, row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

from perdure import errors
from perdure.model.snapshot import Snapshot
from perdure.store.foreign import file_uri
from perdure.store.queries import queries
from perdure.store.rows import snapshot_from, unpacked

#: Each way through the table ends where it meets a page it cannot read; together they get around it.
_WAYS = (
    "SELECT seq FROM snapshots NOT INDEXED ORDER BY seq",
    "SELECT seq FROM snapshots NOT INDEXED ORDER BY seq DESC",
    "SELECT seq FROM snapshots INDEXED BY snapshots_by_server",
    "SELECT seq FROM snapshots INDEXED BY snapshots_by_time",
)


class Wreck:
    """A damaged file, opened read-only. Whatever cannot be read is left out."""

    def __init__(self, path: str) -> None:
        self._path = path

    def snapshots(self) -> Iterator[tuple[Snapshot, str | None]]:
        """Yield (snapshot, the id of its parent), oldest first, for every row that is whole."""
        sql = queries()["get_snapshot"].replace("WHERE id = :id", "WHERE seq = :seq")
        for connection in self._connections():
            for seq in self._seqs(connection):
                row = None
                with suppress(sqlite3.Error):
                    row = connection.execute(sql, {"seq": seq}).fetchone()
                if row is not None:
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

    def _seqs(self, connection: sqlite3.Connection) -> list[int]:
        seqs: set[int] = set()
        for sql in _WAYS:
            with suppress(sqlite3.Error):
                for row in connection.execute(sql):
                    if isinstance(row[0], int):
                        seqs.add(row[0])
        return sorted(seqs)

    def _connections(self) -> Iterator[sqlite3.Connection]:
        # With its log first; then without, for when the log is what is damaged.
        for options in ("mode=ro", "mode=ro&immutable=1"):
            with (
                suppress(sqlite3.Error),
                closing(sqlite3.connect(file_uri(self._path, options), uri=True)) as connection,
            ):
                yield connection
