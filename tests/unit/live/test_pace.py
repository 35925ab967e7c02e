"""How often panes are looked at."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.pace import GAP, LINES_GAP, SETTLE, Pace


def idle(key: str) -> float:
    return 0.0


def busy(key: str) -> float:
    return LINES_GAP


def test_the_first_change_is_looked_at_almost_at_once_and_with_its_lines() -> None:
    pace: Pace[str] = Pace()
    assert pace.next() is None
    pace.changed("a", 10.0)
    assert pace.next() == 10.0 + SETTLE
    assert pace.take(10.0, idle) == {}
    assert pace.take(10.0 + SETTLE, idle) == {"a": True}
    assert pace.next() is None


def test_what_goes_on_changing_is_looked_at_every_so_often() -> None:
    pace: Pace[str] = Pace()
    pace.changed("a", 0.0)
    pace.take(1.0, idle)
    pace.changed("a", 1.01)
    assert pace.next() == pytest.approx(1.0 + GAP)
    assert pace.take(1.01 + GAP, idle) == {"a": True}


def test_those_that_go_on_changing_are_looked_at_together() -> None:
    pace: Pace[str] = Pace()
    for number, key in enumerate("abc"):
        pace.changed(key, number * 0.03)
        pace.take(number * 0.03 + SETTLE, idle)
        pace.changed(key, 0.12 + number * 0.01)
    at = pace.next()
    assert at is not None
    assert pace.take(at, idle).keys() == {"a", "b", "c"}


def test_who_begins_to_change_does_not_wait_for_the_others() -> None:
    pace: Pace[str] = Pace()
    pace.changed("a", 0.0)
    pace.take(1.0, idle)
    pace.changed("a", 1.1)
    pace.changed("b", 1.1)
    assert pace.next() == 1.1 + SETTLE
    assert pace.take(1.1 + SETTLE, idle) == {"b": True}


def test_lines_that_are_wanted_again_are_read_though_they_were_read_just_now() -> None:
    pace: Pace[str] = Pace()
    pace.changed("a", 0.0)
    pace.take(1.0, busy)
    pace.changed("a", 1.1)
    assert pace.take(1.3, busy) == {"a": False}
    pace.read_again("a")
    at = pace.next()
    assert at is not None
    assert at <= 1.3 + GAP
    assert pace.take(at, busy) == {"a": True}
    assert pace.next() is None


def test_the_lines_of_who_is_busy_come_later_but_come() -> None:
    pace: Pace[str] = Pace()
    pace.changed("a", 0.0)
    assert pace.take(1.0, busy) == {"a": True}
    pace.changed("a", 1.1)
    assert pace.take(1.3, busy) == {"a": False}
    # Nothing more is printed: what it shows now is read all the same.
    assert pace.next() == pytest.approx(1.0 + LINES_GAP)
    assert pace.take(1.01 + LINES_GAP, busy) == {"a": True}
    assert pace.next() is None


def test_who_stops_being_busy_is_read_at_once() -> None:
    pace: Pace[str] = Pace()
    pace.changed("a", 0.0)
    pace.take(1.0, busy)
    pace.changed("a", 1.1)
    assert pace.take(1.3, idle) == {"a": True}


def test_what_is_forgotten_is_not_looked_at() -> None:
    pace: Pace[str] = Pace()
    pace.changed("a", 0.0)
    pace.changed("b", 0.0)
    pace.forget(lambda key: key == "b")
    assert len(pace) == 1
    assert pace.take(1.0, idle) == {"b": True}


@given(st.lists(st.tuples(st.floats(0.001, 0.7), st.booleans()), max_size=60))
def test_every_change_is_read_in_the_end_and_never_too_often(steps: list[tuple[float, bool]]) -> None:
    pace: Pace[str] = Pace()
    now, changed, read = 0.0, -1.0, 0.0
    looks: list[float] = []
    for wait, prints in steps:
        now += wait
        if prints:
            pace.changed("a", now)
            changed = now
        for reads in pace.take(now, busy).values():
            looks.append(now)
            read = now if reads else read
    while (at := pace.next()) is not None:
        now = max(now, at)
        taken = pace.take(now, busy)
        assert taken, "it said that something would be due"
        looks.append(now)
        read = now if taken["a"] else read
    assert read >= changed
    assert all(later - earlier >= GAP / 2 - 1e-9 for earlier, later in pairwise(looks))
