"""What is waited for, by its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UsageError
from perdure.live.until import WORDS, Outcome, is_reached, outcome, words_of
from perdure.model.run import Reason, Run, RunState, Status
from tests.builders import NOON
from tests.unit.live.events import a_run, a_status

STATUSES = [a_status(state) for state in RunState if state is not RunState.ATTENTION] + [
    a_status(RunState.ATTENTION, reason) for reason in Reason
]


def test_every_state_and_reason_can_be_waited_for() -> None:
    asked = "idle busy attention permission question done limit stalled error exited unknown".split()
    assert set(asked) <= set(WORDS)
    assert words_of(" idle,done , idle") == ("idle", "done")


@pytest.mark.parametrize("text", ["", ",", "idle,", "Idle", "ready", "idle busy"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no state to wait for"):
        words_of(text)


@given(status=st.sampled_from(STATUSES), words=st.sets(st.sampled_from(WORDS)))
def test_a_status_is_what_its_words_say(status: Status, words: set[str]) -> None:
    mine = {str(status.state), *([str(status.reason)] if status.reason else [])}
    if status.reason is Reason.DONE:
        mine.add("idle")
    assert is_reached(status, words) == bool(mine & words)


@pytest.mark.parametrize(
    ("run", "words", "expected"),
    [
        (a_run(), ["idle"], Outcome.REACHED),
        (a_run(), ["busy"], Outcome.WAITING),
        (a_run(status=a_status(RunState.ATTENTION, Reason.DONE)), ["idle"], Outcome.REACHED),
        (a_run(status=a_status(RunState.ATTENTION, Reason.PERMISSION)), ["idle"], Outcome.WAITING),
        (a_run(status=a_status(RunState.EXITED)), ["idle"], Outcome.ENDED),
        (a_run(status=a_status(RunState.EXITED), ended_at=NOON), ["exited"], Outcome.REACHED),
        (a_run(status=a_status(RunState.UNKNOWN), ended_at=NOON), ["idle"], Outcome.ENDED),
        # What it was before it was over says nothing of what it is.
        (a_run(ended_at=NOON), ["idle"], Outcome.ENDED),
        (a_run(status=a_status(RunState.ATTENTION, Reason.DONE), ended_at=NOON), ["idle", "done"], Outcome.ENDED),
    ],
)
def test_waiting_ends_when_it_is_reached_or_cannot_be(run: Run, words: list[str], expected: Outcome) -> None:
    assert outcome(run, words) is expected
