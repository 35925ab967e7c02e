"""Transcripts of JSON lines: some of them huge, the last of them perhaps cut off, none of them to be relied on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from perdure.agents._json import decode_object
from perdure.ports import HostView

Record = dict[str, Any]

#: What is read from the end of a file first, and at most.
FIRST_WINDOW, LAST_WINDOW = 1 << 16, 1 << 22
_MOST_READ = 1 << 26


def newest_first(
    path: str, host: HostView, *, bulk: bytes | None = None, only: bytes | None = None
) -> Iterator[Record]:
    """Yield the records of a transcript from its end, reading further back only as far as it is asked to.

    Lines with `bulk` near their beginning are left out unread, and so are all without `only` in them.
    """
    window, seen = FIRST_WINDOW, 0
    while True:
        data = host.read(path, limit=window, tail=True)
        if data is None:
            return
        whole = len(data) < window
        fresh = data[: len(data) - seen]
        cut = 0 if whole else fresh.find(b"\n") + 1
        if whole or cut:
            lines = fresh[cut:].split(b"\n")
            yield from _decoded((line for line in reversed(lines) if only is None or only in line), bulk)
            seen = len(data) - cut
        if whole or window >= LAST_WINDOW:
            return
        window *= 4


def oldest_first(path: str, host: HostView, limit: int, *, bulk: bytes | None = None) -> Iterator[Record]:
    """Yield the records at the beginning of a transcript."""
    yield from _decoded((host.read(path, limit=limit) or b"").split(b"\n"), bulk)


def every_record(path: str, host: HostView, *, bulk: bytes | None = None) -> Iterator[Record]:
    """Yield the records in order; of a file too large to be read at once, those at its end."""
    yield from _decoded((host.read(path, limit=_MOST_READ, tail=True) or b"").split(b"\n"), bulk)


def records_in(data: bytes) -> Iterator[Record]:
    """Yield the records of a transcript's content in order."""
    yield from _decoded(data.split(b"\n"), None)


def _decoded(lines: Iterable[bytes], bulk: bytes | None) -> Iterator[Record]:
    for line in lines:
        if bulk is None or bulk not in line[:40]:
            record = decode_object(line)
            if record is not None:
                yield record


def moment(value: object) -> datetime | None:
    """Return the time in an ISO text or in seconds or milliseconds since 1970, None when it is neither."""
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value)
            return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            # No program here is older than 1973, which is where 1e11 milliseconds lie.
            return datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
    except (ValueError, OverflowError, OSError):
        pass
    return None


def turn(
    role: str,
    text: str | None,
    *,
    tool: str | None = None,
    tokens: int | None = None,
    time: datetime | None = None,
    agent: str | None = None,
    detail: str | None = None,
    failed: bool | None = None,
    final: bool | None = None,
) -> dict[str, object]:
    """Return one turn in the form `ports.ReadsTranscripts.turns` promises."""
    return {
        "role": role,
        "text": text or "",
        "tool": tool,
        "tokens": tokens,
        "time": time,
        "agent": agent,
        "detail": detail,
        "failed": failed,
        "final": final,
    }
