"""Chats: one open for each key at most, each readable or left out on its own."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import Chat, CloseReason, Kinship, Turn
from perdure.model.chat_import import Arrival, Arrived, come_in_closed, is_same_place, news
from perdure.model.chat_owner import owner_of
from perdure.model.text import is_storable
from perdure.store import chat_events, forgetting
from perdure.store.chat_rows import SPAN, Ready, chat_columns, chat_from, ready
from perdure.store.driver import Driver, Row, Spoilt, with_list
from perdure.store.records import NO_LIMIT
from perdure.store.rows import moment_of, stamp
from perdure.store.search import Search
from perdure.store.turns import Spot, as_expected, not_there, refuse_moved
from perdure.store.untold import Tell

#: Before every stamp, and behind every stamp.
_EVER, _NEVER = "", "~"
_PAGE = 500


class ChatBook(Search):
    """The `ChatStore` of one database. A chat that cannot be read back is an error, and left out of lists."""

    def __init__(self, driver: Driver, tell: Tell, *, read_only: bool = False) -> None:
        super().__init__(driver, tell)
        self._is_read_only = read_only

    def open_chat(self, key: str) -> Chat | None:
        rows = self.driver.fetch_as_is(self.sql["open_chat"], key=key)
        return chat_from(rows[0]) if rows else None

    def get_chat(self, id: str) -> Chat:
        return chat_from(self._row(id))

    def chats_beginning(self, prefix: str, *, limit: int = 2) -> tuple[Chat, ...]:
        # Ids are ASCII: nothing that begins with the prefix comes behind this.
        rows = self.driver.fetch_as_is(self.sql["chats_from"], low=prefix, high=prefix + "\x7f", limit=limit)
        return tuple(map(chat_from, rows))

    def last_closed(self, key: str) -> Chat | None:
        at, number = _NEVER, SPAN
        while rows := self.driver.fetch_as_is(self.sql["last_closed"], key=key, at=at, number=number):
            number, at = rows[0][0], rows[0][5]
            # The clock may have been ahead when it was closed, and been put right before the one after it was.
            if not self.driver.fetch(self.sql["closed_since"], key=key, at=at, number=number):
                return chat_from(rows[0])
        return None

    def continuation_of(self, id: str) -> Chat | None:
        rows = self.driver.fetch_as_is(self.sql["continuation_of"], id=id)
        return chat_from(rows[-1]) if rows else None

    def list_chats(
        self,
        *,
        reaches: Collection[str] | None = None,
        owner: str | None = None,
        key: str | None = None,
        is_open: bool | None = None,
        since: datetime | None = None,
        limit: int | None = None,
    ) -> tuple[Chat, ...]:
        named = "list_chats" if reaches is None else "list_chats_in_reach"
        sql, parameters = with_list(self.sql[named], "reaches", sorted(reaches or ("",)))
        if reaches is None:
            parameters = {}
        else:
            parameters["owner"] = owner
        rows = self.driver.fetch_as_is(
            sql,
            key=key,
            is_open=None if is_open is None else int(is_open),
            since=_EVER if since is None else stamp(since),
            limit=NO_LIMIT if limit is None else max(0, limit),
            **parameters,
        )
        return tuple(_readable(rows))

    def chats_owed(self) -> tuple[Chat, ...]:
        return tuple(_readable(self.driver.fetch_as_is(self.sql["list_chats_owed"])))

    def chats_titled(self, owner: str | None, title: str) -> tuple[Chat, ...]:
        # "$" comes right behind "#".
        span = {"title": title, "low": f"{title} #", "high": f"{title} $"}
        if owner is None:
            return tuple(_readable(self.driver.fetch_as_is(self.sql["all_chats_titled"], **span)))
        return tuple(_readable(self.driver.fetch_as_is(self.sql["chats_titled"], owner=owner, **span)))

    def taken_titles(self, owner: str, title: str) -> tuple[str, ...]:
        rows = self.driver.fetch_as_is(
            self.sql["taken_titles"], owner=owner, title=title, low=f"{title} #", high=f"{title} $"
        )
        return tuple(title for (title,) in rows)

    def count_chats(self) -> int:
        return int(self.driver.fetch(self.sql["count_chats"])[0][0])

    def begin_chat(
        self,
        chat: Chat,
        *,
        instead_of: Chat | None = None,
        reason: CloseReason = CloseReason.ASKED,
        copy: str | None = None,
        before: int | None = None,
        turns: Sequence[Turn] = (),
        expect: int | None = None,
    ) -> Chat | None:
        written = [ready(turn) for turn in turns]
        with self.changing():
            if instead_of is not None:
                as_expected(instead_of.id, expect, self.spot(instead_of.id))
            if chat.is_open and not self._make_way(chat, instead_of, reason):
                return None
            self._insert(chat)
            if chat.kinship is Kinship.CONTINUATION and chat.follows is not None:
                # The same conversation: whoever was granted it still is.
                self.driver.execute(self.sql["pass_grants_on"], chat=chat.id, before=chat.follows)
            if copy is not None:
                self.copy_turns(copy, chat.id, before=before, at=chat.touched_at)
            if written:
                self.write(chat.id, written, chat.touched_at)
            begun = self.get_chat(chat.id)
            self.tell(list(chat_events.opened(begun)))
        if begun.turns:
            self.wake_indexer()
        return begun

    def import_chat(
        self,
        chat: Chat,
        turns: Sequence[Turn],
        *,
        next: int | None = None,
        change: Callable[[Chat], Chat] | None = None,
    ) -> Arrived:
        with self.changing():
            rows = self.driver.fetch_as_is(self.sql["get_chat"], id=chat.id)
            arrived = self._catch_up(rows[0], chat, turns, change) if rows else self._settle(chat, turns, next)
        if arrived.added:
            self.wake_indexer()
        return arrived

    def _settle(self, chat: Chat, turns: Sequence[Turn], next: int | None) -> Arrived:
        if not chat.is_open or self.open_chat(chat.key) is not None:
            chat = come_in_closed(chat)
        self._insert(chat)
        self.place(chat.id, turns, chat.touched_at, next=next)
        settled = self.get_chat(chat.id)
        self.tell(list(chat_events.opened(settled)))
        return Arrived(result=Arrival.NEW, chat=settled, added=len(turns))

    def _catch_up(self, row: Row, chat: Chat, turns: Sequence[Turn], change: Callable[[Chat], Chat] | None) -> Arrived:
        here = chat_from(row)
        new = news(self.load_turns(chat.id, hidden=True).turns, turns)
        if new.result is Arrival.CHANGED or not is_same_place(here.source, chat.source):
            return Arrived(result=Arrival.CHANGED, chat=here)
        after = here if change is None else change(here)
        if after != here:
            self.refuse_title_of_another(after)
            self._put(row[0], after)
            self.tell(list(chat_events.changed(here, after, chat.touched_at)))
        if new.result is Arrival.GREW:
            self.follow(chat.id, new.rest, new.taken_back, chat.touched_at)
        return Arrived(result=new.result, chat=self.get_chat(chat.id), added=len(new.rest))

    def switch_chat(self, chat: Chat, key: str, at: datetime, *, instead_of: Chat | None) -> Chat | None:
        with self.changing():
            row = self._row(chat.id)
            found = chat_from(row)
            current = self.open_chat(key)
            if _standing(found) != _standing(chat) or _id(current) != _id(instead_of):
                return None
            if current is not None and current.id == chat.id:
                return found
            if current is not None:
                self._close(current, CloseReason.SWITCHED, at, successor=chat.id)
            reopened = replace(
                found, key=key, closed_at=None, close_reason=None, touched_at=at, suspended=False, flushed_at=None
            )
            self._put(row[0], replace(reopened, flush_failures=0, resume_pending_at=None, notice=None))
            self.tell(list(chat_events.changed(found, reopened, at)))
            return self.get_chat(chat.id)

    def change_chat(
        self,
        id: str,
        change: Callable[[Chat], Chat],
        *,
        over: Collection[str] = (),
        at: datetime | None = None,
        expect: int | None = None,
    ) -> Chat:
        with self.changing():
            row = self._row(id)
            before = chat_from(row)
            if expect is not None:
                refuse_moved(id, expect, self.spot(id))
            after = change(before)
            if after != before:
                when = after.touched_at if at is None else at
                given_up = self.refuse_title_of_another(after, over)
                self._put(row[0], after)
                pairs = [*((each, replace(each, title=None)) for each in given_up), (before, after)]
                self.tell([event for pair in pairs for event in chat_events.changed(*pair, when)])
            return after

    def touch_chat(self, id: str, at: datetime) -> bool:
        if not is_storable(id):
            return False
        with self.alone():
            return bool(self.driver.execute(self.sql["touch_chat"], id=id, at=stamp(at)))

    def append_turns(self, id: str, turns: Sequence[Turn], at: datetime, *, expect: int | None = None) -> int:
        if not self.is_known(id):
            _refuse_unstorable(id)
        position = super().append_turns(id, turns, at, expect=expect)
        self.wake_indexer()
        return position

    def spot(self, id: str) -> Spot:
        """Return where the next turn of a chat goes. Raises `ChatNotFound`."""
        _refuse_unstorable(id)
        return super().spot(id)

    def grant_chat(self, id: str, owner: str) -> None:
        with self.changing():
            self.driver.execute(self.sql["grant_chat"], chat=self._row(id)[0], owner=owner)

    def revoke_chat(self, id: str, owner: str) -> None:
        with self.changing():
            self.driver.execute(self.sql["revoke_chat"], chat=self._row(id)[0], owner=owner)

    def is_granted(self, id: str, owner: str) -> bool:
        return bool(self.driver.fetch(self.sql["is_granted"], chat=self._row(id)[0], owner=owner))

    def forget_chat(self, id: str, *, before: datetime | None = None, at: datetime | None = None) -> None:
        with self.changing():
            row = self._row(id)
            number, touched_at, closed_at = row[0], row[4], row[5]
            if closed_at is None:
                raise errors.Refused(f"Chat {id} is still open: only one that was closed can be forgotten.", chat=id)
            if before is not None and max(touched_at, closed_at) >= stamp(before):
                raise errors.Refused(f"Chat {id} was used in between.", chat=id)
            (searchable,) = self.driver.fetch(self.sql["searchable_of"], number=number)[0]
            self.driver.execute(self.sql["delete_chat"], number=number)
            forgetting.begin(self, id, number, searchable)
            self.tell([chat_events.forgotten(id, moment_of(closed_at) if at is None else at)])
        # It is gone, whatever happens now: what is left goes later then.
        with suppress(errors.StoreUnusable):
            while forgetting.go_on(self):
                continue

    def refuse_to_change(self) -> None:
        """Raise `StoreUnusable` where nothing can be changed."""
        if self._is_read_only:
            raise errors.StoreUnusable("The store is only read here: no chat can be changed in it.")

    def owe_again(self, id: str) -> None:
        """Let a closed chat in which something was said late be handed on once more, inside a transaction."""
        row = self._row(id)
        # Of one whose record cannot be read nothing is known that could be handed on; what was said is kept.
        with suppress(errors.ChatDamaged):
            chat = chat_from(row)
            if chat.flushed_at is not None:
                self._put(row[0], replace(chat, flushed_at=None, flush_failures=0))

    def index_turns(self, limit: int = 200) -> bool:
        return not self._is_read_only and super().index_turns(limit)

    def index_whole(self) -> None:
        """Let everything that was said be found; where nothing can be written, what was indexed before has to do."""
        if self._is_read_only and self.driver.dialect == "sqlite" and not self.driver.has_table("turn_terms"):
            raise errors.StoreUnusable(
                "What was said has never been searched here, and nothing can be written: it cannot be indexed."
            )
        super().index_whole()

    def close(self) -> None:
        """Let nothing be indexed any more, and all be told; the database is let go of by whoever opened it."""
        self.stop_indexer()
        # Else it is told by whoever comes next.
        with suppress(errors.StoreUnusable):
            self.tell_said()

    def rows(self) -> Iterator[Row]:
        """Yield the rows of all chats, oldest first."""
        after = 0
        while True:
            rows = self.driver.fetch_as_is(self.sql["all_chats"], after=after, limit=_PAGE)
            yield from rows
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def is_misfiled(self, number: int) -> bool:
        """Return whether some text that a chat is looked for by is no UTF-8."""
        return any(Spoilt in map(type, row) for row in self.driver.fetch_as_is(self.sql["found_by"], number=number))

    def _make_way(self, chat: Chat, instead_of: Chat | None, reason: CloseReason) -> bool:
        """Close the open chat of a key; False when it is not the one that was looked at, as it was looked at."""
        current = self.open_chat(chat.key)
        if (None if current is None else (current.id, current.touched_at)) != (
            None if instead_of is None else (instead_of.id, instead_of.touched_at)
        ):
            return False
        if current is not None:
            self._close(current, reason, chat.opened_at, successor=chat.id)
        return True

    def _close(self, chat: Chat, reason: CloseReason, at: datetime, *, successor: str) -> None:
        # Its notice goes with it: it was about this chat, and nobody comes to this chat any more.
        closed = replace(chat, closed_at=at, close_reason=reason, notice=None, resume_pending_at=None)
        self._put(self._row(chat.id)[0], closed)
        self.tell(list(chat_events.changed(chat, closed, at, successor=successor)))

    def _insert(self, chat: Chat) -> None:
        if self.driver.fetch_as_is(self.sql["get_chat"], id=chat.id):
            raise errors.Conflict(f"There is a chat {chat.id} already.", chat=chat.id)
        self.refuse_title_of_another(chat)
        self.driver.execute(self.sql["insert_chat"], opened_at=stamp(chat.opened_at), **chat_columns(chat))

    def _put(self, number: int, chat: Chat) -> None:
        columns = chat_columns(chat)
        del columns["id"]
        self.driver.execute(self.sql["put_chat"], number=number, **columns)

    def refuse_title_of_another(self, chat: Chat, over: Collection[str] = ()) -> list[Chat]:
        """Raise `TitleTaken` when another chat of its owner has its title; return those `over` that give it up."""
        given_up: list[Chat] = []
        if chat.title is None:
            return given_up
        owner = owner_of(chat.source, shared=chat.shared)
        for row in self.driver.fetch_as_is(self.sql["holder_of_title"], owner=owner, title=chat.title):
            # One that cannot be read cannot be put down without its title, either.
            gives_up = list(_readable([row])) if row[1] in over else []
            if gives_up:
                given_up += gives_up
                self._put(row[0], replace(gives_up[0], title=None))
            elif row[1] != chat.id:
                raise errors.TitleTaken(f'Chat {row[1]} has the title "{chat.title}" already.', chat=str(row[1]))
        return given_up

    def _row(self, id: str) -> Row:
        _refuse_unstorable(id)
        for row in self.driver.fetch_as_is(self.sql["get_chat"], id=id):
            return row
        raise not_there(id)

    def _take_back(self, id: str, spot: Spot, start: int, turns: Sequence[Ready], at: datetime) -> int:
        if not 1 <= start <= spot.next:
            raise errors.UsageError(f"Chat {id} has positions from 1 to {spot.next}, and not {start}.")
        return super()._take_back(id, spot, start, turns, at)


def _refuse_unstorable(id: str) -> None:
    # Somebody typed it. No chat has such an id, and the databases would each complain in their own way.
    if not is_storable(id):
        raise not_there(ascii(id)[:80])


def _standing(chat: Chat) -> tuple[object, ...]:
    """Whether it is open, where, and if not, what became of it."""
    return chat.key, chat.closed_at, chat.close_reason


def _id(chat: Chat | None) -> str | None:
    return None if chat is None else chat.id


def _readable(rows: Sequence[Row]) -> Iterator[Chat]:
    for row in rows:
        # It costs only itself; `check` says so.
        with suppress(errors.ChatDamaged):
            yield chat_from(row)
