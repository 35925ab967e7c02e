"""What is shown of a run is of who is there."""

from __future__ import annotations

from msgspec import structs

from perdure.live.standing import standing_of
from perdure.model.identity import Evidence
from perdure.model.run import RunState
from perdure.model.thought import Thought
from tests.builders import NOON, an_identity, at
from tests.unit.live.timeline import in_state

ASKED = Thought(at=NOON, objective="make it faster")


def test_what_was_asked_of_an_agent_and_what_it_used_is_not_shown_of_the_shell_it_has_left() -> None:
    there = in_state(RunState.BUSY, thought=ASKED, skill="review")
    shown = standing_of(there)
    assert (shown.objective, shown.skill, shown.last_conversation) == ("make it faster", "review", None)
    shown = standing_of(structs.replace(there, program=None))
    assert (shown.objective, shown.skill, shown.last_conversation) == (None, None, "c0ffee")


def test_of_a_run_that_is_over_it_is_shown_what_it_was_about() -> None:
    over = in_state(RunState.EXITED, thought=ASKED, program=None, ended_at=at(1))
    assert standing_of(over).objective == "make it faster"
    kept = in_state(RunState.IDLE, program=None, skill="review", identity=an_identity(evidence=Evidence.KEPT))
    assert standing_of(kept).skill == "review"
