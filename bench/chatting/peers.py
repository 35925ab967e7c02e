"""The gateways that are compared, each as it is used: the same verbs over perdure, over hermes-agent, and over SQLite alone.

Everything but `begin` and `fill` is what the peer itself offers, with every commit on disk before it returns. Those two
only make a store quickly; what they leave is what the peer would have made of the same.
"""

from __future__ import annotations

import importlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from bench.chatting.corpus import Said

#: On which the chats are, in turn.
PLATFORMS = ("telegram", "slack")
_AT_ONCE = 5000


class Peer(Protocol):
    """A store of chats, numbered from 0."""

    def begin(self, chats: int) -> None:
        """Begin chats, as many as that in all."""

    def fill(self, turns: Iterable[Said], count: int, chats: int, long: int) -> None:
        """Begin chats and spread so many turns over them, after `long` in the first; all can be found afterwards."""

    def open(self, chat: int) -> None:
        """Find out which chat a message belongs to, and note that it was used."""

    def append(self, chat: int, turn: Said) -> None:
        """Write a turn down for good."""

    def settle(self) -> None:
        """Let everything that was said be found."""

    def load(self) -> int:
        """Read the first chat; return how many turns it has."""

    def search(self, query: str, *, role: str | None = None, platform: str | None = None) -> int:
        """Search; return how many were found, 20 at most."""

    def count(self) -> int:
        """How many turns there are."""


def stretches(turns: Iterable[Said], count: int, chats: int, long: int) -> Iterator[tuple[int, list[Said]]]:
    """Yield turns by the chat they go to: first the long one, then the same number to each of the others."""
    rest = iter(turns)
    yield 0, list(islice(rest, long))
    each = max(1, -(-(count - long) // (chats - 1)))
    for chat in range(1, chats):
        if some := list(islice(rest, each)):
            yield chat, some


class Bare:
    """SQLite and nothing else: one table, nothing checked, nothing found. What nobody who uses it can be quicker than."""

    def __init__(self, directory: str) -> None:
        self._connection = sqlite3.connect(
            os.path.join(directory, "bare.db"), timeout=60, isolation_level=None, check_same_thread=False
        )
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute(
            "CREATE TABLE IF NOT EXISTS turns (id INTEGER PRIMARY KEY, chat INTEGER, role TEXT, at REAL, body TEXT)"
        )
        self._writing = threading.Lock()

    def begin(self, chats: int) -> None:
        pass

    def fill(self, turns: Iterable[Said], count: int, chats: int, long: int) -> None:
        raise NotImplementedError

    def open(self, chat: int) -> None:
        raise NotImplementedError

    def append(self, chat: int, turn: Said) -> None:
        with self._writing:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.execute(
                "INSERT INTO turns (chat, role, at, body) VALUES (?, ?, ?, ?)",
                (chat, turn.role, time.time(), turn.text),
            )
            self._connection.execute("COMMIT")

    def settle(self) -> None:
        pass

    def load(self) -> int:
        raise NotImplementedError

    def search(self, query: str, *, role: str | None = None, platform: str | None = None) -> int:
        raise NotImplementedError

    def count(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM turns").fetchone()[0])


class Perdure:
    """`perdure.chats` over an SQLite store, for several threads at once."""

    def __init__(self, directory: str) -> None:
        clock = importlib.import_module("perdure.host.clock")
        model = importlib.import_module("perdure.model.chat")
        service = importlib.import_module("perdure.chats.service")
        config = importlib.import_module("perdure.model.config")
        store = importlib.import_module("perdure.store")
        self._source, self._turn, self._now = model.Source, model.Turn, clock.now
        self._store: Any = store.open_store(f"sqlite://{directory}/perdure.db", state_dir=directory, threads=True)
        ((synchronous,),) = self._store.driver.fetch("PRAGMA synchronous")
        assert synchronous == 2, "not every commit would be on disk"
        self._chats: Any = service.Chats(self._store.chats, config.Config(), clock.now)
        self._ids: dict[int, str] = {}

    def begin(self, chats: int) -> None:
        # This thread's connection, which a new one takes the place of when the process is started anew.
        self._store.driver.execute("PRAGMA synchronous = OFF")
        for number in range(chats):
            self.open(number)
        self._store.driver.execute("PRAGMA synchronous = FULL")

    def fill(self, turns: Iterable[Said], count: int, chats: int, long: int) -> None:
        self.begin(chats)
        self._store.driver.execute("PRAGMA synchronous = OFF")
        at = datetime(2026, 1, 1, tzinfo=UTC)
        for number, some in stretches(turns, count, chats, long):
            at += timedelta(seconds=7)
            made = [self._turn(position=0, role=each.role, content=each.text, at=at) for each in some]
            self._chats.append(self._id(number), *made)
        while self._store.chats.index_turns(_AT_ONCE):
            pass
        self._store.close()

    def open(self, chat: int) -> None:
        self._ids[chat] = self._chats.open(self._of(chat)).id

    def append(self, chat: int, turn: Said) -> None:
        self._chats.append(self._id(chat), self._turn(position=0, role=turn.role, content=turn.text, at=self._now()))

    def settle(self) -> None:
        # In steps of the size in which it is done in the background, too: the memory that takes is measured.
        while self._store.chats.index_turns():
            pass

    def load(self) -> int:
        return len(self._chats.load(self._id(0)).turns)

    def search(self, query: str, *, role: str | None = None, platform: str | None = None) -> int:
        return len(self._store.chats.search_turns(query, role=role, platform=platform, limit=20))

    def count(self) -> int:
        return sum(chat.turns for chat in self._store.chats.list_chats())

    def _of(self, chat: int) -> Any:
        return self._source(platform=PLATFORMS[chat % len(PLATFORMS)], chat_id=f"c{chat}", user_id=f"u{chat}")

    def _id(self, chat: int) -> str:
        if chat not in self._ids:
            self._ids[chat] = self._chats.peek(self._of(chat)).id
        return self._ids[chat]


class Hermes:
    """hermes-agent's `SessionStore` and `SessionDB`, without the mirror in files that nobody reads."""

    def __init__(self, directory: str) -> None:
        os.environ["HERMES_HOME"] = directory
        session = importlib.import_module("gateway.session")
        config = importlib.import_module("gateway.config")
        self._source, self._entry, self._platform = session.SessionSource, session.SessionEntry, config.Platform
        self._now: Callable[[], datetime] = session._now

        self._store: Any = session.SessionStore(
            Path(directory, "sessions"), config.GatewayConfig(write_sessions_json=False)
        )
        self._db: Any = self._store._db
        self._connection: sqlite3.Connection = self._db._conn
        assert self._connection.execute("PRAGMA synchronous").fetchone()[0] == 2, "not every commit would be on disk"

    def begin(self, chats: int) -> None:
        # One by one, each would write all that are there already.
        self._store._ensure_loaded()
        now = self._now()
        for number in range(chats):
            source = self._of(number)
            key = self._store._generate_session_key(source)
            self._store._entries[key] = self._entry(
                session_key=key,
                session_id=_session(number),
                created_at=now,
                updated_at=now,
                origin=source,
                platform=source.platform,
                chat_type=source.chat_type,
            )
        rows = [(_session(number), self._of(number)) for number in range(chats)]
        self._connection.execute("BEGIN IMMEDIATE")
        self._connection.executemany(
            "INSERT OR IGNORE INTO sessions (id, source, user_id, session_key, chat_id, chat_type, started_at)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    id,
                    of.platform.value,
                    of.user_id,
                    self._store._generate_session_key(of),
                    of.chat_id,
                    "dm",
                    now.timestamp(),
                )
                for id, of in rows
            ],
        )
        self._connection.execute("COMMIT")
        self._store._save_entries()

    def fill(self, turns: Iterable[Said], count: int, chats: int, long: int) -> None:
        self.begin(chats)
        # Its triggers would do the same one by one. The index for languages without spaces, which no query of ours asks, stays empty.
        names = ("messages_fts_insert", "messages_fts_trigram_insert")
        found = [self._connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (name,)) for name in names]
        triggers = [cursor.fetchone()[0] for cursor in found]
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("BEGIN IMMEDIATE")
        for name in names:
            self._connection.execute(f"DROP TRIGGER {name}")
        at = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
        for number, some in stretches(turns, count, chats, long):
            at += 7
            self._connection.executemany(
                "INSERT INTO messages (session_id, role, content, timestamp) VALUES (?, ?, ?, ?)",
                [(_session(number), each.role, each.text, at) for each in some],
            )
        self._connection.execute(
            "INSERT INTO messages_fts (rowid, content) SELECT id, content || '  ' FROM messages ORDER BY id"
        )
        for trigger in triggers:
            self._connection.execute(trigger)
        self._connection.execute("COMMIT")
        self._db.optimize_fts()
        self._db.close()

    def open(self, chat: int) -> None:
        entry = self._store.get_or_create_session(self._of(chat))
        assert entry.session_id == _session(chat), "another chat was begun"

    def append(self, chat: int, turn: Said) -> None:
        self._db.append_message(_session(chat), turn.role, turn.text)

    def settle(self) -> None:
        pass

    def load(self) -> int:
        return len(self._db.get_messages_as_conversation(_session(0)))

    def search(self, query: str, *, role: str | None = None, platform: str | None = None) -> int:
        return len(
            self._db.search_messages(
                query,
                role_filter=None if role is None else [role],
                source_filter=None if platform is None else [platform],
                limit=20,
            )
        )

    def count(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM messages").fetchone()[0])

    def _of(self, chat: int) -> Any:
        platform = self._platform(PLATFORMS[chat % len(PLATFORMS)])
        return self._source(platform=platform, chat_id=f"c{chat}", chat_type="dm", user_id=f"u{chat}")


def _session(chat: int) -> str:
    return f"20260101_000000_{chat:08x}"


PEERS: Mapping[str, Callable[[str], Peer]] = {"bare": Bare, "perdure": Perdure, "hermes": Hermes}
