"""Chats that come from elsewhere: what is known of one, what was said in it, and what of it is news here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from perdure.model.chat import Chat, CloseReason, Kinship, Source, Tokens, Turn

#: What cannot be told of where a chat was held is kept under keys that begin like this; no message ever has such a key.
NOWHERE = "imported:"


class Mishap(Struct, frozen=True, kw_only=True):
    """Something that could not be taken over: where it is, and a sentence about it without its full stop."""

    where: str
    what: str


class Words(Struct, frozen=True, kw_only=True):
    """What was said in a chat elsewhere, in order."""

    turns: tuple[Turn, ...] = ()
    #: The position the next turn has there; behind the last one when it is not known.
    next: int | None = None
    mishaps: tuple[Mishap, ...] = ()


class Incoming(Struct, frozen=True, kw_only=True):
    """A chat as somebody else has written it down."""

    id: str
    #: Where that is written, for messages about it.
    where: str
    opened_at: datetime
    touched_at: datetime
    #: Read only when it is asked for: a chat may be long, and there may be many. Raises `ImportFailed`.
    read: Callable[[], Words]
    #: Where it was held: a source in its plain form. Without the id of a chat nobody knows.
    origin: Mapping[str, Any] = {}
    closed_at: datetime | None = None
    close_reason: CloseReason | None = None
    #: Whether it is known to be the one its conversation goes on in.
    is_current: bool = False
    title: str | None = None
    follows: str | None = None
    kinship: Kinship | None = None
    tokens: Tokens = Tokens()
    by_model: Mapping[str, Tokens] = {}
    model: str | None = None
    suspended: bool = False
    resume_pending_at: datetime | None = None
    extra: Mapping[str, Any] = {}
    #: The chat itself, where it was one of ours; everything else above then only repeats it.
    own: Chat | None = None


class Arrival(StrEnum):
    """What became of a chat that came in."""

    NEW = "new"
    #: It was here, and has gone on there since; something may have been taken back there, too.
    GREW = "grew"
    #: Everything of it was here.
    UNCHANGED = "unchanged"
    #: What was said before is not what it was, here or there. Nothing was written.
    CHANGED = "changed"


class Arrived(Struct, frozen=True, kw_only=True):
    """A chat that came in, as it is now; as it would be, where nothing was to be written."""

    result: Arrival
    chat: Chat
    #: How many turns were written.
    added: int = 0


class News(Struct, frozen=True, kw_only=True):
    """What is new of a transcript."""

    result: Arrival
    #: What is to be written behind what is here.
    rest: Sequence[Turn] = ()
    #: The positions here of what was taken back there since.
    taken_back: Sequence[int] = ()


def news(here: Sequence[Turn], coming: Sequence[Turn]) -> News:
    """Return how a transcript stands to the one that is here; both are with what was taken back.

    Compared is what was said, not when: two programs that wrote down the same conversation read their clocks at
    different moments. What goes on there is followed as long as nothing was said or taken back here.
    """
    pairs = list(zip(here, coming, strict=False))
    if any(_said(ours) != _said(theirs) for ours, theirs in pairs):
        return News(result=Arrival.CHANGED)
    only_here = any(ours.hidden and not theirs.hidden for ours, theirs in pairs)
    taken_back = [ours.position for ours, theirs in pairs if theirs.hidden and not ours.hidden]
    rest = coming[len(here) :]
    if not rest and not taken_back:
        return News(result=Arrival.UNCHANGED)
    if only_here or len(here) > len(coming):
        return News(result=Arrival.CHANGED)
    return News(result=Arrival.GREW, rest=rest, taken_back=taken_back)


def come_in_closed(chat: Chat) -> Chat:
    """Return a chat as one that nobody goes on with: closed when it was last used, unless it was closed before.

    What was said in it is not handed on again: whoever had it before has done so, or will.
    """
    closed_at = chat.closed_at or chat.touched_at
    return replace(
        chat,
        closed_at=closed_at,
        close_reason=chat.close_reason or CloseReason.IMPORTED,
        flushed_at=chat.flushed_at or closed_at,
        notice=None,
        resume_pending_at=None,
    )


def is_same_place(here: Source, coming: Source) -> bool:
    """Whether two chats of one id can be one chat: nothing that both tell about where they were held differs."""
    pairs = ((getattr(here, name), getattr(coming, name)) for name in ("chat_id", "thread_id", "user_id", "scope_id"))
    is_known = bool(here.chat_id and coming.chat_id)
    return (here.platform == coming.platform or not is_known) and not any(
        ours and theirs and ours != theirs for ours, theirs in pairs
    )


def _said(turn: Turn) -> tuple[object, ...]:
    # Nothing said and an empty text are the same to those who wrote both.
    content = None if turn.content == "" else turn.content
    return turn.role, content, turn.tool_call_id, list(turn.tool_calls), list(turn.attachments)
