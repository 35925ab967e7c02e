"""What Hermes' files and its database have in common: times, messages, reasons."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from perdure.model.chat import CloseReason, Tokens, Turn

#: Where a chat keeps what only Hermes knows of it.
KEPT = "imported"

_REASONS = {
    "idle": CloseReason.IDLE,
    "idle_timeout": CloseReason.IDLE,
    "daily": CloseReason.DAILY,
    "suspended": CloseReason.SUSPENDED,
    "resume_pending_expired": CloseReason.RESUME_EXPIRED,
    "compression": CloseReason.COMPRESSED,
    "new_session": CloseReason.ASKED,
    "session_switch": CloseReason.SWITCHED,
    "resumed_other": CloseReason.SWITCHED,
    "branched": CloseReason.SWITCHED,
}
#: What a message says that a turn has a place for; the names of the times differ.
_PLACED = frozenset({"role", "content", "tool_name", "tool_call_id", "tool_calls", "token_count", "timestamp", "model"})
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def close_reason(text: object) -> CloseReason:
    """Return why a session was ended, as far as there is a word for it here."""
    return _REASONS.get(text, CloseReason.IMPORTED) if isinstance(text, str) else CloseReason.IMPORTED


def moment(value: object, zone: tzinfo | None = None) -> datetime | None:
    """Return the time a number of seconds or an ISO text means; None when it means none.

    A text without an offset is what a clock on the wall showed, in `zone`: that of this machine when it is None.
    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return _EPOCH + timedelta(seconds=value) if math.isfinite(value) else None
        if not isinstance(value, str) or not value:
            return None
        found = datetime.fromisoformat(value)
        if found.tzinfo is None and zone is not None:
            found = found.replace(tzinfo=zone)
        return found.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        return None


def count(value: object) -> int:
    """Return a number of tokens; 0 for what is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def tokens(fields: Mapping[str, Any]) -> Tokens:
    """Return the tokens of an entry, a row or a model."""
    return Tokens(input=count(fields.get("input_tokens")), output=count(fields.get("output_tokens")))


def turn_of(message: Mapping[str, Any], position: int, at: datetime, *, hidden: bool = False) -> Turn:
    """Return a message as a turn; what a turn has no place for is kept beside it."""
    calls = message.get("tool_calls")
    extra = {name: value for name, value in message.items() if name not in _PLACED and value is not None}
    model, spent = message.get("model"), message.get("token_count")
    return Turn(
        position=position,
        role=text_of(message.get("role")) or "unknown",
        content=message.get("content"),
        at=at,
        tool_name=text_of(message.get("tool_name")),
        tool_call_id=text_of(message.get("tool_call_id")),
        tool_calls=tuple(calls) if isinstance(calls, list) else () if calls is None else (calls,),
        tokens=spent if isinstance(spent, int) and not isinstance(spent, bool) else None,
        model=text_of(model),
        hidden=hidden,
        extra=extra,
    )


def text_of(value: object) -> str | None:
    """Return a text or a number as text; None for anything else, and for nothing."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    return str(value) or None


def parsed(text: str | bytes) -> Any:
    """Return what a JSON text says; a number JSON does not have is nothing. Raises ValueError or RecursionError."""
    return json.loads(text, parse_constant=lambda _: None)


def short(value: object) -> str:
    """Return something of a file as it may stand in a sentence."""
    shown = ascii(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."
