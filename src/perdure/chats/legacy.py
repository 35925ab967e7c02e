"""Chats and turns as earlier programs write them down: an entry of `sessions.json`, a line of a session's file."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from perdure.chats.source import source_dict
from perdure.model.chat import Chat, Turn


def entry_of(chat: Chat, key: str) -> dict[str, Any]:
    """Return a chat as an entry of `sessions.json`. Times are without an offset, as this machine's clock shows them."""
    return {
        "session_key": key,
        "session_id": chat.id,
        "created_at": _local(chat.opened_at),
        "updated_at": _local(chat.touched_at),
        "display_name": chat.source.chat_name,
        "platform": chat.source.platform,
        "chat_type": chat.source.chat_type,
        "input_tokens": chat.tokens.input,
        "output_tokens": chat.tokens.output,
        "total_tokens": chat.tokens.total,
        "suspended": chat.suspended,
        "resume_pending": chat.resume_pending_at is not None,
        "origin": source_dict(chat.source),
    }


def line_of(turn: Turn) -> bytes:
    """Return a turn as a line of a session's file."""
    message: dict[str, Any] = {**turn.extra, "role": turn.role, "content": turn.content, "timestamp": _local(turn.at)}
    more = {"tool_name": turn.tool_name, "tool_call_id": turn.tool_call_id, "tool_calls": list(turn.tool_calls)}
    message |= {name: value for name, value in more.items() if value}
    if turn.attachments:
        message["attachments"] = [dict(each) for each in turn.attachments]
    text = json.dumps(message, ensure_ascii=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message).encode() + b"\n"


def sessions_in(index: bytes) -> frozenset[str] | None:
    """Return the ids of the sessions that a `sessions.json` names; None for one that cannot be read.

    What is no entry of ours stands there as something that is nobody's id.
    """
    try:
        found = json.loads(index)
    except (ValueError, RecursionError):
        return None
    entries = found.values() if isinstance(found, dict) else [found]
    return frozenset(str(entry.get("session_id")) if isinstance(entry, dict) else "" for entry in entries)


def _local(at: datetime) -> str:
    try:
        at = at.astimezone()
    except (OverflowError, ValueError, OSError):
        # So early or so late that this machine's clock cannot show it.
        at = at.astimezone(UTC)
    return at.replace(tzinfo=None).isoformat()
