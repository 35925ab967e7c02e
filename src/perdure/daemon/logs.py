"""What the daemon says of its own work: one line each, `time level where: what`, on stderr, and little of it."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import TextIO

from perdure.model.secrets import redact_text


class _Lines(logging.Formatter):
    """Times in UTC, secrets hidden, whatever somebody put into a message."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        line = f"{at} {record.levelname.lower()} {record.name}: {super().format(record)}"
        return redact_text(line).replace("\n", " | ")


def set_up_logs(stream: TextIO, *, verbose: bool) -> None:
    """Send what is logged to a stream: warnings, and with `verbose` what is done as well."""
    lines = logging.StreamHandler(stream)
    lines.setFormatter(_Lines())
    logging.basicConfig(level=logging.INFO if verbose else logging.WARNING, handlers=[lines], force=True)
