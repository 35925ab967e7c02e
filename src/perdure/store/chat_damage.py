"""Chats and turns that cannot be read back: found, set aside, and as much as can be saved of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import Chat, CloseReason, Source
from perdure.model.text import is_storable
from perdure.store import arrivals
from perdure.store.chat_rows import (
    LEFT_OUT,
    LOST,
    LOST_HIDDEN,
    SPAN,
    blank,
    chat_columns,
    chat_from,
    decoded_as,
    is_turn_of,
    stands_for,
    was_taken_back,
)
from perdure.store.chats import ChatBook
from perdure.store.driver import Row, Spoilt, Value
from perdure.store.numbers import GIVING
from perdure.store.rows import UNREADABLE, moment_of, stamp, unpacked

if TYPE_CHECKING:
    from perdure.store.salvage import Saved

_TURN = ("id", "role", "at", "hidden", "seal", "body")


class ChatDamage(Struct, frozen=True, kw_only=True):
    """Something of a chat that cannot be read back; what is not said is whole."""

    number: int
    #: The chat's id; empty when there is none to a turn any more.
    chat: str
    #: The id of a turn.
    turn: int | None = None
    #: Where turns are not there although they should be: positions, and how many from each on.
    gaps: tuple[tuple[int, int], ...] = ()
    #: At how many positions what was said is known to be lost; nothing can be done about that.
    lost: int = 0
    #: Whether all its turns are there, and the chat says another number.
    is_miscounted: bool = False
    #: Whether it says that it goes on where it cannot.
    is_misplaced: bool = False
    #: Whether its record is whole, and something it is looked for by is not.
    is_misfiled: bool = False

    @property
    def where(self) -> str:
        """What it is about."""
        chat = f"chat {self.chat}" if self.chat else f"chat number {self.number}, which is not there"
        return chat if self.turn is None else f"turn {self.turn % SPAN} of {chat}"

    @property
    def what(self) -> str:
        """What is wrong with it."""
        if self.gaps:
            return f"Something is missing at {_counted(sum(count for _, count in self.gaps))}."
        if self.lost:
            return f"What was said at {_counted(self.lost)} is lost; `perdure chats export` writes what is left."
        if self.is_miscounted:
            return "It has another number of turns than it says."
        if self.is_misplaced:
            return "It does not go on where it says."
        if self.is_misfiled:
            return "Not everybody who may see it can find it."
        return "It cannot be read back."

    @property
    def kind(self) -> tuple[bool, ...]:
        """In which of the ways it is damaged that there are, whatever the extent."""
        ways = self.is_miscounted, self.is_misplaced, self.is_misfiled
        return self.turn is not None, bool(self.gaps), bool(self.lost), *ways

    @property
    def is_repairable(self) -> bool:
        """Whether anything can be done about it that was not done already."""
        return not self.lost


def damage_of(book: ChatBook) -> Iterator[ChatDamage]:
    """Yield everything of the chats that cannot be read back; nothing that is only being changed."""
    for row in book.rows():
        if any(_damage_in(book, row)):
            # It takes several questions, between which a gateway may append or forget: asked again when none does.
            with book.driver.transaction(GIVING):
                found = _damage_now(book, row[0])
            yield from found
    for (turn,) in book.driver.fetch(book.sql["turns_without_chat"]):
        yield ChatDamage(number=turn // SPAN, chat="", turn=turn)


def set_aside(book: ChatBook, damage: ChatDamage, now: datetime) -> str | None:
    """Move what is damaged to where it does no harm, and say what was done; None when it is no more."""
    is_renamed = False
    with book.changing():
        strays = arrivals.settle(book, damage.number)
        still = _still(book, damage)
        if still is None:
            return f"Set aside what was out of its place in {replace(damage, turn=None).where}." if strays else None
        damage = still
        if damage.turn is not None:
            low = damage.turn
            rows = book.driver.fetch_as_is(book.sql["turns_between"], low=low, high=low + 1, limit=1)
            book.driver.execute(
                book.sql["set_turn_aside"], set_aside_at=stamp(now), number=damage.number, id=damage.turn
            )
            book.driver.execute(book.sql["delete_turn"], id=damage.turn)
            if damage.chat:
                kind = LOST_HIDDEN if any(map(was_taken_back, rows)) else LOST
                _mark_lost(book, damage.number, ((damage.turn % SPAN, 1),), kind)
        elif damage.gaps:
            _mark_lost(book, damage.number, damage.gaps)
        elif damage.is_misplaced:
            book.driver.execute(book.sql["put_right"], number=damage.number, next=book.spot(damage.chat).next)
        elif damage.is_misfiled:
            _file_anew(book, damage)
        elif not damage.is_miscounted:
            book.driver.execute(book.sql["set_chat_aside"], at=stamp(now), number=damage.number)
            is_renamed = _write_anew(book, damage.number, now)
        book.driver.execute(book.sql["set_count"], number=damage.number, turns=book.count(damage.number))
    if is_renamed:
        # What was said was indexed as what cannot be read: it is sealed with the id.
        book.rebuild_index()
    if damage.turn is not None:
        return f"Set the damaged {damage.where} aside."
    if damage.gaps:
        return f"Marked what is missing in {damage.where} as lost: {damage.what}"
    if damage.is_miscounted:
        return f"Counted the turns of {damage.where} anew; all of them are there."
    if damage.is_misplaced:
        return f"Found where {damage.where} goes on: behind what is there."
    if damage.is_misfiled:
        return f"Filed {damage.where} anew, as its record says."
    return f"Set the damaged record of {damage.where} aside; what was said in it is kept, for whoever runs the store."


def _still(book: ChatBook, damage: ChatDamage) -> ChatDamage | None:
    """What is left of a damage that was found before, inside a transaction; None when there is none any more."""
    rows = _row_now(book, damage.number)
    if damage.turn is None:
        return next((each for each in _damage_now(book, damage.number) if each.kind == damage.kind), None)
    if [row[1] for row in rows] != ([damage.chat] if damage.chat else []):
        return None
    # Not all of its chat anew: a chat may have very many that are damaged.
    low, high = damage.turn, damage.turn + 1
    places = book.driver.fetch(book.sql["places_between"], low=low, high=high, limit=1)
    if not places or not damage.chat:
        return damage if places else None
    for row in book.driver.fetch_as_is(book.sql["turns_between"], low=low, high=high, limit=1):
        return None if is_turn_of(damage.chat, damage.number, row) else damage
    return damage if stands_for(*places[0][1:])[0] is None else None


def _row_now(book: ChatBook, number: int) -> list[Row]:
    """The row of a chat, by its number: of its other columns none may be what it was."""
    rows = book.driver.fetch_as_is(book.sql["all_chats"], after=number - 1, limit=1)
    return [row for row in rows if row[0] == number]


def _damage_now(book: ChatBook, number: int) -> list[ChatDamage]:
    """The damage in a chat as it is now, inside a transaction."""
    return [damage for row in _row_now(book, number) for damage in _damage_in(book, row)]


def _damage_in(book: ChatBook, row: Row) -> Iterator[ChatDamage]:
    number, id, turns = row[0], row[1], row[6]
    try:
        chat_from(row)
    except errors.ChatDamaged:
        id = _own_id(book, number, id, row[7])
        yield ChatDamage(number=number, chat=id)
    else:
        if book.is_misfiled(number):
            yield ChatDamage(number=number, chat=id, is_misfiled=True)
    with suppress(errors.ChatNotFound):
        yield from _damaged_words(book, number, id, turns)


def adopt(book: ChatBook, saved: Saved, number: int, now: datetime, owners: Iterable[str] = ()) -> bool:
    """Take a chat in that had another number in another database; False, and nothing done, when there is one of its id.

    It comes whole, with those it is granted to, or not at all: one that is there already need not be looked at again. What of its turns cannot be read back is set aside; wherever one was and is not there, that is marked as lost.
    """
    chat = saved.chat or _unknown(saved, now)
    with book.changing():
        if book.driver.fetch_as_is(book.sql["get_chat"], id=chat.id):
            return False
        book.driver.execute(
            book.sql["insert_chat"], opened_at=stamp(chat.opened_at), **chat_columns(_unrivalled(book, chat))
        )
        spot, first, is_whole = book.spot(chat.id), 1, True
        for row in saved.turns:
            position, count = row[0] - number * SPAN, _stands_for(chat.id, number, row)
            if not count or position < first:
                keep_aside(book, row, now)
                if position < first or not was_taken_back(row):
                    continue
            if position > first:
                is_whole = _mark_lost(book, spot.number, ((first, position - first),))
            if count:
                columns: dict[str, Value] = dict(zip(_TURN, row, strict=True))
                book.driver.execute(book.sql["insert_turn"], **columns | {"id": spot.number * SPAN + position})
            else:
                _mark_lost(book, spot.number, ((position, 1),), LOST_HIDDEN)
            is_whole = is_whole and row[3] != LOST
            first = position + (count or 1)
        if first < saved.next < SPAN:
            is_whole = _mark_lost(book, spot.number, ((first, saved.next - first),))
            first = saved.next
        # One is left out: somebody may have been told of a turn that could not be read. It is a lost one where the
        # chat says another number than there are, and nothing else tells why.
        is_unclear = is_whole and (book.count(spot.number), saved.next) != (chat.turns, first)
        last = blank(spot.number, first, 1, LOST if is_unclear else LEFT_OUT)
        book.driver.execute(book.sql["insert_turn"], **last)
        book.advance(spot.number, first + 1, stamp(chat.touched_at))
        for owner in owners:
            book.driver.execute(book.sql["grant_chat"], chat=spot.number, owner=owner)
    return True


def _unknown(saved: Saved, now: datetime) -> Chat:
    """What is known of a chat of which there is the id, and maybe something that was said: nobody's, and closed."""
    times = [_moment(row[2], now) for row in saved.turns if row[3] in (0, 1)] or [now]
    return _nobodys(saved.id, saved.id, "", times[0], times[-1], times[-1])


def _stands_for(id: str, number: int, row: Row) -> int:
    """For how many positions a row stands; 0 for one that cannot be read."""
    if row[3] in (LEFT_OUT, LOST, LOST_HIDDEN):
        kind, count = stands_for(row[3], row[4])
        return 0 if kind is None else count
    return int(is_turn_of(id, number, row))


def keep_aside(book: ChatBook, row: Row, now: datetime) -> None:
    """Keep a turn that belongs to no chat, inside a transaction."""
    columns: dict[str, Value] = dict(zip(_TURN, row, strict=True))
    book.driver.execute(book.sql["keep_turn_aside"], set_aside_at=stamp(now), **columns)


def _damaged_words(book: ChatBook, number: int, id: str, turns: int) -> Iterator[ChatDamage]:
    """What of what was said in a chat cannot be read back, or is not there."""
    spot = book.spot(id)
    next = spot.next
    if spot.is_misplaced:
        yield ChatDamage(number=number, chat=id, is_misplaced=True)
    damaged = {row[0] for row in book.rows_of(number) if not is_turn_of(id, number, row)}
    gaps, lost, first = [], 0, 1
    for position, hidden, count in book.places_of(number):
        if hidden is None:
            damaged.add(number * SPAN + position)
        if position > first:
            gaps.append((first, min(position, next) - first))
        lost += count if hidden == LOST else 0
        first = max(first, position + count)
        if first >= next:
            break
    if next > first:
        gaps.append((first, next - first))
    for turn in sorted(damaged):
        yield ChatDamage(number=number, chat=id, turn=turn)
    if gaps:
        yield ChatDamage(number=number, chat=id, gaps=tuple(gaps))
    if lost:
        yield ChatDamage(number=number, chat=id, lost=lost)
    if not damaged and not gaps and book.count(number) != turns:
        yield ChatDamage(number=number, chat=id, is_miscounted=True)


def _mark_lost(book: ChatBook, number: int, gaps: Iterable[tuple[int, int]], kind: int = LOST) -> bool:
    """Let what was said at some positions be known to be lost, inside a transaction; False, for it is not whole."""
    for position, count in gaps:
        book.driver.execute(book.sql["insert_turn"], **blank(number, position, count, kind))
    return False


def _counted(count: int) -> str:
    # Not turns: something may have been left out there, and of that nothing is known any more either.
    return "1 of its positions" if count == 1 else f"{count} of its positions"


def _write_anew(book: ChatBook, number: int, now: datetime) -> bool:
    """Write down what is known of a chat without its record: nobody's, and closed; return whether its id was another."""
    ((before, key, platform, opened_at, touched_at, closed_at, body),) = book.driver.fetch_as_is(
        book.sql["chat_columns"], number=number
    )
    id = _own_id(book, number, before, body)
    times = (_moment(opened_at, now), _moment(touched_at, now), _moment(closed_at, now))
    columns = chat_columns(_nobodys(id, key, platform, *times))
    del columns["id"]
    book.driver.execute(book.sql["put_chat"], number=number, **columns)
    book.driver.execute(book.sql["name_chat"], number=number, id=id)
    return id != before or isinstance(before, Spoilt)


def _file_anew(book: ChatBook, damage: ChatDamage) -> None:
    """Write down once more what a chat is looked for by, all of which its record says."""
    chat = book.get_chat(damage.chat)
    columns = chat_columns(chat)
    del columns["id"]
    book.driver.execute(book.sql["put_chat"], number=damage.number, **columns)
    book.driver.execute(book.sql["put_opened"], number=damage.number, opened_at=stamp(chat.opened_at))


def _own_id(book: ChatBook, number: int, id: str, body: bytes) -> str:
    """The id of a chat whose record does not agree with it: the record's, which has a checksum, unless it is another's.

    Everything that was said is sealed with the id: under a wrong one nothing of it could be read.
    """
    with suppress(*UNREADABLE):
        own = decoded_as(Chat, unpacked(body)).id
        rows = book.driver.fetch_as_is(book.sql["get_chat"], id=own) if is_storable(own) else [()]
        if not rows or rows[0][:1] == (number,):
            return own
    return str(id)


def _nobodys(id: str, key: str, platform: str, opened_at: datetime, touched_at: datetime, closed_at: datetime) -> Chat:
    # Out of a damaged file they may be no UTF-8.
    return Chat(
        id=str(id),
        key=str(key),
        source=Source(platform=str(platform), chat_id=""),
        opened_at=opened_at,
        touched_at=touched_at,
        closed_at=closed_at,
        close_reason=CloseReason.SWITCHED,
    )


def _moment(text: object, otherwise: datetime) -> datetime:
    with suppress(*UNREADABLE):
        return moment_of(str(text))
    return otherwise


def _unrivalled(book: ChatBook, chat: Chat) -> Chat:
    """A chat that is taken in beside others: they are the open ones, and keep their titles."""
    if chat.is_open and book.open_chat(chat.key) is not None:
        chat = replace(chat, closed_at=chat.touched_at, close_reason=CloseReason.SWITCHED)
    try:
        book.refuse_title_of_another(chat)
    except errors.TitleTaken:
        chat = replace(chat, title=None)
    return chat
