"""What the owner of a job is told of what it prints: how much, how often, and when there is too much of it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from perdure.jobs.ordering import LONGEST_PATTERN
from perdure.model.job import Notify, Watch
from perdure.model.secrets import redact_text
from perdure.model.text import encode

#: Of lines with a pattern in them one notice is given in this time; after so many such times in a row with more, none.
WINDOW = timedelta(seconds=15)
STORMS = 3
#: So many lines are counted at a time; more are not told from so many.
MANY = 1000
#: How much of a line is searched again when it goes on, at most; how much of it at least.
LINE, OVERLAP = 1 << 16, 2 * LONGEST_PATTERN
#: How much of what is new is looked at for secrets, in bytes, and how much of it is told, in characters.
TAIL, SHOWN = 8192, 2000
#: How many of those stand in front of the text that was looked for.
_BEFORE = 500


class Seen(Struct, frozen=True, kw_only=True):
    """What there is of a job's output when it is looked at."""

    #: What was printed from `start` on, all of it or a piece; so much before it is gone, unseen.
    start: int
    data: bytes = b""
    missing: int = 0
    #: Something is gone right behind `data`: nothing that begins in it goes on.
    is_torn: bool = False
    #: How much was printed in all, and the last of it.
    end: int
    tail: bytes = b""
    #: When the job began.
    began: datetime
    #: Nothing comes behind `data`: the job has ended.
    is_over: bool = False


class Notice(Struct, frozen=True, kw_only=True):
    """Something to tell an owner: what was printed, secrets aside, or, in `note`, about being told."""

    output: str = ""
    #: The text a line had in it; None for what is new.
    pattern: str | None = None
    #: How many other lines had one in them since the last notice.
    more: int = 0
    note: str | None = None


def advance(notify: Notify, watch: Watch, seen: Seen, now: datetime) -> tuple[Watch, tuple[Notice, ...]]:
    """Return how far an owner has been told after a look, and what is told now, in order.

    It depends on nothing but what is handed in. A line counts once, however it is cut in pieces; every line with a pattern is told or
    counted in a notice, until there are too many. Whatever is left to tell when the job has ended is told at once.
    """
    if watch.is_over:
        return watch, ()
    told: list[Notice] = []
    if notify.patterns and not watch.on_exit:
        if seen.missing and not watch.has_missed:
            watch = replace(watch, has_missed=True)
            told.append(Notice(note=_MISSED))
        watch = _with_lines(notify.patterns, watch, seen, now, told)
    if notify.every_seconds is not None:
        watch = _with_news(timedelta(seconds=notify.every_seconds), watch, seen, now, told)
    return replace(watch, end=seen.end, is_over=seen.is_over), tuple(told)


_MISSED = "It printed more than is kept before it could be looked at: lines to be told of may have been missed."
_TOO_MUCH = (
    f"Too many lines have a text in them that is to be told of, {STORMS} times {WINDOW.seconds} s in a row: "
    "no more of them are told, but its end is."
)


class _Line(Struct, frozen=True):
    """A line with a pattern in it, as far as it is there."""

    line: bytes
    pattern: str

    def shown(self) -> str:
        """The line, or what is around the pattern in it, secrets aside."""
        word = encode(self.pattern)
        at = self.line.find(word)
        # Looked at for secrets before it is cut: half of one is not known for what it is.
        around = self.line[max(0, at - TAIL) : at + len(word) + TAIL]
        text = redact_text(around.decode(errors="replace").rstrip("\r"))
        first = max(0, text.find(self.pattern) - _BEFORE)
        return text[first : first + SHOWN]


def _with_lines(patterns: tuple[str, ...], watch: Watch, seen: Seen, now: datetime, told: list[Notice]) -> Watch:
    """Tell of lines with patterns, as far as may be."""
    watch = _window_closed(watch, seen, now, told)
    if watch.on_exit:
        return watch
    watch, found = _searched(patterns, watch, seen)
    if found and watch.told_at is None:
        told.append(Notice(output=found[0].shown(), pattern=redact_text(found[0].pattern)))
        watch = replace(watch, told_at=now)
        del found[0]
    if found:
        last = found[-1]
        watch = replace(
            watch, held=watch.held + len(found), held_output=last.shown(), held_pattern=redact_text(last.pattern)
        )
    if seen.is_over and watch.held:
        watch = _held_told(watch, now, told)
    return watch


def _window_closed(watch: Watch, seen: Seen, now: datetime, told: list[Notice]) -> Watch:
    """When the time is up in which nothing more was told: tell what there was, unless that was so too often."""
    # A clock that was set back must not silence anybody.
    if watch.told_at is None or watch.told_at <= now < watch.told_at + WINDOW:
        return watch
    if not watch.held:
        return replace(watch, told_at=None, storms=0)
    watch = replace(watch, storms=watch.storms + 1)
    if watch.storms < STORMS or seen.is_over:
        return _held_told(watch, now, told)
    told.append(Notice(note=_TOO_MUCH))
    return replace(watch, on_exit=True, held=0, held_output="", held_pattern="")


def _held_told(watch: Watch, now: datetime, told: list[Notice]) -> Watch:
    told.append(Notice(output=watch.held_output, pattern=watch.held_pattern, more=watch.held - 1))
    return replace(watch, told_at=now, held=0, held_output="", held_pattern="")


def _searched(patterns: tuple[str, ...], watch: Watch, seen: Seen) -> tuple[Watch, list[_Line]]:
    """Return the lines that have a pattern in them, each once, and from where on is to be searched."""
    data = seen.data
    begin = 0
    if watch.is_told and not seen.missing:
        # The rest of a line that was told of.
        begin = data.find(b"\n") + 1
        if not begin and not seen.is_torn:
            return replace(watch, at=seen.start + len(data)), []
        begin = begin or len(data)
    whole = max(data.rfind(b"\n") + 1, begin)
    found = list(_lines_with(patterns, data, begin, whole))
    rest, end = data[whole:], seen.start + len(data)
    is_ended = seen.is_over or seen.is_torn
    # A line that is just being printed is waited for; a question that stands there is not.
    is_still = end == seen.end == watch.end
    if rest and (is_ended or is_still or len(rest) > LINE):
        last = list(_lines_with(patterns, rest, 0, len(rest)))
        found += last
        if last or is_ended:
            return replace(watch, at=end, is_told=bool(last) and not is_ended), found
    kept = min(len(rest), OVERLAP) if len(rest) > LINE else len(rest)
    return replace(watch, at=end - kept, is_told=False), found


def _lines_with(patterns: tuple[str, ...], data: bytes, at: int, end: int) -> Iterator[_Line]:
    """Yield the lines between two places that have a pattern in them, in order, but not very many."""
    words = [(encode(pattern), pattern) for pattern in patterns]
    hits = [data.find(word, at, end) for word, _ in words]
    for _ in range(MANY):
        there = [(hit, number) for number, hit in enumerate(hits) if hit >= 0]
        if not there:
            return
        hit, number = min(there)
        first = data.rfind(b"\n", at, hit) + 1 or at
        last = data.find(b"\n", hit, end)
        last = end if last < 0 else last
        yield _Line(data[first:last], words[number][1])
        at = min(last + 1, end)
        # Those that come later are still where they were.
        hits = [data.find(words[n][0], at, end) if 0 <= hit < at else hit for n, hit in enumerate(hits)]


def _with_news(every: timedelta, watch: Watch, seen: Seen, now: datetime, told: list[Notice]) -> Watch:
    """Tell what is new when it is time, and when nothing more comes."""
    # A clock that was set back counts from where it is.
    since = min(watch.every_at or seen.began, now)
    is_time = now - since >= every
    new = seen.end - watch.every_end
    if new > 0 and (is_time or seen.is_over):
        text = redact_text(seen.tail[-new:].decode(errors="replace"))
        told.append(Notice(output=text[-SHOWN:]))
        return replace(watch, every_at=now, every_end=seen.end)
    return replace(watch, every_at=now if is_time else since)
