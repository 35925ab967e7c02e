"""Letting time pass, and no more of it than is asked for."""

from __future__ import annotations

from perdure.host.waiting import Pace, wait_until


def test_what_is_so_at_once_is_not_waited_for() -> None:
    assert wait_until(lambda: True, 0)


def test_what_becomes_so_is_seen() -> None:
    answers = iter([False, False, True])
    assert wait_until(lambda: next(answers), 20, every=0)


def test_what_does_not_become_so_is_given_up() -> None:
    assert not wait_until(lambda: False, 0.01, every=0)


def test_a_pace_waits_for_its_share_and_one_of_nothing_does_not_wait() -> None:
    pace = Pace(0.05)
    pace.reach(1.0)
    assert pace.elapsed >= 0.05
    Pace(0).reach(1.0)
