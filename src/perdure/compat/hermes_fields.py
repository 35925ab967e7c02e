"""What Hermes' files and its database have in common: times, messages, reasons."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
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


def count(value: Any) -> int:
    """Return a number of tokens; 0 for what is none."""
    return int(value) if is_count(value) else 0


def is_count(value: object) -> bool:
    """Whether it can be a number of tokens."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def unusable(fields: Mapping[str, Any], kinds: Mapping[str, Callable[[Any], bool]]) -> Iterator[str]:
    """Yield a clause for each field that says something, and nothing of its kind. None and "" say nothing."""
    for name, is_right in kinds.items():
        value = fields.get(name)
        if value is not None and value != "" and not is_right(value):
            yield f"its {name} cannot be used ({short(value)}): it came in without that"


def unusable_in_message(message: Mapping[str, Any]) -> Iterator[str]:
    """Yield the same of what a turn has a place for."""
    return unusable(message, _MESSAGE_KINDS)


def tokens(fields: Mapping[str, Any]) -> Tokens:
    """Return the tokens of an entry, a row or a model."""
    return Tokens(input=count(fields.get("input_tokens")), output=count(fields.get("output_tokens")))


def turn_of(message: Mapping[str, Any], position: int, at: datetime, *, hidden: bool = False) -> Turn:
    """Return a message as a turn; what a turn has no place for is kept beside it."""
    calls = message.get("tool_calls")
    extra = {name: value for name, value in message.items() if name not in _PLACED and value is not None}
    spent = message.get("token_count")
    return Turn(
        position=position,
        role=text_of(message.get("role")) or "unknown",
        content=message.get("content"),
        at=at,
        tool_name=text_of(message.get("tool_name")),
        tool_call_id=text_of(message.get("tool_call_id")),
        tool_calls=tuple(calls) if isinstance(calls, list) else () if calls is None else (calls,),
        tokens=spent if _is_whole(spent) else None,
        model=text_of(message.get("model")),
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


def is_text(value: object) -> bool:
    """Whether it is a text, or a number that can stand for one."""
    return text_of(value) is not None


def is_moment(value: object) -> bool:
    """Whether it means a time."""
    return moment(value) is not None


def is_origin(value: object) -> bool:
    """Whether it says of a place at least on which platform it is; nothing at all may be said, too."""
    return isinstance(value, dict) and (not value or value.get("platform") is not None)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_MESSAGE_KINDS = {
    "timestamp": is_moment,
    "token_count": _is_whole,
    "tool_name": is_text,
    "tool_call_id": is_text,
    "model": is_text,
}
