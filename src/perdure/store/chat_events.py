"""What has happened to chats, as events: which one, and where in it. Never what was said, by whom, or under which key."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from perdure.model.chat import Chat
from perdure.model.event import Event, EventKind
from perdure.model.secrets import redact_text
from perdure.store.chat_rows import plain


def opened(chat: Chat) -> Iterator[Event]:
    """Yield what is to be told of a chat that was begun; one that came from elsewhere may be closed already."""
    begun = {
        "platform": plain(chat.source.platform),
        "type": plain(chat.source.chat_type),
        "title": _title(chat),
        "follows": None if chat.follows is None else plain(chat.follows),
        "kinship": chat.kinship,
        "turns": chat.turns,
    }
    yield _event(EventKind.CHAT_OPENED, chat.id, chat.opened_at, **begun)
    if chat.closed_at is not None:
        yield _event(EventKind.CHAT_CLOSED, chat.id, chat.closed_at, reason=chat.close_reason)


def changed(before: Chat, after: Chat, at: datetime, *, successor: str | None = None) -> Iterator[Event]:
    """Yield what is to be told of a chat that is not what it was; nothing for what is nobody's news."""
    if before.is_open and after.closed_at is not None:
        reason = after.close_reason
        yield _event(EventKind.CHAT_CLOSED, after.id, after.closed_at, reason=reason, successor=successor)
    elif not before.is_open and after.is_open:
        yield _event(EventKind.CHAT_RESUMED, after.id, at, platform=plain(after.source.platform), title=_title(after))
    if before.title != after.title:
        yield _event(EventKind.CHAT_TITLED, after.id, at, title=_title(after), was=_title(before))


def said(id: str, at: datetime, first: int, last: int) -> Event:
    """Return that something was said in a chat, from one position to another."""
    return Event(kind=EventKind.CHAT_SAID, at=at, data={"chat": id, "first": first, "last": last})


def taken_back(id: str, at: datetime, start: int, count: int, first: int, last: int) -> Event:
    """Return that so many turns from a position on were taken back, and which ones, if any, took their place."""
    instead = {"first": first, "last": last} if first <= last else {}
    return _event(EventKind.CHAT_TAKEN_BACK, id, at, start=start, count=count, **instead)


def forgotten(id: str, at: datetime) -> Event:
    """Return that a chat is gone, with all that was said in it."""
    return _event(EventKind.CHAT_FORGOTTEN, id, at)


def _event(kind: EventKind, id: str, at: datetime, **data: Any) -> Event:
    return Event(
        kind=kind, at=at, data={"chat": id, **{name: value for name, value in data.items() if value is not None}}
    )


def _title(chat: Chat) -> str | None:
    return None if chat.title is None else redact_text(chat.title)
