"""The only place that reads the clock; everywhere else `now` is an argument."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """Return the present moment, aware, in UTC."""
    return datetime.now(UTC)
