from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.event import EventKind
from perdure.model.job_events import events_between, run_of
from tests.contract.store.jobs import a_job, begun, over

LIFE = ["ordered", "begun", "over"]
STATES = {"ordered": a_job(), "begun": begun(a_job()), "over": over(begun(a_job()))}


@pytest.mark.parametrize(
    ("owner", "run"),
    [("r7", "r7"), (None, None), ("agent:main:telegram:dm:99", None), ("r007", None), ("r", None), ("r-7", None)],
)
def test_a_job_of_a_run_is_about_that_run(owner: str | None, run: str | None) -> None:
    assert run_of(a_job(owner=owner)) == run


@given(st.lists(st.sampled_from(LIFE), min_size=2, max_size=6).map(lambda names: sorted(names, key=LIFE.index)))
def test_however_often_it_is_looked_at_each_thing_is_told_once(names: list[str]) -> None:
    told = [event.kind for one, other in pairwise(names) for event in events_between(STATES[one], STATES[other])]
    wanted = []
    if names[0] == "ordered" and names[-1] != "ordered":
        wanted.append(EventKind.JOB_STARTED)
    if names[0] != "over" and names[-1] == "over":
        wanted.append(EventKind.JOB_ENDED)
    assert told == wanted


def test_what_it_was_told_to_run_is_in_no_event() -> None:
    for event in events_between(STATES["ordered"], STATES["over"]):
        assert "make" not in str(event.data)
