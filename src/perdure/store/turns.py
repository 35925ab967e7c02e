"""What was said in chats: appended for good before anybody is told, read back whole or not at all."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from msgspec import Struct
from msgspec.structs import asdict

from perdure import errors
from perdure.model.chat import Transcript, Turn
from perdure.model.event import Event
from perdure.store import arrivals, chat_events, forking
from perdure.store.appends import Append, Appends
from perdure.store.chat_rows import (
    LEFT_OUT,
    LOST_HIDDEN,
    SPAN,
    Ready,
    blank,
    damaged_chat,
    reader_of,
    ready,
    stands_for,
)
from perdure.store.driver import Driver, Row, Spoilt, Value, with_list
from perdure.store.numbers import GIVING
from perdure.store.records import NO_LIMIT
from perdure.store.rows import UNREADABLE, stamp
from perdure.store.together import Together
from perdure.store.untold import Tell, tell_said

#: How many turns are fetched at once where not all are wanted at once.
_PAGE = 500
_USER = "user"
#: Of how many chats it is known where they went on.
_KNOWN = 1000


class Spot(Struct):
    """Where the next turn of a chat goes."""

    number: int
    #: Its position.
    next: int
    #: How many there are that were not taken back.
    turns: int
    touched_at: str
    #: Whether something of it is yet to be indexed or told.
    behind: int = 0
    #: Whether the chat says otherwise, and is to be put right before anything is written.
    is_misplaced: bool = False
    is_closed: bool = False


class Turns:
    """The turns of the chats of one database."""

    def __init__(self, driver: Driver, tell: Tell) -> None:
        self.driver = driver
        self.tell = tell
        self.sql = arrivals.statements(driver.dialect)
        #: Whether what is appended is put in its place only afterwards.
        self.has_arrivals = driver.dialect == "sqlite"
        self._appends = Appends(self._commit)
        # Threads of one process take turns here, where they are woken at once, and not at the database's door,
        # where they would look again only every so often.
        self._writing = threading.Lock()
        #: The numbers of chats, and where they went on when this process last wrote there.
        self._known: dict[str, tuple[int, int]] = {}
        self._together = Together(driver, self._writing, self._appends.top_up, self._write, self._known)
        self._move_on, self._say = self.sql["move_on"], self.sql[f"say_{driver.dialect}"]
        forking.begins_anew(self)

    def begin_anew(self) -> None:
        """Wait, in a child, for none of the parent's threads, and write nothing for them."""
        self._appends.begin_anew()
        self._writing = self._together.writing = threading.Lock()

    def append_turns(self, id: str, turns: Sequence[Turn], at: datetime, *, expect: int | None = None) -> int:
        return self._appends.run(Append(id, list(map(ready, turns)), expect, at))

    def is_known(self, id: str) -> bool:
        """Return whether this process has written to a chat lately."""
        return id in self._known

    def load_turns(
        self, id: str, *, start: int = 1, limit: int | None = None, hidden: bool = False, partly: bool = False
    ) -> Transcript:
        rows, is_settled = self._loaded(
            id=id,
            start=max(0, min(start, SPAN - 1)),
            hidden=int(hidden),
            limit=NO_LIMIT if limit is None else max(1, limit),
        )
        if not rows:
            raise not_there(id)
        next, count, number, *_ = rows[0]
        found = [row[3:] for row in rows if row[3] is not None]
        is_all = start <= 1 and limit is None and not hidden
        turns = tuple(_readable(id, number, found, partly=partly))
        last = found[-1][0] - number * SPAN if found else 0
        is_misplaced = not last < next < SPAN
        if is_misplaced:
            # Behind what is there, as whoever appends finds.
            next = self.spot(id).next
        end = next if limit is None or len(found) < max(1, limit) else last + 1
        missing = self.unaccounted(number, start, end, hidden=hidden, is_settled=is_settled) + len(found) - len(turns)
        if missing or is_misplaced or (is_all and len(found) != count):
            # Unless it was forgotten in between, and maybe brought back: under another number then.
            if self.spot(id).number != number:
                return self.load_turns(id, start=start, limit=limit, hidden=hidden, partly=partly)
            if not partly:
                raise damaged_chat(id)
        return Transcript(chat=id, turns=turns[:limit] if limit != 0 else (), next=next, missing=missing)

    def _loaded(self, **wanted: Value) -> tuple[list[Row], bool]:
        """The rows of some turns of a chat, each with what the chat says of all, and whether all are in their places."""
        if not self.has_arrivals:
            return self.driver.fetch_as_is(self.sql["load_turns"], **wanted), True
        rows = self.driver.fetch_as_is(self.sql["load_settled"], **wanted)
        # One statement each: between two, what has arrived may be put in its place.
        return (rows, True) if rows else (self.driver.fetch_as_is(self.sql["load_with_arrivals"], **wanted), False)

    def rewrite_turns(
        self, id: str, start: int, turns: Sequence[Turn], at: datetime, *, expect: int | None = None
    ) -> int:
        written = [ready(turn) for turn in turns]
        with self.changing():
            spot = self.spot(id)
            refuse_closed(id, spot)
            as_expected(id, expect, spot)
            return self._take_back(id, spot, start, written, at)

    def undo_turns(self, id: str, count: int, at: datetime) -> Turn:
        with self.changing():
            spot = self.spot(id)
            refuse_closed(id, spot)
            low, high = _range(spot.number)
            rows = self.driver.fetch(
                self.sql["last_of_role"], low=low, high=high, role=_USER, limit=max(1, min(count, SPAN))
            )
            if len(rows) < count or count < 1:
                raise errors.UsageError(f"Chat {id} has {len(rows)} turns of the user to go back to, not {count}.")
            position = rows[-1][0] - low
            (turn,) = self.load_turns(id, start=position, limit=1).turns
            self._take_back(id, spot, position, (), at)
        return turn

    def write(self, id: str, turns: Sequence[Ready], at: datetime, *, skip: bool = False) -> int:
        """Write turns behind the last, inside a transaction, and return the position of the last one.

        With `skip` a position is left out, so that whoever has read the chat before learns that it has changed.
        """
        spot = self._settled(id, self.spot(id))
        first = spot.next + skip
        self._insert_turns(id, spot, enumerate(turns, first), first + len(turns))
        self.advance(spot.number, first + len(turns), max(spot.touched_at, stamp(at)))
        return first + len(turns) - 1

    def place(
        self, id: str, turns: Sequence[Turn], at: datetime, *, next: int | None = None, skip: bool = False
    ) -> tuple[int, int]:
        """Write turns at the positions they say, inside a transaction; behind the last where those are taken already.

        Returns the positions of the first and the last. `next` is that of the turn to come, where it is known. With
        `skip` one more position is left out before the first.
        """
        spot = self._settled(id, self.spot(id))
        positions, last = [], spot.next - 1 + skip
        for turn in turns:
            last = max(last + 1, turn.position)
            positions.append(last)
        end = max(last + 1, next or 0)
        self._insert_turns(id, spot, zip(positions, map(ready, turns), strict=True), end)
        self.advance(spot.number, end, max(spot.touched_at, stamp(at)))
        return positions[0] if positions else last + 1, last

    def follow(self, id: str, turns: Sequence[Turn], taken_back: Sequence[int], at: datetime) -> None:
        """Do to a chat, inside a transaction, what was done to it elsewhere: take turns back, and write others."""
        spot = self.spot(id)
        low = spot.number * SPAN
        if taken_back:
            arrivals.settle(self, spot.number)
        for position in taken_back:
            self.driver.execute(self.sql["hide_turns"], low=low + position, high=low + position + 1)
        # A position is left out, so that whoever has read the chat before learns that it has changed.
        first, last = self.place(id, turns, at, skip=bool(taken_back))
        if taken_back:
            self.tell([chat_events.taken_back(id, at, min(taken_back), len(taken_back), first, last)])
        else:
            self.tell([chat_events.said(id, at, first, last)])

    def copy_turns(self, id: str, to: str, *, before: int | None, at: datetime) -> None:
        """Give a new chat everything that was said in another before a position, inside a transaction."""
        source, spot, last = self.spot(id), self.spot(to), 0
        arrivals.settle(self, source.number)
        if self.unaccounted(source.number, 1, source.next if before is None else min(before, source.next)):
            raise damaged_chat(id)
        for turn in _readable(id, source.number, self.rows_of(source.number, before=before)):
            if not turn.hidden:
                spot.next, last = last + 1, turn.position
                self._insert_turns(to, spot, [(last, ready(turn))], last + 1)
        self.advance(spot.number, last + 1, stamp(at))

    def rows_of(self, number: int, *, before: int | None = None) -> Iterator[Row]:
        """Yield the rows of a chat's turns in order, those that were taken back too."""
        low, high = _range(number)
        if before is not None:
            high = min(high, low + before)
        while True:
            rows = self.driver.fetch_as_is(self.sql["turns_between"], low=low, high=high, limit=_PAGE)
            yield from rows
            if len(rows) < _PAGE:
                return
            low = rows[-1][0] + 1

    def places_of(self, number: int) -> Iterator[tuple[int, int | None, int]]:
        """Yield in order (position, what `hidden` says, for how many positions it stands) of all that a chat has.

        What does not say what it is, or for how much, stands for its own position as None.
        """
        low, high = _range(number)
        base = low
        while True:
            rows = self.driver.fetch(self.sql["places_between"], low=low, high=high, limit=_PAGE)
            for id, hidden, seal in rows:
                yield id - base, *stands_for(hidden, seal)
            if len(rows) < _PAGE:
                return
            low = rows[-1][0] + 1

    def unaccounted(self, number: int, start: int, end: int, *, hidden: bool = False, is_settled: bool = True) -> int:
        """Return how many positions there are, from one up to another, where a turn was and is no more.

        Every position before the next turn's is a turn's, or was left out and says so. What was taken back and is lost
        is missed only where that is wanted, too. With `is_settled` all of them are known to be in their places.
        """
        start, (low, _) = max(1, start), _range(number)
        other = LEFT_OUT if hidden else LOST_HIDDEN
        if 1 < start < end:
            for id, kind, seal in self.driver.fetch(self.sql["place_before"], low=low, id=low + start):
                if kind in (LEFT_OUT, other):
                    start = max(start, id - low + seal)
        if start >= end:
            return 0
        counting = self.sql["count_settled" if is_settled else "count_places"]
        ((there,),) = self.driver.fetch(counting, low=low + start, high=low + end, other=other)
        return abs(end - start - int(there))

    def spot(self, id: str) -> Spot:
        """Return where the next turn of a chat goes. Raises `ChatNotFound`."""
        for spot in self._spots([id]).values():
            return spot
        raise not_there(id)

    def count(self, number: int) -> int:
        """Return how many turns of a chat were not taken back."""
        low, high = _range(number)
        return int(self.driver.fetch(self.sql["count_turns"], low=low, high=high)[0][0])

    @contextmanager
    def alone(self) -> Iterator[None]:
        """One transaction in which nobody else changes a chat, in this process or another."""
        self.refuse_to_change()
        # Some come again and again, as to forget a long chat: those who append would not get in between.
        self._together.attend()
        # Where events are given numbers, too: what changes a chat is told in the order in which it changes.
        with self._writing, self.driver.transaction(GIVING):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        """The same for whoever tells of it as well: what was said before is told before."""
        with self.alone():
            tell_said(self.driver, self.tell)
            yield

    def tells_later(self) -> bool:
        """Return whether somebody will soon tell what was said, so that whoever appends need not."""
        return False

    def _take_back(self, id: str, spot: Spot, start: int, turns: Sequence[Ready], at: datetime) -> int:
        """Hide everything from a position on, and write turns behind it; return the position of the last one."""
        low, high = _range(spot.number)
        arrivals.settle(self, spot.number)
        count = self.driver.execute(self.sql["hide_turns"], low=low + max(0, min(start, SPAN - 1)), high=high)
        last = self.write(id, turns, at, skip=True)
        self.tell([chat_events.taken_back(id, at, start, count, last - len(turns) + 1, last)])
        return last

    def _insert_turns(self, id: str, spot: Spot, placed: Iterable[tuple[int, Ready]], end: int) -> None:
        """Write turns at their positions, and what stands for those left out before the next turn's."""
        rows, first = [], spot.next
        for position, turn in placed:
            if position > first:
                rows.append(blank(spot.number, first, position - first, LEFT_OUT))
            rows.append(turn.row(id, spot.number, position))
            first = position + 1
        if end > first:
            rows.append(blank(spot.number, first, end - first, LEFT_OUT))
        if rows:
            self.driver.execute_many(self.sql["insert_turn"], rows)

    def advance(self, number: int, next: int, touched_at: str) -> None:
        """Note where the next turn of a chat goes, inside a transaction, and count those that are there."""
        spot = Spot(number, next, self.count(number), touched_at)
        self.driver.execute_many(self.sql["put_place"], [asdict(spot)])

    def refuse_to_change(self) -> None:
        """Raise `StoreUnusable` where nothing can be changed."""

    def owe_again(self, id: str) -> None:
        """Let a closed chat in which something was said late be handed on once more, inside a transaction."""

    def _commit(self, appends: list[Append]) -> None:
        self.refuse_to_change()
        self._together.commit(appends)

    def _write(self, appends: Sequence[Append], driver: Driver) -> None:
        """Write appends inside a transaction, with as few questions as can be. One that comes to nothing costs only itself."""
        left = [append for append in appends if not self._has_moved_on(append, driver.run)]
        if left:
            self._look_and_write(left)

    def _look_and_write(self, appends: Sequence[Append]) -> None:
        """The same, after all of them were asked for."""
        rows: list[dict[str, Value]] = []
        found = self._spots(list({append.chat for append in appends}))
        spots = {id: self._settled(id, spot) for id, spot in found.items()}
        firsts = {id: spot.next for id, spot in spots.items()}
        for append in appends:
            try:
                self._place_append(append, rows, spots)
            except errors.PerdureError as error:
                if isinstance(error, errors.StoreUnusable):
                    raise
                append.error = error
        if rows:
            self.driver.execute_many(self.sql["insert_turn"], rows)
            changed = [spots[id] for id, first in firsts.items() if spots[id].next > first]
            if not self.tells_later():
                tell_said(self.driver, self.tell)
                self.tell(list(_said(appends, firsts, spots)))
            self._put_places(changed)
            for id in [id for id, first in firsts.items() if spots[id].is_closed and spots[id].next > first]:
                self.owe_again(id)
            self._remember(spots)

    def _has_moved_on(self, append: Append, run: Callable[..., int]) -> bool:
        """Write one append and ask nothing, where its process was the last to write to its chat; else write nothing."""
        chat, turns = append.chat, append.turns
        known = append.known or self._known.get(chat)
        if known is None or not turns or not self.tells_later():
            return False
        number, first = known
        if append.expect not in (None, first):
            return False
        for turn in turns:
            if turn.hidden:
                return False
        next = first
        if not run(self._move_on, number, chat, first, stamp(append.at), len(turns)):
            return False
        for turn in turns:
            run(self._say, *turn.values(chat, number, next))
            next += 1
        self._known[chat] = number, next
        append.position, append.error = next - 1, None
        return True

    def _remember(self, spots: Mapping[str, Spot]) -> None:
        """Note where chats go on: whether they still do is asked by whoever writes there."""
        if self.tells_later():
            if len(self._known) >= _KNOWN:
                self._known.clear()
            self._known |= {id: (spot.number, spot.next) for id, spot in spots.items()}

    def _put_places(self, spots: list[Spot]) -> None:
        """Note where chats go on."""
        if not self.tells_later():
            self.driver.execute_many(self.sql["put_place"], [asdict(spot) for spot in spots])
            return
        for name, behind in (("put_place_untold", 0), ("put_place_behind", 1)):
            rows = [asdict(spot) for spot in spots if spot.behind == behind]
            if rows:
                self.driver.execute_many(self.sql[name], rows)

    def _spots(self, ids: Sequence[str]) -> dict[str, Spot]:
        if len(ids) == 1:
            # Nearly always.
            return {id: _spot(*row) for id, *row in self.driver.fetch_as_is(self.sql["place_to_append"], id=ids[0])}
        sql, parameters = with_list(self.sql["places_to_append"], "ids", ids)
        return {id: _spot(*row) for id, *row in self.driver.fetch_as_is(sql, **parameters)}

    def _settled(self, id: str, spot: Spot) -> Spot:
        """A chat's spot, inside a transaction, in which the chat says so, too."""
        if spot.is_misplaced:
            # It may be that only something has arrived that does not belong there.
            arrivals.settle(self, spot.number)
            spot = self.spot(id)
        if spot.is_misplaced:
            self.driver.execute(self.sql["put_right"], number=spot.number, next=spot.next)
        return spot

    def _place_append(self, append: Append, rows: list[dict[str, Value]], spots: dict[str, Spot]) -> None:
        # It may have had a place, or an error, in an attempt that came to nothing.
        append.position, append.error = 0, None
        spot = spots.get(append.chat)
        if spot is None:
            raise not_there(append.chat)
        as_expected(append.chat, append.expect, spot)
        rows += [turn.row(append.chat, spot.number, place) for place, turn in enumerate(append.turns, spot.next)]
        spot.next += len(append.turns)
        spot.turns += sum(not turn.hidden for turn in append.turns)
        spot.touched_at = max(spot.touched_at, stamp(append.at))
        append.position = spot.next - 1


def _said(appends: Sequence[Append], firsts: Mapping[str, int], spots: Mapping[str, Spot]) -> Iterator[Event]:
    """One event for each chat in which something was said, however many have said it."""
    when = {append.chat: append.at for append in sorted(appends, key=lambda append: append.at)}
    for id, first in firsts.items():
        if spots[id].next > first:
            yield chat_events.said(id, when[id], first, spots[id].next - 1)


def _spot(
    number: int, next: int, turns: int, touched_at: str, behind: int, closed_at: str | None, last: int | None
) -> Spot:
    """Where a chat says that it goes on; behind its last turn where that cannot be, so that nothing said is lost."""
    first_free = 1 if last is None else last - number * SPAN + 1
    is_misplaced = not first_free <= next < SPAN
    place = first_free if is_misplaced else next
    if isinstance(touched_at, Spoilt):
        # Whoever writes there writes when, too.
        touched_at = ""
    return Spot(number, place, turns, touched_at, behind, is_misplaced, closed_at is not None)


def _readable(id: str, number: int, rows: Iterable[Row], *, partly: bool = False) -> Iterator[Turn]:
    """The turns of rows. Raises `ChatDamaged` for one that cannot be read back, or leaves it out."""
    read = reader_of(id, number)
    for row in rows:
        try:
            yield read(row)
        except UNREADABLE as error:
            if not partly:
                raise damaged_chat(id) from error


def not_there(id: str) -> errors.ChatNotFound:
    """Return the sentence for a chat that is not there."""
    return errors.ChatNotFound(f"There is no chat {id}.", chat=id)


def as_expected(id: str, expect: int | None, spot: Spot) -> None:
    """Raise `Conflict` when a chat does not go on where somebody believes it does, or not at all."""
    if expect is None:
        return
    refuse_closed(id, spot)
    refuse_moved(id, expect, spot)


def refuse_moved(id: str, expect: int, spot: Spot) -> None:
    """Raise `Conflict` when a chat, open or closed, does not go on where somebody believes it does."""
    if expect != spot.next:
        raise errors.Conflict(
            f"Something was said in chat {id} in between: the next turn would be number {spot.next}, not {expect}.",
            chat=id,
            position=spot.next,
        )


def refuse_closed(id: str, spot: Spot) -> None:
    """Raise `Conflict` when a chat is not gone on with any more: what is changed there nobody would come to see."""
    if spot.is_closed:
        raise errors.Conflict(f"Chat {id} was closed in between: look which one is open now.", chat=id)


def _range(number: int) -> tuple[int, int]:
    return number * SPAN, (number + 1) * SPAN
