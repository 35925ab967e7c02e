from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.rest import rest_by_age, rest_of
from perdure.model.run import RunState
from perdure.model.thought import Rest, ThoughtState
from tests.builders import NOON, at

AWAKE = (RunState.BUSY, RunState.ERROR, RunState.ATTENTION)


@pytest.mark.parametrize(
    ("state", "seconds", "rest"),
    [
        (RunState.IDLE, 5, Rest.ACTIVE),
        (RunState.IDLE, 29.999, Rest.ACTIVE),
        (RunState.IDLE, 30, Rest.DROWSY),
        (RunState.IDLE, 7200, Rest.DROWSY),
        (RunState.IDLE, -60, Rest.ACTIVE),
        (RunState.BUSY, 7200, Rest.ACTIVE),
        (RunState.ATTENTION, 7200, Rest.ACTIVE),
        (RunState.ERROR, 7200, Rest.ACTIVE),
        (RunState.EXITED, 0, Rest.DEEP_SLEEP),
        (RunState.EXITED, 7200, Rest.DEEP_SLEEP),
        (RunState.UNKNOWN, 30, Rest.DROWSY),
    ],
)
def test_a_run_grows_drowsy_with_time_and_never_more(state: RunState, seconds: float, rest: Rest) -> None:
    assert rest_by_age(state, NOON, at(seconds)) is rest


@given(st.sampled_from(RunState), st.none() | st.floats(-1e8, 1e8))
def test_age_alone_puts_nobody_to_sleep(state: RunState, seconds: float | None) -> None:
    assert rest_by_age(state, None if seconds is None else at(seconds), NOON) is not Rest.SLEEPING


def test_what_is_only_remembered_rests_as_its_thought_did() -> None:
    found = {thought: rest_of(RunState.IDLE, thought) for thought in ThoughtState}
    assert found == {
        ThoughtState.ACTIVE: Rest.ACTIVE,
        ThoughtState.HOLDING: Rest.DROWSY,
        ThoughtState.SLEEPING: Rest.SLEEPING,
    }
    for thought in ThoughtState:
        assert rest_of(RunState.EXITED, thought) is Rest.DEEP_SLEEP
        assert {rest_of(state, thought) for state in AWAKE} == {Rest.ACTIVE}
