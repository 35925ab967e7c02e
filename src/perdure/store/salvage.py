"""Getting snapshots, runs, events, chats and jobs out of a damaged SQLite file, row by row."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import groupby, pairwise
from typing import TypeVar

from msgspec import Struct

from perdure import errors
from perdure.model.chat import Chat
from perdure.model.event import EventKind, StoredEvent
from perdure.model.job import Job
from perdure.model.run import Run
from perdure.model.snapshot import Snapshot
from perdure.store.chat_rows import SPAN, chat_from, is_turn_of
from perdure.store.driver import Row
from perdure.store.first_page import (
    UNREADABLE_PAGE,
    WAYS,
    hides_pages,
    is_copied_readably,
    is_log_broken,
    remove,
    size_of,
    tables_of,
)
from perdure.store.foreign import file_uri
from perdure.store.forgetting import marked
from perdure.store.jobs import job_from
from perdure.store.numbers import EVENTS, RUNS, is_number
from perdure.store.queries import queries
from perdure.store.rows import snapshot_from, unpacked
from perdure.store.runs import event_from, run_from
from perdure.store.sqlite import text_of

#: Each way through a table ends where it meets a page it cannot read; together they get around it.
_WAYS = {
    "snapshots": ("seq", "snapshots_by_server", "snapshots_by_time"),
    "runs": ("number", "runs_by_end"),
    "events": ("seq", "events_by_run WHERE run IS NOT NULL", "events_by_time"),
    "chats": ("number", "chats_by_key", "chats_by_reach"),
    "turns": ("id",),
    "arrivals": ("rowid",),
    "jobs": ("rowid", "sqlite_autoindex_jobs_1", "jobs_by_order", "jobs_by_owner"),
    "job_notices": ("seq", "job_notices_by_owner"),
}
#: The index that has the ids of chats with their numbers.
_BY_ID = "sqlite_autoindex_chats_1"
_EVENT = "SELECT seq, happened_at, kind, run, body FROM events WHERE seq = :key"
#: The trees in which a grant stands, in each of them whole.
_GRANTS = ("NOT INDEXED", "INDEXED BY sqlite_autoindex_chat_grants_1", "INDEXED BY chat_grants_by_owner")

_Kind = TypeVar("_Kind")

#: How many keys are asked for one by one at most, where something says that there are more.
_MANY = 1_000_000
#: How many turns a chat may have of which nothing is known.
_GUESS = 1_000
#: Of how many turns of one chat it is asked whose they are.
_SAMPLE = 20


class Saved(Struct, frozen=True, kw_only=True):
    """A chat out of a damaged file."""

    id: str
    #: None when its record cannot be read.
    chat: Chat | None
    #: The position the next turn would have had; 0 when that is not known.
    next: int
    #: The rows of its turns that can be had, in order, whole or not.
    turns: tuple[Row, ...]


@contextmanager
def wreck_of(path: str) -> Iterator[Wreck]:
    """What is left in a damaged file: where its first page or its log is what is damaged, in a copy that lasts as long as this."""
    copy = f"{path}.copy"
    try:
        is_copied = (tables_of(path) is None or hides_pages(path) or is_log_broken(path)) and is_copied_readably(
            path, copy
        )
        yield Wreck(copy, is_copy=True) if is_copied else Wreck(path)
    finally:
        remove(copy)


class Wreck:
    """A damaged file, opened read-only. Whatever cannot be read is left out."""

    def __init__(self, path: str, *, is_copy: bool = False) -> None:
        self._path = path
        self._is_copy = is_copy
        self._tables = tables_of(path)
        #: How many rows of a table came back, of those that were asked for.
        self.found: dict[str, int] = {}
        self._short: set[str] = set()

    @property
    def is_unreadable(self) -> bool:
        """Whether nothing in it can be told from anything else."""
        return self._tables is None

    @property
    def short(self) -> tuple[str, ...]:
        """The tables of those that were read of which not everything came back, or nobody can tell."""
        return tuple(table for table in (*_WAYS, "chat_grants") if table in self._short)

    def snapshots(self) -> Iterator[tuple[Snapshot, str | None]]:
        """Yield (snapshot, the id of its parent), oldest first, for every row that is whole."""
        sql = queries()["get_snapshot"].replace("WHERE id = :id", "WHERE seq = :key")
        for _, found in self._read("snapshots", sql, _snapshot):
            yield found

    def texts(self, digests: frozenset[str]) -> dict[str, bytes]:
        """Return those scrollback texts that are whole."""
        found: dict[str, bytes] = {}
        for connection in self._connections():
            for digest in digests - found.keys():
                with suppress(*UNREADABLE_PAGE, ValueError, TypeError):
                    sql = "SELECT size, data FROM scrollbacks WHERE digest = ?"
                    for size, data in connection.execute(sql, (digest,)):
                        text = unpacked(data)
                        if len(text) == size:
                            found[digest] = text
        return found

    def runs(self) -> tuple[Run, ...]:
        """Return every run that is whole, each once: as the log has it, where that can be read."""
        found: dict[int, Run] = {}
        for number, run in self._read("runs", queries()["get_run"].replace(":number", ":key"), run_from):
            found.setdefault(number, run)
        return tuple(found.values())

    def events(self) -> tuple[StoredEvent, ...]:
        """Return every event that is whole, each once."""
        found: dict[int, StoredEvent] = {}
        for seq, event in self._read("events", _EVENT, event_from):
            found.setdefault(seq, event)
        return tuple(found.values())

    def chats(self) -> tuple[dict[int, Saved], list[Row]]:
        """Return by its number every chat of which at least the id is known, and the rows of turns of all others.

        Nothing of a chat that was forgotten, or that was being forgotten.
        """
        found: dict[int, tuple[Chat, int]] = {}
        sql = queries()["get_chat"].replace("body FROM", "body, next FROM").replace("id = :id", "number = :key")
        for number, chat in self._read("chats", sql, _chat):
            found.setdefault(number, chat)
        rows, behind = self._turns({number: next for number, (_, next) in found.items()})
        by_chat: dict[int, list[Row]] = {}
        for key in sorted(rows):
            by_chat.setdefault(key // SPAN, []).append(rows[key])
        chats = {
            number: Saved(id=chat.id, chat=chat, next=next, turns=tuple(by_chat.pop(number, ())))
            for number, (chat, next) in found.items()
        }
        for number, id in self._ids().items():
            if number not in chats:
                chats[number] = Saved(id=id, chat=None, next=0, turns=tuple(by_chat.pop(number, ())))
        for number, id in self._noted():
            # Only what is that chat's: a note may be damaged as anything else.
            if number in chats and chats[number].id == id:
                del chats[number]
            elif any(is_turn_of(id, number, row) for row in by_chat.get(number, ())):
                del by_chat[number]
        self._leave_out_forgotten(chats, by_chat, behind)
        self.found["chats"] = len(chats)
        return chats, [row for rest in by_chat.values() for row in rest]

    def _noted(self) -> set[tuple[int, str]]:
        """The numbers and ids of chats that were being forgotten: nothing of them is to come back."""
        found: set[tuple[int, str]] = set()
        # Behind the log there may be the note of one that is gone whole by now, and some of what was said in it.
        for connection in self._connections():
            with suppress(*UNREADABLE_PAGE, TypeError, AttributeError):
                marks = [marked(name) for name, _ in connection.execute(queries()["forgetting"])]
                found.update(mark for mark in marks if mark is not None)
        return found

    def _leave_out_forgotten(
        self, chats: dict[int, Saved], by_chat: dict[int, list[Row]], behind: Collection[int]
    ) -> None:
        """Take away what is there only `behind` the log, where the log says that it was forgotten.

        That a chat is not in the log's view is not enough: the log may be what is damaged, or another database's. What the
        log says has to fit in all: none of the chat is there, and nothing was told of it since. Else it stays: better that
        one comes back that was forgotten than that one is lost.
        """
        gone = [
            number
            for number in chats.keys() - self._standing(chats)
            if all(row[0] in behind for row in chats[number].turns)
        ]
        ownerless = [number for number, rows in by_chat.items() if all(row[0] in behind for row in rows)]
        ids = self._told_forgotten() if gone or ownerless else set()
        for number in gone:
            if chats[number].id in ids:
                del chats[number]
        for number in ownerless:
            # Not of each: there may be very many of both.
            if any(is_turn_of(id, number, row) for id in ids for row in by_chat[number][:_SAMPLE]):
                del by_chat[number]

    def _standing(self, numbers: Iterable[int]) -> set[int]:
        """The numbers of chats of which there is anything with the log, and of these even what no way comes by."""
        found: set[int] = set()
        for connection in self._connections():
            for index in (*_WAYS["chats"][1:], _BY_ID):
                self._walk(connection, f"SELECT number FROM chats INDEXED BY {index}", found)
            rows = self._fetched(connection, "SELECT number FROM chats NOT INDEXED WHERE number = :key", numbers)
            found.update(number for number, _ in rows)
            break
        return found

    def _told_forgotten(self) -> set[str]:
        """The ids of chats of which the log tells that they were forgotten, and nothing else tells anything since."""
        forgotten: dict[str, int] = {}
        last: dict[str, int] = {}
        for view, connection in enumerate(self._connections()):
            for seq, row in self._fetched(connection, _EVENT, self._keys(connection, "events")):
                stored = event_from(row)
                id = None if stored is None else stored.event.data.get("chat")
                if stored is None or not isinstance(id, str):
                    continue
                last[id] = max(seq, last.get(id, 0))
                if view == 0 and stored.event.kind is EventKind.CHAT_FORGOTTEN:
                    forgotten[id] = seq
        return {id for id, seq in forgotten.items() if last[id] == seq}

    def grants(self) -> dict[int, frozenset[str]]:
        """Return by the number of a chat to whom it was granted.

        Only what stands in two places alike: nothing seals a grant, and one that nobody gave would show a chat to a
        stranger. Where the log can be read nothing is taken from behind it: it may say that a grant was taken back.
        """
        for connection in self._connections():
            trees: list[set[tuple[int, str]]] = []
            is_read = False
            for tree in _GRANTS:
                pairs: set[tuple[int, str]] = set()
                with suppress(*UNREADABLE_PAGE):
                    for number, owner in connection.execute(f"SELECT chat, owner FROM chat_grants {tree}"):
                        if is_number(number) and isinstance(owner, str):
                            pairs.add((number, owner))
                    is_read = True
                trees.append(pairs)
            # Also where there is none: then the last was taken back.
            if is_read or any(trees):
                said = Counter(pair for pairs in trees for pair in pairs)
                agreed = sorted(pair for pair, times in said.items() if times > 1)
                if len(agreed) < len(said):
                    self._short.add("chat_grants")
                return {
                    number: frozenset(owner for _, owner in both)
                    for number, both in groupby(agreed, key=lambda pair: pair[0])
                }
        return {}

    def jobs(self) -> tuple[Job, ...]:
        """Return every job that is whole, each once: as the log has it, where that can be read."""
        found: dict[str, Job] = {}
        for _, job in self._read("jobs", queries()["get_job"].replace("id = :id", "rowid = :key"), job_from):
            found.setdefault(job.id, job)
        return tuple(found.values())

    def notices(self) -> dict[int, str]:
        """Return by the number of an event to which owner it is still to be delivered. It is for the event to confirm.

        Where all can be read with the log nothing is taken from behind it: it may say that one was delivered.
        """
        found: dict[int, str] = {}
        sql = "SELECT owner FROM job_notices WHERE seq = :key"
        for seq, owner in self._read("job_notices", sql, _owner, is_log_enough=True):
            found.setdefault(seq, owner)
        return found

    def _ids(self) -> dict[int, str]:
        """The ids of chats by their numbers, as the index has them that outlives their records."""
        found: dict[int, str] = {}
        for connection in self._connections():
            with suppress(*UNREADABLE_PAGE):
                for number, id in connection.execute(f"SELECT number, id FROM chats INDEXED BY {_BY_ID}"):
                    if is_number(number) and isinstance(id, str):
                        found.setdefault(number, id)
        return found

    def _turns(self, ends: dict[int, int]) -> tuple[dict[int, Row], set[int]]:
        """The rows of all turns that can be had, whole or not, of chats that end at these positions and of others.

        And which of them are there only without the log.
        """
        sql = "SELECT id, role, at, hidden, seal, body FROM turns WHERE id = :key"
        arrived = "SELECT id, role, at, hidden, seal, body FROM arrivals WHERE rowid = :key"
        found: dict[int, Row] = {}
        with_log: set[int] | None = None
        is_all: bool | None = None
        for connection in self._connections():
            if is_all is None:
                is_all = all(self._walked(connection, table)[1] for table in ("turns", "arrivals"))
            keys = set(self._keys(connection, "turns"))
            last = self._last(connection, "chats", [key // SPAN for key in keys])
            numbers = {*ends, *range(1, min(last, _MANY) + 1)}
            for number in numbers:
                low = number * SPAN
                keys.update(self._between(connection, "turns", low, low + min(ends.get(number, _GUESS), _MANY)))
            found.update(self._fetched(connection, sql, keys - found.keys()))
            for _, row in self._fetched(connection, arrived, self._keys(connection, "arrivals")):
                if isinstance(row[0], int):
                    found.setdefault(row[0], row)
            with_log = set(found) if with_log is None else with_log
        self.found["turns"] = len(found)
        if not is_all:
            self._short.add("turns")
        return found, found.keys() - (with_log or set())

    def highest(self) -> dict[str, int]:
        """Return by counter the highest number that is to be found anywhere, on what is damaged too."""
        sql = "SELECT value FROM counters WHERE name = ?"
        found = {RUNS: 0, EVENTS: 0}
        for connection in self._connections():
            for name in found:
                seen = [found[name], *self._keys(connection, name)]
                with suppress(*UNREADABLE_PAGE):
                    seen += [value for (value,) in connection.execute(sql, (name,))]
                found[name] = max(filter(is_number, seen), default=0)
        return found

    def _read(
        self, table: str, sql: str, whole: Callable[[Row], _Kind | None], *, is_log_enough: bool = False
    ) -> Iterator[tuple[int, _Kind]]:
        """Yield (key, what a row is) of what is whole, by `sql` for each `:key`; with the log, and once more without.

        With `is_log_enough` the latter only where not all could be read with it.
        """
        wanted: set[int] | None = None
        found: set[int] = set()
        is_all = False
        for connection in self._connections():
            if wanted is None:
                wanted, is_all = self._walked(connection, table)
            for key, row in self._fetched(connection, sql, self._keys(connection, table)):
                value = whole(row)
                if value is not None:
                    found.add(key)
                    yield key, value
            if is_log_enough and is_all and found.issuperset(wanted):
                break
        self.found[table] = len(found)
        if not is_all or not found.issuperset(wanted or ()):
            self._short.add(table)

    def _walked(self, connection: sqlite3.Connection, table: str) -> tuple[set[int], bool]:
        """The keys of all rows a table has, as far as anything tells, and whether that is to be believed."""
        if self._tables is not None and table not in self._tables:
            # An older one; unless what names the tables is a guess.
            return set(), not self._is_copy
        key, *indexes = _WAYS[table]
        try:
            rows = connection.execute(f"SELECT {key} FROM {table} NOT INDEXED ORDER BY {key}").fetchall()
        except UNREADABLE_PAGE:
            return set(), False
        keys = [row[0] for row in rows]
        # Of a page that another has taken the place of, SQLite may give the rows all the same.
        is_all = all(low < high for low, high in pairwise(keys))
        wanted = set(keys)
        for index in indexes:
            self._walk(connection, f"SELECT {key} FROM {table} INDEXED BY {index}", wanted)
        return wanted, is_all and self._tables is not None

    def _fetched(self, connection: sqlite3.Connection, sql: str, keys: Iterable[int]) -> Iterator[tuple[int, Row]]:
        for key in sorted(keys):
            row = None
            with suppress(*UNREADABLE_PAGE):
                row = connection.execute(sql, {"key": key}).fetchone()
            if row is not None:
                yield key, row

    def _keys(self, connection: sqlite3.Connection, table: str) -> list[int]:
        """Every key there may be: those that some way comes by, and all between where every way ends."""
        key, *indexes = _WAYS[table]
        keys: set[int] = set()
        for index in indexes:
            self._walk(connection, f"SELECT {key} FROM {table} INDEXED BY {index}", keys)
        if table == "turns":
            for order in ("", "DESC"):
                self._walk(connection, f"SELECT id FROM turns NOT INDEXED ORDER BY id {order}", keys)
        else:
            last = self._last(connection, table, keys)
            keys.update(self._between(connection, table, 0, last + 1))
        return sorted(keys)

    def _between(self, connection: sqlite3.Connection, table: str, low: int, high: int) -> set[int]:
        """The keys from `low` up to `high`, and behind it as far as can be read: all of them, and maybe others.

        A page that cannot be read ends a way through the table, from either side. What lies between two such pages is
        come by only by asking for each key.
        """
        key = _WAYS[table][0]
        limit = low + SPAN
        keys: set[int] = set()
        where = f"SELECT {key} FROM {table} NOT INDEXED WHERE {key} >= {low} AND {key} < {limit} ORDER BY {key}"
        if not self._walk(connection, where, keys):
            first = max(keys, default=low)
            back: set[int] = set()
            self._walk(connection, f"{where} DESC", back)
            last = min(back, default=max(high, first))
            keys.update(back, range(max(first + 1, last - _MANY), last))
        return keys

    def _walk(self, connection: sqlite3.Connection, sql: str, keys: set[int]) -> bool:
        """Add the keys that are come by this way; False when it did not come to its end."""
        try:
            keys.update(row[0] for row in connection.execute(sql) if isinstance(row[0], int))
        except UNREADABLE_PAGE:
            return False
        return True

    def _last(self, connection: sqlite3.Connection, table: str, keys: Iterable[int]) -> int:
        """The highest number of a table that is to be found anywhere."""
        seen = list(keys)
        for sql in (
            "SELECT seq FROM sqlite_sequence WHERE name = ?",
            "SELECT value FROM counters WHERE name = ?",
            f"SELECT max({_WAYS[table][0]}) FROM {table} WHERE ? IS NOT NULL",
        ):
            with suppress(*UNREADABLE_PAGE):
                seen += [value for (value,) in connection.execute(sql, (table,))]
        return max(filter(is_number, seen), default=0)

    def _connections(self) -> Iterator[sqlite3.Connection]:
        if self._tables is None and not size_of(self._path):
            # Beside an empty file SQLite would remove the log.
            return
        for options in WAYS:
            with (
                suppress(*UNREADABLE_PAGE),
                closing(sqlite3.connect(file_uri(self._path, options), uri=True)) as connection,
            ):
                connection.text_factory = text_of
                # Also where some of what names the tables cannot be read: then the others are there all the same.
                connection.execute("PRAGMA writable_schema = ON")
                yield connection


def _snapshot(row: Row) -> tuple[Snapshot, str | None] | None:
    with suppress(errors.SnapshotDamaged):
        return snapshot_from(row), row[13]
    return None


def _chat(row: Row) -> tuple[Chat, int] | None:
    """A chat, and the position its next turn would have had."""
    *columns, next = row
    with suppress(errors.ChatDamaged):
        return chat_from(tuple(columns)), next if is_number(next) else 1
    return None


def _owner(row: Row) -> str | None:
    return row[0] if isinstance(row[0], str) else None
