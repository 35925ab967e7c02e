"""What a job printed, for whoever asks: what is new, what is last, some lines of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from perdure.jobs import output
from perdure.model.job import Job, Output


class Printed(Struct, frozen=True, kw_only=True):
    """Some of what a job printed, as text."""

    text: str
    #: Where what follows begins, in bytes.
    end: int
    #: Something that was asked for is left out: it is no longer kept, or was too much for one answer.
    truncated: bool


class Polled(Struct, frozen=True, kw_only=True):
    """How a job stands, and what it printed since it was last asked."""

    job: Job
    #: In seconds.
    uptime: float
    printed: Printed


class Log(Struct, frozen=True, kw_only=True):
    """Some lines of what a job printed."""

    job: Job
    #: The number of the first of them, from 0 on, and how many there are in all.
    first: int
    total: int
    printed: Printed
    #: The same in stretches: whether it was standard error, and what was printed.
    stretches: Sequence[tuple[bool, bytes]]


def since(directory: str, start: int, most: int, *, is_over: bool) -> Printed:
    """Return what was printed from a place on: of more than `most` bytes, the last.

    A character that is not whole yet is left for the next time, unless nothing more is to come.
    """
    size = output.size(directory)
    at = max(start, size - most)
    truncated = at > start
    texts = []
    while at < size:
        piece = output.read(directory, at, size - at)
        truncated |= piece.missing > 0
        if not piece.data:
            at = max(at, piece.end)
            break
        is_last = is_over or piece.end < size
        text, end = output.text_of(piece, is_last=is_last)
        texts.append(text)
        if end <= at:
            break
        at = end
    return Printed(text="".join(texts), end=at, truncated=truncated)


def log_of(job: Job, directory: str, *, offset: int | None, limit: int | None, tail: int | None, most: int) -> Log:
    """Return lines: `limit` from number `offset` on, or the last `tail`, or else all; of too many bytes, the last.

    From an offset on it is the first that are given of too many, so that one can go on behind them.
    """
    if offset is not None:
        found = output.lines(directory, offset, _ALL if limit is None else limit, most=most)
    else:
        # Of the last so many, the first of them.
        last = _ALL if tail is None else tail
        found = output.lines(directory, -1, last, most=most)
    piece = found.output
    text, end = output.text_of(piece, is_last=True)
    stretches = tuple(stretches_of(piece))
    lines = text.count("\n") + (not text.endswith("\n") and bool(text))
    wanted = _wanted(found.total, offset, limit, tail)
    printed = Printed(text=text, end=end, truncated=piece.missing > 0 or lines < wanted)
    return Log(job=job, first=found.first, total=found.total, printed=printed, stretches=stretches)


#: More lines than anything has.
_ALL = 1 << 40


def _wanted(total: int, offset: int | None, limit: int | None, tail: int | None) -> int:
    if offset is not None:
        left = max(0, total - offset)
        return left if limit is None else min(limit, left)
    return total if tail is None else min(tail, total)


def stretches_of(piece: Output) -> Iterator[tuple[bool, bytes]]:
    """Yield a piece of output in stretches: whether each is standard error, and its bytes. Together they are the piece."""
    at = 0
    for start, end in piece.errors:
        if start > at:
            yield False, piece.data[at:start]
        if end > start:
            yield True, piece.data[start:end]
        at = end
    if at < len(piece.data):
        yield False, piece.data[at:]
