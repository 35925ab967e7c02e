"""What the daemon says of its own work: one line each, `time level where: what`, on stderr, and little of it."""

from __future__ import annotations

import logging
import time
from typing import TextIO

from perdure.model.secrets import redact_text


class _Lines(logging.Formatter):
    """Times in UTC, secrets hidden, whatever somebody put into a message."""

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return time.strftime(datefmt or "", time.gmtime(record.created))

    def format(self, record: logging.LogRecord) -> str:
        return redact_text(super().format(record)).replace("\n", " | ")


def set_up_logs(stream: TextIO, *, verbose: bool) -> None:
    """Send what is logged to a stream: warnings, and with `verbose` what is done as well."""
    lines = logging.StreamHandler(stream)
    lines.setFormatter(_Lines("%(asctime)sZ %(levelname)s %(name)s: %(message)s", "%Y-%m-%dT%H:%M:%S"))
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[lines], force=True)
