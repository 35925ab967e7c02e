"""What the daemon says of its own work: one line each, `time level where: what`, on stderr, and little of it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TextIO

from perdure.model.secrets import redact_text

#: How long the same thing is not said again, in seconds: what breaks with every look would fill the log.
AGAIN_AFTER = 600.0
#: How many things are remembered that were said.
_MOST = 1000


class _Lines(logging.Formatter):
    """Times in UTC, secrets hidden, whatever somebody put into a message."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = f"{at} {record.levelname.lower()} {record.name}: {super().format(record)}"
        return redact_text(line).replace("\n", " | ")


class Seldom(logging.Filter):
    """Lets the same sentence from the same place through once in a while; with another failure it is another."""

    def __init__(self) -> None:
        super().__init__()
        self._said: dict[tuple[str, int, str, object], float] = {}

    def __len__(self) -> int:
        return len(self._said)

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether a record is to be said."""
        key = record.name, record.levelno, record.getMessage(), _failure(record)
        last = self._said.get(key)
        if last is not None and 0 <= record.created - last < AGAIN_AFTER:
            return False
        self._said.pop(key, None)
        self._said[key] = record.created
        if len(self._said) > _MOST:
            del self._said[next(iter(self._said))]
        return True


def _failure(record: logging.LogRecord) -> object:
    """Return which failure is told of: of what kind, and where it was raised. What it says may be another each time."""
    kind, _, trace = record.exc_info or (None, None, None)
    if kind is None:
        return None
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    where = None if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
    return kind.__qualname__, where


def set_up_logs(stream: TextIO, *, verbose: bool) -> None:
    """Send what is logged to a stream: warnings, and with `verbose` what is done as well."""
    lines = logging.StreamHandler(stream)
    lines.setFormatter(_Lines())
    if not verbose:
        lines.addFilter(Seldom())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[lines], force=True)
