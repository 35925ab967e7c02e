"""Searching what was said: indexed apart from appending, and before anybody searches."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from perdure import errors
from perdure.model.chat import Found, Turn
from perdure.store import words
from perdure.store.chat_rows import SPAN, damaged_chat, plain, texts_of, turn_from
from perdure.store.driver import Driver, Row, Value, with_list
from perdure.store.pooled import Pooled
from perdure.store.rows import UNREADABLE, moment_of, stamp
from perdure.store.turns import Turns

#: How many turns are indexed in one transaction, and how long, in seconds, they may gather before that.
_AT_ONCE, _GATHERING = 200, 0.3
#: Before and after every stamp.
_EVER, _NEVER = "", "~"


class _Stretch(Struct):
    """Some turns of a chat that are ready to be indexed."""

    number: int
    searchable: int
    until: int
    rows: list[dict[str, Value]]


class Search(Turns):
    """Turns that can be searched. Where threads are allowed, one indexes what was appended, within a second."""

    def __init__(self, driver: Driver) -> None:
        super().__init__(driver)
        self._has_index = driver.dialect != "sqlite"
        self._may_start = isinstance(driver, Pooled)
        self._indexer: threading.Thread | None = None
        self._is_closing = threading.Event()
        self._indexing = threading.Lock()

    def search_turns(
        self,
        query: str,
        *,
        reaches: Collection[str] | None = None,
        owner: str | None = None,
        platform: str | None = None,
        participant: str | None = None,
        chat: str | None = None,
        role: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = 20,
    ) -> tuple[Found, ...]:
        asked = words.wanted(query)
        sql, parameters = with_list(self._dialect("search_turns"), "reaches", sorted(reaches or ("",)))
        parameters |= {
            "everywhere": int(reaches is None),
            "owner": owner,
            "platform": None if platform is None else plain(platform),
            "participant": None if participant is None else plain(participant),
            "chat": chat,
            "role": None if role is None else plain(role),
            "since": _EVER if since is None else stamp(since),
            "until": _NEVER if until is None else stamp(until),
            "limit": max(0, limit),
            "query": asked.for_fts5 if self.driver.dialect == "sqlite" else asked.for_tsquery,
        }
        terms = [term for group in asked.groups for term in group]
        return tuple(_found(row, terms) for row in self._searched(sql, parameters))

    def index_turns(self, limit: int = _AT_ONCE) -> bool:
        with self._indexing:
            self._make_index()
            # Read and taken apart before the transaction, which is then as short as can be.
            stretches = list(self._stretches(limit))
            if not stretches:
                return False
            with self.changing():
                for stretch in stretches:
                    self._index(stretch)
            return True

    def rebuild_index(self) -> None:
        """Index everything anew, at the next search or in the background."""
        with self._indexing, self.changing():
            self.driver.execute(self._dialect("drop_index"))
            if self.driver.dialect == "sqlite":
                self.driver.execute(self.sql["make_index_sqlite"])
            self.driver.execute(self.sql["nothing_searchable"])
        self.wake_indexer()

    def forget_words(self, chat: str, number: int, rows: list[Row]) -> None:
        """Let turns be found no more, inside a transaction."""
        if not self._has_index and not self.driver.has_table("turn_words"):
            return
        for row in rows:
            self.driver.execute(self._dialect("forget_words"), **self._words_of(chat, number, row))

    def wake_indexer(self) -> None:
        """Have what was appended indexed soon, where threads are allowed."""
        if not self._may_start or self._indexer is not None:
            return
        self._indexer = threading.Thread(target=self._index_on, name="perdure-index", daemon=True)
        self._indexer.start()

    def stop_indexer(self) -> None:
        """Let nothing be indexed any more, and wait for what is."""
        self._may_start = False
        self._is_closing.set()
        indexer = self._indexer
        if indexer is not None:
            indexer.join()

    def _index_on(self) -> None:
        """Index until there is nothing left, each time when some has gathered."""
        has_indexed = True
        # Whatever is the matter, whoever searches meets it too, and is told.
        with suppress(errors.PerdureError):
            while has_indexed and not self._is_closing.wait(_GATHERING):
                has_indexed = False
                while not self._is_closing.is_set() and self.index_turns():
                    has_indexed = True
        self._indexer = None

    def _searched(self, sql: str, parameters: dict[str, Value]) -> list[Row]:
        try:
            self._index_all()
            return self.driver.fetch(sql, **parameters)
        except errors.StoreDamaged:
            # The index alone can be made anew from what was said; if it is more than that, this meets it again.
            self.rebuild_index()
            self._index_all()
            return self.driver.fetch(sql, **parameters)

    def _index_all(self) -> None:
        while self.index_turns():
            continue

    def _make_index(self) -> None:
        if not self._has_index:
            with self.changing():
                self.driver.execute(self.sql["make_index_sqlite"])
            self._has_index = True

    def _stretches(self, limit: int) -> Iterator[_Stretch]:
        for number, searchable, next, chat in self.driver.fetch(self.sql["chats_to_index"], limit=limit):
            if limit <= 0:
                return
            low, high = number * SPAN + searchable, number * SPAN + next
            rows = self.driver.fetch(self.sql["turns_between"], low=low, high=high, limit=limit)
            until = next if len(rows) < limit else rows[-1][0] - number * SPAN + 1
            limit -= len(rows)
            yield _Stretch(number, searchable, until, [self._words_of(chat, number, row) for row in rows])

    def _index(self, stretch: _Stretch) -> None:
        # Nothing to do when somebody else has indexed them in the meantime.
        if self.driver.execute(
            self.sql["note_searchable"],
            number=stretch.number,
            searchable=stretch.until,
            before=stretch.searchable,
        ):
            self.driver.execute_many(self._dialect("index_turn"), stretch.rows)

    def _words_of(self, chat: str, number: int, row: Row) -> dict[str, Value]:
        text = ""
        # One that cannot be read back is found by nothing.
        with suppress(*UNREADABLE):
            text = text_of(turn_from(chat, number, row))
        make = words.for_fts5 if self.driver.dialect == "sqlite" else words.for_tsvector
        return {"id": row[0], "words": make(text)}

    def _dialect(self, name: str) -> str:
        return self.sql[f"{name}_{self.driver.dialect}"]


def text_of(turn: Turn) -> str:
    """Return everything of a turn that can be searched.

    SQLite takes words out of its index only when it is told all that were put in: who changes this has to have
    everything indexed anew.
    """
    return "\n".join(filter(None, (*texts_of(turn.content), turn.tool_name, *texts_of(turn.tool_calls))))


def _found(row: Row, terms: list[words.Term]) -> Found:
    chat, title, number, *rest = row
    try:
        turn = turn_from(chat, number, tuple(rest))
    except UNREADABLE as error:
        raise damaged_chat(chat) from error
    text, marks = words.snippet(text_of(turn), terms)
    return Found(
        chat=chat,
        position=turn.position,
        role=turn.role,
        at=moment_of(rest[2]),
        title=title,
        snippet=text,
        marks=marks,
    )
