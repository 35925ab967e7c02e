"""Moments and spans of time as people type them. Pure."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import datetime, timedelta

_SPAN = re.compile(r"([0-9]{1,6})([hdw]?)", re.ASCII)
_HOURS = {"h": 1, "d": 24, "w": 7 * 24}
_CENTURY = timedelta(days=36525)


def span_argument(text: str) -> timedelta:
    """Take an argument for how long: days, or with a letter hours, days or weeks. It is never nothing."""
    found = _SPAN.fullmatch(text.strip())
    span = timedelta(hours=int(found[1]) * _HOURS[found[2] or "d"]) if found else timedelta()
    if not timedelta() < span <= _CENTURY:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no time such as 30, 30d, 12w or 36h, of at most 100 years")
    return span


def moment_argument(text: str) -> Callable[[datetime], datetime]:
    """Take an argument for a moment: a date, a date and a time, or how long ago; return what tells it from `now`.

    Without a zone it is the reader's own.
    """
    if text.strip()[-1:] in _HOURS:
        span = span_argument(text)
        return lambda now: now - span
    try:
        # In its own place: a year that no zone can be reckoned for is as wrong as no date.
        moment = datetime.fromisoformat(text.strip()).astimezone()
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is neither a date, such as 2026-11-15 or 2026-11-15T18:30, nor how long ago, such as 3d"
        ) from None
    return lambda _: moment
