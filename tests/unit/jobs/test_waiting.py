from __future__ import annotations

import pytest

from perdure.errors import UsageError
from perdure.jobs.waiting import allowed, wait_for
from perdure.model.job import Job
from tests.contract.store.jobs import a_job, over


def test_no_more_is_waited_than_is_allowed_and_both_numbers_are_said() -> None:
    assert allowed(None, 180.0) == (180.0, None)
    # Whoever has no time at all wants to know how it stands.
    assert allowed(0, 180.0) == (0, None)
    assert allowed(180, 180.0) == (180, None)
    seconds, note = allowed(600, 180.0)
    assert seconds == 180.0
    assert note is not None
    assert "600 s" in note
    assert "180 s" in note


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("-inf")])
def test_what_is_no_time_is_a_mistake(timeout: float) -> None:
    with pytest.raises(UsageError):
        allowed(timeout, 180.0)


def test_it_is_looked_until_it_has_ended() -> None:
    looks: list[Job] = [a_job(), a_job(), over(a_job())]
    job, interrupted = wait_for(lambda: looks.pop(0), 60, lambda: False)
    assert (job, interrupted, looks) == (over(a_job()), False, [])


def test_whoever_has_something_else_to_do_is_let_go() -> None:
    assert wait_for(a_job, 60, lambda: True) == (a_job(), True)


def test_it_is_looked_at_once_even_without_time() -> None:
    assert wait_for(lambda: over(a_job()), 0.0, lambda: True) == (over(a_job()), False)
    assert wait_for(a_job, 0.0, lambda: True) == (a_job(), False)
