"""Searching what was said: indexed apart from appending, and before anybody searches."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec import Struct

from perdure import errors
from perdure.model.chat import Found, Turn
from perdure.store import arrivals, forgetting, words
from perdure.store.chat_rows import SPAN, plain, texts_of, turn_from
from perdure.store.driver import Driver, Row, Spoilt, Value, with_list
from perdure.store.pooled import Pooled
from perdure.store.rows import UNREADABLE, stamp
from perdure.store.sqlite import CHECKPOINT
from perdure.store.steps import AT_ONCE, BYTES, step
from perdure.store.turns import Turns
from perdure.store.untold import Tell, is_untold

#: How long, in seconds, turns may gather before they are indexed.
_GATHERING = 0.3
#: For how long the indexer waits for more once it has nothing to do: to begin another is dear for whoever appends.
_RESTING = 60.0
#: After how many of them the database's log is emptied.
_LOGGED = 400
#: Before and after every stamp, and behind every id.
_EVER, _NEVER, _LAST = "", "~", (1 << 63) - 1
#: Of how many turns that match, the latest, the best are chosen when not more are wanted; and how many bytes one may
#: have to be read for it.
_MATCHES, _LONG = 200, 64 << 10
#: How many chats are searched one by one.
_FEW = 100


class _Stretch(Struct):
    """Some turns of a chat that are ready to be indexed."""

    number: int
    searchable: int
    until: int
    rows: list[dict[str, Value]]


class Search(Turns):
    """Turns that can be searched. Where threads are allowed, one indexes what was appended, within a second."""

    def __init__(self, driver: Driver, tell: Tell) -> None:
        super().__init__(driver, tell)
        self._has_index = driver.dialect != "sqlite"
        self._may_start = isinstance(driver, Pooled)
        self._indexer: threading.Thread | None = None
        self._is_at_work = False
        #: Whether something was appended since the indexer last looked.
        self._has_more = False
        self._waking = threading.Lock()
        #: What the indexer waits for when it has nothing to do.
        self._called = threading.Event()
        self._is_closing = threading.Event()
        self._indexing = threading.Lock()
        #: How many turns were indexed since the database's log was emptied.
        self._indexed = 0

    def begin_anew(self) -> None:
        """The same for the indexer: that of the parent is at work there."""
        super().begin_anew()
        self._indexer, self._is_at_work, self._has_more = None, False, False
        self._waking, self._indexing = threading.Lock(), threading.Lock()
        is_closing, self._called, self._is_closing = self._is_closing, threading.Event(), threading.Event()
        if is_closing.is_set():
            self._is_closing.set()

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
        terms = [term for group in asked.groups for term in group]
        whose: dict[str, Value] = {
            "everybody": int(reaches is None),
            "owner": owner,
            "platform": None if platform is None else plain(platform),
            "participant": None if participant is None else plain(participant),
        }
        which: dict[str, Value] = {
            "role": None if role is None else plain(role),
            "since": _EVER if since is None else stamp(since),
            "until": _NEVER if until is None else stamp(until),
            "query": self._query(asked, role, since, until),
        }
        most = max(_MATCHES, limit)
        self.index_whole()
        try:
            matches = self._matches(chat, sorted(reaches or ("",)), whose, which, most)
        except errors.StoreDamaged:
            # The index alone can be made anew from what was said; if it is more than that, this meets it again.
            self.rebuild_index()
            self.index_whole()
            matches = self._matches(chat, sorted(reaches or ("",)), whose, which, most)
        return self._best(matches, terms, max(0, limit))

    def _query(self, asked: words.Wanted, role: str | None, since: datetime | None, until: datetime | None) -> str:
        if self.driver.dialect != "sqlite":
            return asked.for_tsquery
        # By the index, too: else every turn with those words would be looked at until some of the role or time are found.
        query = asked.for_fts5
        if role is not None:
            query = f'({query}) AND "{words.mark_of(role)}"'
        if since is not None or until is not None:
            marks = [f'"{mark}"' for mark in words.marks_between(since, until) or (words.NEVER,)]
            query = f"({query}) AND ({' OR '.join(marks)})"
        return query

    def index_turns(self, limit: int = AT_ONCE) -> bool:
        with self._indexing:
            self._make_index()
            arrivals.settle_all(self)
            # Read and taken apart before the transaction, which is then as short as can be.
            stretches = list(self._stretches(limit))
            if not stretches:
                self._empty_log()
                return False
            with self.changing():
                for stretch in stretches:
                    self._index(stretch)
                    self._indexed += len(stretch.rows)
            return True

    def _empty_log(self) -> None:
        """Bring what was written into the database itself, here rather than by whoever appends next and waits for it."""
        if self._indexed >= _LOGGED and self.driver.dialect == "sqlite":
            self._indexed = 0
            self.driver.fetch(CHECKPOINT)

    def rebuild_index(self) -> None:
        """Index everything anew, at the next search or in the background."""
        with self._indexing, self.changing():
            self.driver.execute(self._dialect("drop_index"))
            if self.driver.dialect == "sqlite":
                self.driver.execute(self.sql["make_index_sqlite"])
            self._begin_index()
        self.wake_indexer()

    def forget_words(self, chat: str, number: int, rows: list[Row]) -> None:
        """Let turns be found no more, inside a transaction."""
        if not self._has_index and not self.driver.has_table("turn_terms"):
            return
        for row in rows:
            self.driver.execute(self._dialect("forget_words"), **self._words_of(chat, number, row))

    def tells_later(self) -> bool:
        """Return whether the indexer will tell what was said."""
        return self._may_start

    def tell_said(self) -> None:
        """Tell what was said and is yet to be told."""
        if is_untold(self.driver):
            with self.changing():
                pass

    def wake_indexer(self) -> None:
        """Have what was appended told and indexed soon, where threads are allowed."""
        if self._has_more and self._is_at_work:
            # Nearly always: one is about to look anyway.
            return
        with self._waking:
            self._has_more = True
            if not self._may_start or (self._indexer is not None and self._indexer.is_alive()):
                self._called.set()
                return
            indexer = self._indexer = threading.Thread(target=self._index_on, name="perdure-index", daemon=True)
            self._is_at_work = True
        indexer.start()

    def stop_indexer(self) -> None:
        """Let nothing be indexed any more, and wait for what is."""
        self._may_start = False
        self._is_closing.set()
        self._called.set()
        indexer = self._indexer
        if indexer is not None:
            indexer.join()

    def _index_on(self) -> None:
        """Tell and index what is appended, each time when some has gathered, until there is nothing for long."""
        try:
            while self._goes_on() and not self._is_closing.wait(_GATHERING):
                self.tell_said()
                while not self._is_closing.is_set() and (self.index_turns() or forgetting.go_on(self)):
                    continue
        except errors.PerdureError:
            pass  # whatever is the matter, whoever searches meets it too, and is told
        finally:
            with self._waking:
                self._ends()

    def _goes_on(self) -> bool:
        """Wait for something to be appended; False where that takes long: whoever appends next needs another indexer."""
        is_late = False
        while True:
            with self._waking:
                has_more, self._has_more = self._has_more, False
                self._called.clear()
                if is_late and not has_more:
                    self._ends()
                if has_more or is_late or self._is_closing.is_set():
                    return has_more
            is_late = not self._called.wait(_RESTING)

    def _ends(self) -> None:
        # Another may have been begun in the meantime.
        if self._indexer is threading.current_thread():
            self._indexer, self._is_at_work = None, False

    def _matches(
        self, chat: str | None, reaches: Sequence[str], whose: dict[str, Value], which: dict[str, Value], most: int
    ) -> list[Row]:
        """The ids of the latest turns that match, and how long they are."""
        sql, listed = with_list(self._dialect("matches"), "reaches", reaches)
        among: dict[str, Value] = {**listed, **whose, **which}
        numbers = self._numbers(chat, reaches, whose)
        if numbers is None:
            is_all = whose["everybody"] and whose["platform"] is None and whose["participant"] is None
            # What is left of forgotten chats would take the place of what can be shown.
            is_all = is_all and not forgetting.is_any_left(self)
            return self.driver.fetch(sql, low=0, high=_LAST, everywhere=int(bool(is_all)), limit=most, **among)
        found: list[Row] = []
        for number in numbers:
            left = most - len(found)
            if left <= 0:
                break
            low, high = number * SPAN, (number + 1) * SPAN
            found += self.driver.fetch(sql, low=low, high=high, everywhere=1, limit=left, **among)
        return found

    def _numbers(self, chat: str | None, reaches: Sequence[str], whose: dict[str, Value]) -> list[int] | None:
        """The chats to be searched one by one, when there are few of them: then others' words cost nothing.

        None for any number of them. PostgreSQL would go through others' words for each of them.
        """
        if chat is None and self.driver.dialect != "sqlite":
            return None
        if chat is None and whose["everybody"] and whose["platform"] is None and whose["participant"] is None:
            return None
        sql, listed = with_list(self.sql["numbers_in_reach"], "reaches", reaches)
        rows = self.driver.fetch(sql, chat=chat, limit=_FEW + 1, **listed, **whose)
        return [row[0] for row in rows] if len(rows) <= _FEW else None

    def _best(self, matches: Sequence[Row], terms: Sequence[words.Term], limit: int) -> tuple[Found, ...]:
        """The best of the turns that match. Very long ones are not read for it, and count as saying each word once."""
        short = self._read([id for id, size in matches if size <= _LONG])
        texts = {id: text_of(turn) for id, (_, _, turn) in short.items()}
        weights = words.weights([texts.get(id) for id, _ in matches], terms)
        ranked = sorted(zip(weights, (id for id, _ in matches), strict=True), reverse=True)[:limit]
        there = short | self._read([id for _, id in ranked if id not in short])
        return tuple(_found(*there[id], terms) for _, id in ranked if id in there)

    def _read(self, ids: Sequence[int]) -> dict[int, tuple[str, str | None, Turn]]:
        """The turns of some ids, with the id and the title of their chats.

        Those that went meanwhile are left out, and those that cannot be read back, as they are where they were not yet
        indexed when they were spoilt: `check` names them, and whoever searches looks for the others.
        """
        found: dict[int, tuple[str, str | None, Turn]] = {}
        for start in range(0, len(ids), AT_ONCE):
            sql, parameters = with_list(self.sql["found_turns"], "ids", ids[start : start + AT_ONCE])
            for chat, title, number, *row in self.driver.fetch_as_is(sql, **parameters):
                try:
                    turn = turn_from(chat, number, tuple(row))
                except UNREADABLE:
                    continue
                found[row[0]] = chat, None if isinstance(title, Spoilt) else title, turn
        return found

    def index_whole(self) -> None:
        """Let everything that was said be found."""
        try:
            while self.index_turns():
                continue
        except errors.StoreDamaged:
            self.rebuild_index()
            while self.index_turns():
                continue

    def _make_index(self) -> None:
        if not self._has_index:
            with self.changing():
                if not self.driver.has_table("turn_terms"):
                    self.driver.execute(self.sql["drop_old_index_sqlite"])
                    self.driver.execute(self.sql["make_index_sqlite"])
                    self._begin_index()
            self._has_index = True

    def _begin_index(self) -> None:
        """Note that nothing is indexed yet, of chats that are there and of those that are being forgotten."""
        self.driver.execute(self.sql["nothing_searchable"])
        self.driver.execute(self.sql["nothing_forgotten_searchable"])

    def _stretches(self, limit: int) -> Iterator[_Stretch]:
        room = BYTES
        for number, searchable, settled, chat in self.driver.fetch_as_is(self._dialect("chats_to_index"), limit=limit):
            if limit <= 0 or room <= 0:
                return
            if isinstance(chat, Spoilt):
                # None of its turns can be read before it has its id again.
                continue
            low, high = number * SPAN + searchable, number * SPAN + settled
            sizes = self.driver.fetch(self.sql["sizes_between"], low=low, high=high, limit=limit)
            count = step((size for _, size in sizes), room)
            is_cut = count < len(sizes) or count == limit
            until = sizes[count - 1][0] - number * SPAN + 1 if is_cut else settled
            rows = self.driver.fetch_as_is(self.sql["turns_between"], low=low, high=number * SPAN + until, limit=count)
            limit -= count
            room -= sum(size for _, size in sizes[:count])
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
        found = ""
        # One that cannot be read back is found by nothing.
        with suppress(*UNREADABLE):
            turn = turn_from(chat, number, row)
            if self.driver.dialect == "sqlite":
                marks = (words.mark_of(turn.role), *words.marks_at(row[2]))
                found = " ".join((words.for_fts5(text_of(turn)), *marks))
            else:
                found = words.for_tsvector(text_of(turn))
        return {"id": row[0], "words": found}

    def _dialect(self, name: str) -> str:
        return self.sql[f"{name}_{self.driver.dialect}"]


def text_of(turn: Turn) -> str:
    """Return everything of a turn that can be searched.

    SQLite takes words out of its index only when it is told all that were put in: who changes this has to have
    everything indexed anew.
    """
    if isinstance(turn.content, str) and not turn.tool_name and not turn.tool_calls:
        return turn.content
    return "\n".join(filter(None, (*texts_of(turn.content), turn.tool_name, *texts_of(turn.tool_calls))))


def _found(chat: str, title: str | None, turn: Turn, terms: Sequence[words.Term]) -> Found:
    text, marks = words.snippet(text_of(turn), terms)
    return Found(chat=chat, position=turn.position, role=turn.role, at=turn.at, title=title, snippet=text, marks=marks)
