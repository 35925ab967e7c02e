"""Chats and turns that cannot be read back: found, set aside, and as much as can be saved of the rest."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from perdure import errors
from perdure.model.chat import Chat, CloseReason, Source
from perdure.store.chat_rows import SPAN, chat_columns, chat_from, turn_from
from perdure.store.chats import ChatBook
from perdure.store.driver import Row, Value
from perdure.store.rows import UNREADABLE, moment_of, stamp

_TURN = ("id", "role", "at", "hidden", "seal", "body")


class ChatDamage(Struct, frozen=True, kw_only=True):
    """Something of a chat that cannot be read back; what is not said is whole."""

    number: int
    #: The chat's id; empty when there is none to a turn any more.
    chat: str
    #: The id of a turn.
    turn: int | None = None
    #: How many turns are not there although they should be; less than nothing for too many.
    missing: int = 0

    @property
    def where(self) -> str:
        """What it is about."""
        chat = f"chat {self.chat}" if self.chat else f"chat number {self.number}, which is not there"
        return chat if self.turn is None else f"turn {self.turn % SPAN} of {chat}"

    @property
    def what(self) -> str:
        """What is wrong with it."""
        if self.missing:
            return f"{abs(self.missing)} of its turns are {'missing' if self.missing > 0 else 'too many'}."
        return "It cannot be read back."


def damage_of(book: ChatBook) -> Iterator[ChatDamage]:
    """Yield everything of the chats that cannot be read back."""
    for row in book.rows():
        number, id, turns = row[0], row[1], row[6]
        try:
            chat_from(row)
        except errors.ChatDamaged:
            yield ChatDamage(number=number, chat=id)
        yield from _damaged_turns(book, number, id)
        there = book.count(number)
        if there != turns:
            yield ChatDamage(number=number, chat=id, missing=turns - there)
    for (turn,) in book.driver.fetch(book.sql["turns_without_chat"]):
        yield ChatDamage(number=turn // SPAN, chat="", turn=turn)


def set_aside(book: ChatBook, damage: ChatDamage, now: datetime) -> str:
    """Move what is damaged to where it does no harm, and say what was done."""
    with book.changing():
        if damage.turn is not None:
            book.driver.execute(
                book.sql["set_turn_aside"], set_aside_at=stamp(now), number=damage.number, id=damage.turn
            )
            book.driver.execute(book.sql["delete_turn"], id=damage.turn)
        elif not damage.missing:
            book.driver.execute(book.sql["set_chat_aside"], at=stamp(now), number=damage.number)
            _write_anew(book, damage.number, now)
        book.driver.execute(book.sql["set_count"], number=damage.number, turns=book.count(damage.number))
    if damage.turn is not None:
        return f"Set the damaged {damage.where} aside."
    if damage.missing:
        return f"Counted the turns of {damage.where} anew; {damage.what[:-1]}."
    return f"Set the damaged record of {damage.where} aside; what was said in it is kept, for whoever runs the store."


def adopt(book: ChatBook, chat: Chat, number: int, turns: Iterable[Row], now: datetime) -> bool:
    """Take a chat in that had another number in another database; False when there is one of its id.

    What of its turns cannot be read back is set aside.
    """
    with book.changing():
        with suppress(errors.ChatNotFound):
            book.get_chat(chat.id)
            return False
        book.driver.execute(
            book.sql["insert_chat"], opened_at=stamp(chat.opened_at), **chat_columns(_unrivalled(book, chat))
        )
        spot, last = book.spot(chat.id), 0
        for row in turns:
            try:
                turn = turn_from(chat.id, number, row)
            except UNREADABLE:
                keep_aside(book, row, now)
                continue
            columns: dict[str, Value] = dict(zip(_TURN, row, strict=True))
            book.driver.execute(book.sql["insert_turn"], **columns | {"id": spot.number * SPAN + turn.position})
            last = max(last, turn.position)
        # One is left out: somebody may have been told of a turn that could not be read.
        book.advance(spot.number, last + 2, stamp(chat.touched_at))
    return True


def keep_aside(book: ChatBook, row: Row, now: datetime) -> None:
    """Keep a turn that belongs to no chat, inside a transaction."""
    columns: dict[str, Value] = dict(zip(_TURN, row, strict=True))
    book.driver.execute(book.sql["keep_turn_aside"], set_aside_at=stamp(now), **columns)


def _damaged_turns(book: ChatBook, number: int, id: str) -> Iterator[ChatDamage]:
    for row in book.rows_of(number):
        try:
            turn_from(id, number, row)
        except UNREADABLE:
            yield ChatDamage(number=number, chat=id, turn=row[0])


def _write_anew(book: ChatBook, number: int, now: datetime) -> None:
    """Write down what is known of a chat without its record: nobody's, and closed."""
    ((id, key, platform, opened_at, touched_at, closed_at),) = book.driver.fetch(
        book.sql["chat_columns"], number=number
    )
    chat = Chat(
        id=id,
        key=key,
        source=Source(platform=platform, chat_id=""),
        opened_at=_moment(opened_at, now),
        touched_at=_moment(touched_at, now),
        closed_at=_moment(closed_at, now),
        close_reason=CloseReason.SWITCHED,
    )
    columns = chat_columns(chat)
    del columns["id"]
    book.driver.execute(book.sql["put_chat"], number=number, **columns)


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
