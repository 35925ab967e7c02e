"""What a job printed, for whoever asks: what is new, what is last, some lines of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from perdure.jobs import output
from perdure.jobs.watching import TAIL, Seen
from perdure.model.job import Job, Output, Watch


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
    is_cut = truncated = at > start
    texts = []
    while at < size:
        piece = output.read(directory, at, size - at)
        truncated |= piece.missing > 0 or not piece.data
        # What ends at something that is missing goes on nowhere.
        is_torn = bool(piece.data) and piece.end < size
        text, at = output.text_of(piece, is_last=is_over or is_torn, is_cut=is_cut)
        texts.append(text)
        if not is_torn:
            break
    return Printed(text="".join(texts), end=at, truncated=truncated)


def not_yet_seen(directory: str, job: Job, watch: Watch, *, is_over: bool) -> tuple[Seen, bool]:
    """Return what there is to be told of since a watch was last advanced, and whether that is all of it.

    `is_over`: the job had ended when that was asked, before this.
    """
    size = output.size(directory)
    began = job.began_at or job.ordered_at
    seen = Seen(start=watch.at, end=size, began=began, is_over=is_over)
    notify = job.order.notify
    if notify.every_seconds is not None and size > watch.every_end:
        seen = replace(seen, tail=output.tail(directory, TAIL).data)
    if not notify.patterns or watch.on_exit:
        return seen, True
    piece = output.read(directory, watch.at, _PIECE)
    is_all = piece.end >= size or not piece.data
    seen = replace(
        seen,
        start=piece.start,
        data=piece.data,
        missing=piece.missing,
        is_torn=not is_all and len(piece.data) < _PIECE,
        end=max(size, piece.end),
        is_over=is_over and is_all,
    )
    return seen, is_all


def log_of(job: Job, directory: str, *, offset: int | None, limit: int | None, tail: int | None, most: int) -> Log:
    """Return lines: `limit` from number `offset` on, or else the last `tail`, or all there are.

    Of more than `most` bytes, from an offset on the first are given, so that one can go on behind them; else the last.
    """
    is_tail = offset is None
    wanted = tail if is_tail else limit
    count = _ALL if wanted is None else wanted
    found = output.lines(directory, -1 if offset is None else offset, count, most=most)
    is_cut = found.is_cut
    if is_cut and found.first + 1 < found.total:
        # What is left of a line is not a line. It is given only where there is nothing else.
        found = output.lines(directory, found.first + 1, count, most=most)
    piece = found.output
    text, end = output.text_of(piece, is_last=True, is_cut=piece.start > 0 and (is_tail or is_cut))
    given = text.count("\n") + (bool(text) and not text.endswith("\n"))
    there = max(0, found.total - (offset or 0))
    is_short = given < (there if wanted is None else min(wanted, there))
    truncated = is_short or is_cut or piece.missing > 0 or len(piece.data) >= most
    printed = Printed(text=text, end=end, truncated=truncated)
    return Log(job=job, first=found.first, total=found.total, printed=printed, stretches=tuple(stretches_of(piece)))


#: How much is searched at once.
_PIECE = 1 << 20
#: More lines than anything has.
_ALL = 1 << 40


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
