"""What a job printed, as it is kept on the disk: read from anywhere, with every process dead, whatever is missing.

Bytes are counted from the first the job printed, those that are no longer kept, or never could be, too. How it is
kept is said in `keeping`.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterator
from typing import TypeVar

from msgspec import Struct

from perdure.jobs.keeping import MARK
from perdure.model.job import Output
from perdure.model.text import encode

T = TypeVar("T")
#: As much as is given at once when nobody says how much.
LIMIT = 1 << 20
_CHUNK = 1 << 18
#: How often the directory is listed anew when a segment was removed under the eyes of who reads it.
_PATIENCE = 10
#: What no character begins with.
_FOLLOWING = bytes(range(0x80, 0xC0))
_NAME = re.compile(rb"out\.([0-9]{20})")


class Lines(Struct, frozen=True, kw_only=True):
    """Some lines of what a job printed."""

    #: The lines as they are, with what ends them.
    output: Output
    #: The number of the first line given; the first the job printed is 0.
    first: int
    #: How many there are in all, with those no longer kept; one that is not ended yet counts.
    total: int
    #: What came right before it is not kept: the first line may not be whole.
    is_cut: bool = False


class Text(Struct, frozen=True, kw_only=True):
    """Some of what a job printed, as text."""

    start: int
    text: str
    #: Where the text goes on.
    end: int
    #: As `Output.missing`.
    missing: int = 0


class _Segment(Struct, frozen=True):
    """A piece that is kept: where it begins, where it ends, its file."""

    start: int
    end: int
    path: bytes

    @property
    def marks(self) -> bytes:
        """The file of its marks."""
        return os.path.join(os.path.dirname(self.path), b"err.%020d" % self.start)


def size(directory: str) -> int:
    """Return how much the job has printed so far, in bytes, as far as the disk tells; 0 when nothing is known of it."""
    segments = _segments(directory)
    return segments[-1].end if segments else 0


def read(directory: str, start: int, limit: int = LIMIT) -> Output:
    """Return what was printed from `start` on, at most so many bytes.

    What is not kept is skipped and counted in `missing`; then `Output.start` is later than what was asked for. A piece
    never spans something missing: it ends there, and the next one begins behind it. At the end, or behind it, empty.
    """
    return _patiently(directory, lambda segments: _read(segments, max(start, 0), limit))


def tail(directory: str, limit: int) -> Output:
    """Return the last so many bytes, fewer where there are fewer in one piece. `missing` is 0."""
    return _patiently(directory, lambda segments: _read(segments, _tail_start(segments, limit), limit))


def lines(directory: str, first: int, limit: int, *, most: int = LIMIT) -> Lines:
    """Return `limit` lines from number `first` on, the last `limit` for `first` < 0; but no more than `most` bytes.

    Then lines are missing at the end, or at the beginning of the last ones, and one may be cut in two there.
    """
    return _patiently(directory, lambda segments: _lines(segments, first, max(limit, 0), most))


def read_text(directory: str, start: int, limit: int = LIMIT, *, is_over: bool) -> Text:
    """Return what was printed from `start` on as text, at most so many bytes of it; `is_over`: nothing more will come.

    Read on from `Text.end`, and no character is torn, whatever came between.
    """
    known = size(directory)
    output = read(directory, start, max(limit, 4))
    # What ends at a gap goes on nowhere: it is not to be waited for.
    is_last = is_over if output.end >= known else len(output.data) < 4
    text, end = text_of(output, is_last=is_last)
    return Text(start=output.start, text=text, end=end, missing=output.missing)


def text_of(output: Output, *, is_last: bool, is_cut: bool = False) -> tuple[str, int]:
    """Return a piece as text, and where the text that follows it begins.

    A character whose last bytes are not there yet is left for the next piece, unless this is the last one; one whose
    first bytes were cut off in front (`is_cut`, or something is missing there) is left out. What is no UTF-8 becomes
    U+FFFD.
    """
    data = output.data
    if is_cut or output.missing:
        data = data[:3].lstrip(_FOLLOWING) + data[3:]
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    text = decoder.decode(data, final=is_last)
    waiting, _ = decoder.getstate()
    return text, output.end - len(waiting)


def _patiently(directory: str, look: Callable[[list[_Segment]], T]) -> T:
    """Look at what is kept; once more when something was removed meanwhile."""
    for _ in range(_PATIENCE):
        try:
            return look(_segments(directory))
        except FileNotFoundError:
            continue
    return look([])


def _segments(directory: str) -> list[_Segment]:
    """Return what is kept, in order. None reaches into the next one, whatever its size says."""
    folder = encode(directory)
    try:
        found = sorted((int(match[1]), match[0]) for name in os.listdir(folder) if (match := _NAME.fullmatch(name)))
    except OSError:
        return []
    segments: list[_Segment] = []
    for number, (start, name) in enumerate(found):
        path = os.path.join(folder, name)
        try:
            end = start + os.stat(path).st_size
        except OSError:
            continue
        if number + 1 < len(found):
            end = min(end, found[number + 1][0])
        segments.append(_Segment(start, end, path))
    return segments


def _read(segments: list[_Segment], start: int, limit: int) -> Output:
    """Return what is there from `start` to the next gap. Raises FileNotFoundError when something was removed."""
    parts: list[bytes] = []
    errors: list[tuple[int, int]] = []
    begin = end = start
    for segment in segments:
        if segment.end <= end:
            continue
        if not parts:
            begin = end = max(start, segment.start)
        if segment.start > end or end - begin >= limit:
            break
        part = _bytes(segment, end, min(segment.end, begin + limit))
        parts.append(part)
        errors += [(max(a, end), min(b, end + len(part))) for a, b in _stretches(segment)]
        end += len(part)
        if end < segment.end:
            break
    return Output(start=begin, data=b"".join(parts), end=end, missing=begin - start, errors=_joined(errors, begin))


def _joined(stretches: list[tuple[int, int]], begin: int) -> tuple[tuple[int, int], ...]:
    """Stretches within a piece, those that touch each other as one: a segment's end is nothing the job did."""
    found: list[tuple[int, int]] = []
    for a, b in stretches:
        if a >= b:
            continue
        if found and found[-1][1] == a - begin:
            found[-1] = (found[-1][0], b - begin)
        else:
            found.append((a - begin, b - begin))
    return tuple(found)


def _bytes(segment: _Segment, start: int, end: int) -> bytes:
    with open(segment.path, "rb", buffering=0) as file:
        parts: list[bytes] = []
        at = start
        while at < end and (part := os.pread(file.fileno(), end - at, at - segment.start)):
            parts.append(part)
            at += len(part)
    return b"".join(parts)


def _marks(segment: _Segment) -> list[tuple[int, int]]:
    """The marks of a segment, the count of lines first; what was not written whole, or not at all, is not there."""
    try:
        with open(segment.marks, "rb") as file:
            raw = file.read()
    except OSError:
        return []
    whole = len(raw) - len(raw) % MARK
    return [
        (int.from_bytes(raw[at : at + 8], "big"), int.from_bytes(raw[at + 8 : at + MARK], "big"))
        for at in range(0, whole, MARK)
    ]


def _stretches(segment: _Segment) -> list[tuple[int, int]]:
    return [(max(a, segment.start), min(b, segment.end)) for a, b in _marks(segment)[1:]]


def _tail_start(segments: list[_Segment], limit: int) -> int:
    start = end = segments[-1].end if segments else 0
    for segment in reversed(segments):
        if segment.end < start:
            break
        start = segment.start
    return max(start, end - max(limit, 0))


class _Numbered(Struct, frozen=True):
    """A segment with the lines that ended before it, and those that end in it."""

    segment: _Segment
    before: int
    inside: int


def _numbered(segments: list[_Segment]) -> list[_Numbered]:
    found: list[_Numbered] = []
    for segment in segments:
        # Without its marks it is taken to follow the one before it.
        before = found[-1].before + found[-1].inside if found else 0
        if marks := _marks(segment):
            before = max(before, marks[0][0])
        found.append(_Numbered(segment, before, sum(part.count(b"\n") for _, part in _chunks(segment))))
    return found


def _chunks(segment: _Segment) -> Iterator[tuple[int, bytes]]:
    """Yield a segment piece by piece, with where each begins: a line may be as long as all of it."""
    at = segment.start
    while at < segment.end and (part := _bytes(segment, at, min(at + _CHUNK, segment.end))):
        yield at, part
        at += len(part)


def _lines(segments: list[_Segment], first: int, limit: int, most: int) -> Lines:
    numbered = _numbered(segments)
    if not numbered:
        return Lines(output=Output(start=0, data=b"", end=0), first=max(first, 0), total=0)
    last = numbered[-1]
    total = last.before + last.inside + (not _ends_with_newline(last.segment))
    is_last = first < 0
    number, start = _line_start(numbered, max(total - limit, 0) if is_last else first)
    end = _line_start(numbered, number + limit)[1] if number + limit < total else last.segment.end
    if is_last and end - start > most:
        number += sum(_count(each.segment, start, end - most) for each in numbered)
        start = end - most
    output = _read(segments, start, min(max(end - start, 0), most))
    return Lines(output=output, first=number, total=total, is_cut=_follows_a_gap(segments, output.start))


def _follows_a_gap(segments: list[_Segment], start: int) -> bool:
    begins = any(segment.start == start for segment in segments)
    return start > 0 and begins and all(segment.end != start for segment in segments)


def _line_start(numbered: list[_Numbered], number: int) -> tuple[int, int]:
    """Return the number and the beginning of a line; of the next one of which something is kept when it is not."""
    if number <= numbered[0].before:
        return numbered[0].before, numbered[0].segment.start
    for each in numbered:
        if number <= each.before:
            return each.before, each.segment.start
        if number <= each.before + each.inside:
            return number, _behind_newline(each.segment, number - each.before)
    return number, numbered[-1].segment.end


def _behind_newline(segment: _Segment, wanted: int) -> int:
    """Return where the line behind the so manieth newline of a segment begins."""
    for at, part in _chunks(segment):
        count = part.count(b"\n")
        if count >= wanted:
            found = -1
            for _ in range(wanted):
                found = part.index(b"\n", found + 1)
            return at + found + 1
        wanted -= count
    return segment.end


def _count(segment: _Segment, start: int, end: int) -> int:
    """Return how many lines end between two places of a segment."""
    lower, upper = max(start, segment.start), min(end, segment.end)
    return (
        sum(part[max(lower - at, 0) : max(upper - at, 0)].count(b"\n") for at, part in _chunks(segment))
        if lower < upper
        else 0
    )


def _ends_with_newline(segment: _Segment) -> bool:
    return segment.end == segment.start or _bytes(segment, segment.end - 1, segment.end) == b"\n"
