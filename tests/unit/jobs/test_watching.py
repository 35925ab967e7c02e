"""What an owner is told of what a job prints: everything once, not too often, and that it was too much."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.jobs.watching import LINE, OVERLAP, SHOWN, WINDOW, Notice, Seen, advance
from perdure.model.job import Notify, Watch
from tests.builders import at

ERROR = Notify(patterns=("error",))
EVERY = Notify(every_seconds=30.0)


def look(
    notify: Notify, watch: Watch, printed: bytes, seconds: float, *, is_over: bool = False
) -> tuple[Watch, tuple[Notice, ...]]:
    """Look at a job that has printed this much by then."""
    data = printed[watch.at :]
    seen = Seen(start=watch.at, data=data, end=len(printed), tail=printed[-8192:], began=at(0), is_over=is_over)
    return advance(notify, watch, seen, at(seconds))


def told(notify: Notify, looks: Iterable[tuple[bytes, float]]) -> list[Notice]:
    """Look several times, at the same output as it grows, and return everything that was told."""
    watch, printed = Watch(), b""
    found: list[Notice] = []
    for more, seconds in looks:
        printed += more
        watch, notices = look(notify, watch, printed, seconds)
        found += notices
    return found


def test_a_line_with_the_text_in_it_is_told() -> None:
    (notice,) = told(ERROR, [(b"fine\nan error here\nfine\n", 1)])
    assert notice == Notice(output="an error here", pattern="error")


def test_a_line_that_comes_in_pieces_is_told_once_and_whole() -> None:
    looks = [(b"fine\nan er", 1.0), (b"ror he", 2.0), (b"re\nfine\n", 3.0), (b"fine\n", 40.0)]
    assert told(ERROR, looks) == [Notice(output="an error here", pattern="error")]


def test_a_question_that_stands_there_without_an_end_is_told_once() -> None:
    looks = [(b"Really error? ", 1.0), (b"", 2.0), (b"", 3.0), (b"error yes\n", 40.0), (b"", 60.0)]
    assert told(ERROR, looks) == [Notice(output="Really error? ", pattern="error")]


def test_a_line_of_any_length_is_searched() -> None:
    watch, none = look(ERROR, Watch(), b"x" * (LINE + 10) + b"err", 1)
    assert none == ()
    assert watch.at == LINE + 13 - OVERLAP
    _, (notice,) = look(ERROR, watch, b"x" * (LINE + 10) + b"error\n", 2)
    assert len(notice.output) <= SHOWN
    assert notice.output.endswith("error")


def test_what_follows_within_the_time_is_told_together_when_it_is_over() -> None:
    looks = [(b"error 1\n", 0.0), (b"error 2\n", 5.0), (b"error 3\n", 10.0), (b"", 14.9), (b"", 15.0)]
    assert told(ERROR, looks) == [
        Notice(output="error 1", pattern="error"),
        Notice(output="error 3", pattern="error", more=1),
    ]


def test_a_storm_is_suppressed_said_so_once_and_becomes_a_notice_of_the_end() -> None:
    watch, printed, found = Watch(), b"", []
    for second in range(200):
        printed += b"error\n"
        watch, notices = look(ERROR, watch, printed, second)
        found += [(second, notice) for notice in notices]
    assert [second for second, _ in found] == [0, 15, 30, 45]
    assert [notice.note is not None for _, notice in found] == [False, False, False, True]
    assert watch.on_exit
    assert look(ERROR, watch, printed + b"error\n", 300, is_over=True)[1] == ()


def test_a_time_without_too_much_ends_a_storm() -> None:
    looks = [(b"error\n", float(second)) for second in range(30)]
    looks += [(b"", float(second)) for second in range(30, 80)]
    looks += [(b"error\n", float(second)) for second in range(80, 110)]
    assert all(notice.note is None for notice in told(ERROR, looks))


def test_what_is_left_is_told_at_the_end_and_nothing_afterwards() -> None:
    watch, _ = look(ERROR, Watch(), b"error 1\n", 0)
    watch, (notice,) = look(ERROR, watch, b"error 1\nerror 2", 1, is_over=True)
    assert notice == Notice(output="error 2", pattern="error")
    assert look(ERROR, watch, b"error 1\nerror 2\nerror 3\n", 99, is_over=True)[1] == ()


def test_a_clock_that_is_set_back_silences_nobody() -> None:
    assert len(told(ERROR, [(b"error\n", 9000.0), (b"error\n", 0.0), (b"", 1.0), (b"", 16.0)])) == 2
    assert len(told(EVERY, [(b"one", 9000.0), (b"two", 0.0), (b"", 31.0)])) == 2


def test_what_is_new_is_told_so_often_and_only_when_there_is_something() -> None:
    looks = [(b"one\n", 10.0), (b"two\n", 30.0), (b"", 60.0), (b"", 90.0), (b"three\n", 100.0), (b"", 120.0)]
    assert [notice.output for notice in told(EVERY, looks)] == ["one\ntwo\n", "three\n"]


def test_the_last_of_what_is_new_is_told_at_the_end() -> None:
    assert look(EVERY, Watch(), b"short", 1, is_over=True)[1] == (Notice(output="short"),)
    assert look(EVERY, Watch(), b"", 1, is_over=True)[1] == ()


def test_secrets_are_not_told_and_no_more_than_a_bit() -> None:
    secret = "sk-" + "a1" * 20
    _, (line, new) = look(
        replace(ERROR, every_seconds=30.0), Watch(), f"{'x' * 5000} error {secret}\n".encode(), 40, is_over=True
    )
    for notice in (line, new):
        assert secret not in notice.output
        assert len(notice.output) <= SHOWN
    assert "error" in line.output


def test_what_was_gone_before_it_was_looked_at_is_said_once() -> None:
    seen = Seen(start=100, data=b"or\nfine\nerr", missing=100, is_torn=True, end=300, began=at(0))
    watch, (notice,) = advance(ERROR, Watch(), seen, at(1))
    assert notice.note is not None
    assert watch.at == 111
    seen = Seen(start=200, data=b"or\n" * 33 + b"x", missing=89, end=300, began=at(0))
    assert advance(ERROR, watch, seen, at(2))[1] == ()


LINES = st.lists(st.sampled_from([b"fine", b"an error", b"error error", b"", b"erro", b"warning: x"]), max_size=12)
GAPS = st.lists(st.tuples(st.integers(0, 9), st.floats(0, 20)), max_size=25)


def _looks(printed: bytes, gaps: Sequence[tuple[int, float]]) -> list[tuple[bytes, float]]:
    """The output as it has grown at some moments, all of it at the last."""
    looks, end, seconds = [], 0, 0.0
    for more, gap in gaps:
        end, seconds = min(len(printed), end + more), seconds + gap
        looks.append((printed[:end], seconds))
    return [*looks, (printed, seconds + 1)]


def _all_of_it(printed: bytes, gaps: Sequence[tuple[int, float]], *, restarts: bool) -> list[tuple[datetime, Notice]]:
    """Look at all of it; with `restarts`, whoever looks forgets whatever was not written down with a notice."""
    notify = Notify(patterns=("error", "warning"))
    kept = watch = Watch()
    found: list[tuple[datetime, Notice]] = []
    looks = _looks(printed, gaps)
    for number, (there, seconds) in enumerate(looks):
        watch, notices = look(notify, watch, there, seconds, is_over=number == len(looks) - 1)
        found += [(at(seconds), notice) for notice in notices]
        if notices:
            kept = msgspec.json.decode(msgspec.json.encode(watch), type=Watch)
        if restarts:
            watch = kept
    return found


@given(LINES, GAPS, st.booleans(), st.booleans())
def test_every_line_is_told_or_counted_once_however_it_comes(
    lines: list[bytes], gaps: list[tuple[int, float]], has_end: bool, restarts: bool
) -> None:
    printed = b"\n".join(lines) + (b"\n" if has_end and lines else b"")
    found = _all_of_it(printed, gaps, restarts=restarts)
    wanted = sum(b"error" in line or b"warning" in line for line in lines)
    counted = sum(1 + notice.more for _, notice in found if notice.note is None)
    if any(notice.note for _, notice in found):
        assert counted < wanted
    else:
        assert counted == wanted


@given(LINES, GAPS)
def test_there_is_time_between_two_but_for_the_end(lines: list[bytes], gaps: list[tuple[int, float]]) -> None:
    found = _all_of_it(b"\n".join(lines) + b"\n", gaps, restarts=False)
    times = [when for when, _ in found]
    before_the_end = times[:-1] if times else []
    assert all(b - a >= WINDOW for a, b in pairwise(before_the_end))
    assert sum(notice.note is not None for _, notice in found) <= 1
