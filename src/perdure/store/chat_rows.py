"""Chats and turns as the database has them: plain JSON, sealed, so that what was spoilt is not taken for what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from zlib import crc32

import msgspec
from msgspec import Struct

from perdure import errors
from perdure.model.chat import Chat, Kinship, Turn
from perdure.model.chat_owner import owner_of, participant_of, reach_of
from perdure.model.decoding import converted, decoder_of
from perdure.store.driver import Row, Value
from perdure.store.rows import UNREADABLE, moment_of, packed, stamp, unpacked

#: How many positions a chat has, and by how much a chat's number is shifted in the ids of its turns.
SPAN = 1 << 32

#: What `hidden` says of a row of turns apart from 0 and 1: it is no turn, and stands for as many positions as its seal
#: says. Nothing was ever said there; or what was said there is lost, for good; or what was taken back there is.
LEFT_OUT, LOST, LOST_HIDDEN = 2, 3, 4
#: Added to the seal of a turn that was taken back, so that none is hidden behind our back.
_TAKEN_BACK = 1 << 32
#: What says of a part what it is, and is not what was said.
_NO_TEXT = ("type", "id", "mime_type", "media_type")
_COLUMNS = ("id", "role", "at", "hidden", "seal", "body")

_Kind = TypeVar("_Kind")
_ENCODER = msgspec.json.Encoder(order="deterministic")
#: A half of a pair that stands alone, and what PostgreSQL does not take.
_UNSTORABLE = {0: "\ufffd", **dict.fromkeys(range(0xD800, 0xE000), "\ufffd")}

#: Both halves, one behind the other, as no text that was decoded has them.
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Said(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A turn apart from its place."""

    role: str
    at: datetime
    content: Any = None
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_calls: tuple[Any, ...] = ()
    attachments: tuple[dict[str, Any], ...] = ()
    tokens: int | None = None
    model: str | None = None
    extra: dict[str, Any] = {}


class Ready(Struct, frozen=True):
    """A turn made ready to be written, whatever its place will be."""

    role: str
    at: str
    hidden: int
    sum: int
    body: bytes

    def row(self, chat: str, number: int, position: int) -> dict[str, Value]:
        """Return it as a row of a chat, in a place."""
        return dict(zip(_COLUMNS, self.values(chat, number, position), strict=True))

    def values(self, chat: str, number: int, position: int) -> tuple[Value, ...]:
        """The same without the names of the columns."""
        seal = _seal(chat, position, self.role, self.at, self.sum) + self.hidden * _TAKEN_BACK
        return number * SPAN + position, self.role, self.at, self.hidden, seal, self.body


def ready(turn: Turn) -> Ready:
    """Return a turn ready to be written. Raises `UsageError` when it holds what JSON cannot say, or not as it is."""
    said = Said(
        role=turn.role,
        at=turn.at,
        content=turn.content,
        tool_name=turn.tool_name,
        tool_call_id=turn.tool_call_id,
        tool_calls=turn.tool_calls,
        attachments=tuple(map(dict, turn.attachments)) if turn.attachments else (),
        tokens=turn.tokens,
        model=turn.model,
        extra=dict(turn.extra) if turn.extra else {},
    )
    body = encoded(said, exactly=True)
    return Ready(plain(turn.role), stamp(turn.at), int(turn.hidden), crc32(body), body)


def turn_from(chat: str, number: int, row: Row) -> Turn:
    """Return a turn that is what was written in that place of that chat. Raises one of `UNREADABLE`."""
    id, role, at, hidden, seal, body = row
    position = id - number * SPAN
    if hidden not in (0, 1) or _seal(chat, position, role, at, crc32(body)) + hidden * _TAKEN_BACK != seal:
        raise ValueError("the seal does not match")
    # What was written is a `Said`, an object with something in it: with its place put in front it is a turn, in one go.
    place = b'{"position":%d,"hidden":%s,' % (position, b"true" if hidden else b"false")
    return decoded_as(Turn, place + body[1:])


def is_turn_of(chat: str, number: int, row: Row) -> bool:
    """Return whether a row is a turn of that chat, as it was written."""
    try:
        turn_from(chat, number, row)
    except UNREADABLE:
        return False
    return True


def reader_of(chat: str, number: int) -> Callable[[Row], Turn]:
    """Return what does the same as `turn_from` for one chat after the other of its rows, and most of them quicker."""
    decode, first = decoder_of(Turn).decode, number * SPAN

    def read(row: Row) -> Turn:
        id, role, at, hidden, seal, body = row
        position = id - first
        # Every call counts where there are ten thousand: as `_seal` does, of what was not taken back.
        if hidden == 0 and crc32(f"{chat}\n{position}\n{at}\n{role}".encode(), crc32(body)) == seal:
            try:
                return decode(b'{"position":%d,' % position + body[1:])
            except msgspec.DecodeError:
                pass  # JSON that only Python's own reader takes, or none at all
        return turn_from(chat, number, row)

    return read


def was_taken_back(row: Row) -> bool:
    """Return whether a turn was taken back, which it says twice, whether or not it can be read."""
    return row[3] == 1 and isinstance(row[4], int) and row[4] >= _TAKEN_BACK


def stands_for(hidden: object, seal: object) -> tuple[int | None, int]:
    """Return what a row of turns is, and for how many positions it stands; (None, 1) when it does not say.

    It may hold anything, whatever its columns are declared to hold.
    """
    if isinstance(hidden, int) and 0 <= hidden < LEFT_OUT:
        return hidden, 1
    if hidden in (LEFT_OUT, LOST, LOST_HIDDEN) and isinstance(seal, int) and 0 < seal < SPAN:
        return hidden, seal
    return None, 1


def blank(number: int, position: int, count: int, kind: int) -> dict[str, Value]:
    """Return the row that stands for so many positions of a chat without a turn, `LEFT_OUT`, `LOST` or so."""
    return {"id": number * SPAN + position, "role": "", "at": "", "hidden": kind, "seal": count, "body": b""}


def chat_columns(chat: Chat) -> dict[str, Value]:
    """Return the columns of a chat. What a gateway has to prove anew every time is left out of its source."""
    source = msgspec.structs.replace(chat.source, role_authorized=False, relayed=False)
    chat = msgspec.structs.replace(chat, source=source)
    person = participant_of(source)
    return {
        "id": chat.id,
        "key": chat.key,
        "reach": reach_of(chat),
        "owner": owner_of(source, shared=chat.shared),
        "platform": plain(source.platform),
        "participant": None if person is None else plain(person),
        "title": chat.title,
        "continues": chat.follows if chat.kinship is Kinship.CONTINUATION else None,
        "touched_at": stamp(chat.touched_at),
        "closed_at": None if chat.closed_at is None else stamp(chat.closed_at),
        "owed": int(chat.is_owed),
        "body": packed(encoded(chat)),
    }


def chat_from(row: Row) -> Chat:
    """Return a chat of which everything that is said twice agrees. Raises `ChatDamaged`."""
    _, id, key, title, touched_at, closed_at, turns, body = row
    try:
        chat: Chat = decoded_as(Chat, unpacked(body))
        closed = None if chat.closed_at is None else stamp(chat.closed_at)
        if (chat.id, chat.key, chat.title, closed) != (id, key, title, closed_at):
            raise ValueError("what is said twice does not agree")
        return msgspec.structs.replace(chat, touched_at=moment_of(touched_at), turns=turns)
    except UNREADABLE as error:
        raise damaged_chat(id) from error


def damaged_chat(id: str) -> errors.ChatDamaged:
    """Return the sentence for a chat that cannot be read back as it was written."""
    return errors.ChatDamaged(
        f"Chat {id} cannot be read back as it was written; the others are not affected. "
        "`perdure check --repair` sets aside what is damaged, `perdure chats export` writes what is left.",
        chat=str(id),
    )


def encoded(value: Struct, *, exactly: bool = False) -> bytes:
    """Return a value as JSON. Raises `UsageError` when it holds what JSON cannot say; `exactly`, also what it would change."""
    try:
        return _ENCODER.encode(value)
    except UnicodeError:
        # A half of a surrogate pair: JSON can say it, in its own way.
        plain = msgspec.to_builtins(value, order="deterministic")
        if exactly and _PAIR.search(json.dumps(plain, ensure_ascii=False)):
            raise errors.UsageError(
                "This cannot be written down as JSON: two halves of a character that stand apart would become one."
            ) from None
        return json.dumps(plain, separators=(",", ":")).encode("ascii")
    except (TypeError, ValueError, RecursionError) as error:
        raise errors.UsageError(f"This cannot be written down as JSON: {error}.") from error


def decoded_as(kind: type[_Kind], raw: bytes) -> _Kind:
    """Return a value that was encoded. Raises one of `UNREADABLE`."""
    try:
        value: _Kind = decoder_of(kind).decode(raw)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError:
        return converted(json.loads(raw), kind)
    return value


def plain(text: str) -> str:
    """Return text that both databases take as a column to look for, as it is or nearly so."""
    return text if text.isascii() and "\0" not in text else text.translate(_UNSTORABLE)


def texts_of(content: object) -> Sequence[str]:
    """Return every text in a turn's content, in order; of parts with a type, their texts and not what they are called."""
    if isinstance(content, str):
        return (content,)
    found: list[str] = []
    left = [content]
    # Never by calling itself: what was written down may be deeper than that could go.
    while left:
        part = left.pop()
        if isinstance(part, str):
            found.append(part)
        elif isinstance(part, dict):
            left += reversed([value for name, value in part.items() if name not in _NO_TEXT])
        elif isinstance(part, list | tuple):
            left += reversed(part)
    return found


def _seal(chat: str, position: int, role: str, at: str, sum: int) -> int:
    # Over the place too: a turn that ends up in another chat, or in another order, is not taken for what was said there.
    return crc32(f"{chat}\n{position}\n{at}\n{role}".encode(), sum)
