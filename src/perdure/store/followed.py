"""Chats with what somebody asks who keeps a copy of them: what has happened to which since."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from perdure.model.chat import ChatNews
from perdure.model.digest import digest_of
from perdure.model.event import EventKind, StoredEvent
from perdure.store.chats import ChatBook
from perdure.store.driver import with_list
from perdure.store.numbers import EVENTS, is_number
from perdure.store.rows import canonical
from perdure.store.runs import event_from

_PAGE = 500
#: What changes what is said in a chat, or whether it is there.
_KINDS = (EventKind.CHAT_OPENED, EventKind.CHAT_SAID, EventKind.CHAT_TAKEN_BACK, EventKind.CHAT_FORGOTTEN)
#: The same for whoever looks at all chats anyway.
_COMING_AND_GOING = (EventKind.CHAT_OPENED, EventKind.CHAT_FORGOTTEN)


class FollowedChats(ChatBook):
    """The `FollowedStore` of one database. Events tell what has happened: they are written with it or not at all."""

    def chat_news(self, after: int | None, mark: str | None = None) -> ChatNews:
        """Return what has happened to chats behind a number; for None all that is known, of which not all is.

        With `mark`, that of the event of this number, it is noticed where there is another event in its place.
        """
        # Before the events: what is told of in between is among those then.
        changed = {row[1] for row in self.driver.fetch_as_is(self.sql["chats_to_tell_of"])}
        last = max(filter(is_number, self.driver.fetch(self.sql[f"given_{EVENTS}"])[0]), default=0)
        is_another = after is not None and self._is_another(after, mark, last)
        is_all = after is not None and not is_another and self._has_all(after, last)
        forgotten: set[str] = set()
        renewed: set[str] = set()
        # Where not all is known, the same number may be another event's: all are read again.
        for stored in self._told(after or 0 if is_all else 0, _KINDS if is_all else _COMING_AND_GOING):
            last = max(last, stored.seq)
            id = str(stored.event.data.get("chat"))
            if stored.event.kind is EventKind.CHAT_FORGOTTEN:
                forgotten.add(id)
                continue
            changed.add(id)
            if id in forgotten and stored.event.kind is EventKind.CHAT_OPENED:
                forgotten.remove(id)
                renewed.add(id)
        return ChatNews(
            last=last,
            mark=self._mark(last),
            changed=frozenset(changed - forgotten),
            forgotten=frozenset(forgotten),
            renewed=frozenset(renewed - forgotten),
            is_all=is_all,
            is_another=is_another,
        )

    def next_positions(self, ids: Collection[str]) -> dict[str, int]:
        """Return the positions of the next turns of those chats that are there."""
        found: dict[str, int] = {}
        wanted = sorted(ids)
        for first in range(0, len(wanted), _PAGE):
            sql, parameters = with_list(self.sql["next_positions"], "ids", wanted[first : first + _PAGE])
            found |= dict(self.driver.fetch_as_is(sql, **parameters))
        return found

    def _has_all(self, after: int, last: int) -> bool:
        """Whether every event behind a number that was given here is still there."""
        if last == after:
            return True
        first = self._first()
        return first is not None and first <= after + 1

    def _is_another(self, after: int, mark: str | None, last: int) -> bool:
        """Whether a number was given by another database, or by this one before it was put back."""
        if last < after:
            return True
        found = self._mark(after)
        if mark is None or found == mark:
            return False
        # One that is not there may have been let go of with age, but then none before it is there either.
        first = self._first()
        return bool(found) or (first is not None and first < after)

    def _mark(self, seq: int) -> str:
        """By what an event is known again; empty where there is none of this number."""
        for row in self.driver.fetch_as_is(self.sql["all_events"], after=seq - 1, limit=1):
            if row[0] == seq:
                stored = event_from(row)
                return "unreadable" if stored is None else digest_of(canonical(stored), 8)
        return ""

    def _first(self) -> int | None:
        """The lowest number that an event has."""
        first: int | None = self.driver.fetch(self.sql["first_event"])[0][0]
        return first

    def _told(self, after: int, kinds: Collection[EventKind]) -> Iterator[StoredEvent]:
        """Yield the events of some kinds behind a number that can be read."""
        sql, parameters = with_list(self.sql["read_events"], "kinds", sorted(kind.value for kind in kinds))
        while True:
            rows = self.driver.fetch_as_is(sql, after=after, limit=_PAGE, **parameters)
            yield from filter(None, map(event_from, rows))
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]
