"""Other programs' JSON: whatever is in it, reading it never raises."""

from __future__ import annotations

from typing import Any

from msgspec import json


def decode_object(raw: bytes | None) -> dict[str, Any] | None:
    """Return the JSON object in `raw`, None when there is none: cut off, damaged, or not an object."""
    if not raw:
        return None
    try:
        value = json.decode(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def text(value: object) -> str | None:
    """Return `value` when it is text that says something."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int:
    """Return `value` when it is a number of things, else 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def mapping(value: object) -> dict[str, Any]:
    """Return `value` when it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def one_line(value: str | None, limit: int = 200) -> str | None:
    """Return `value` on one line of at most `limit` characters, no control character among them; None if nothing is left."""
    if value is None:
        return None
    # Twice the limit and more is room for collapsing, without splitting a pasted megabyte into words.
    words = " ".join("".join(c if c.isprintable() else " " for c in value[: 8 * limit]).split())
    if len(words) > limit:
        words = words[: limit - 1].rstrip() + "…"
    return words or None
