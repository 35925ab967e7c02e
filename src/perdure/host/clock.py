"""The only place that reads the clock; everywhere else `now` is an argument."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> datetime:
    """Return the present moment, aware, in UTC."""
    return datetime.now(UTC)


def ticking() -> float:
    """Return seconds that only ever grow, whoever sets the clock."""
    return time.monotonic()


def pause(seconds: float) -> None:
    """Let time pass."""
    time.sleep(seconds)
