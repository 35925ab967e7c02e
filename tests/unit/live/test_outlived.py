"""What is said of a run never outlives the state it was said in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from msgspec import structs

from perdure.live.advance import Track, advance
from perdure.live.lifetimes import returned
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.identity import AgentDetails, Identity
from perdure.model.observation import Ended, Ending, Identified, Told, Watched
from perdure.model.run import Program, Reason, Run, RunState
from perdure.model.thought import Cue, Rest, Thought, ThoughtState
from tests.builders import NOON, an_identity, at
from tests.unit.live.test_advance_always import RUNS, Story, stories, tracks
from tests.unit.live.test_lifetimes import FOUND
from tests.unit.live.timeline import AGENT, Heard, Player, heard, hook, in_state, screen

BUSY, IDLE, ATTENTION, ERROR = RunState.BUSY, RunState.IDLE, RunState.ATTENTION, RunState.ERROR
AT_WORK = Thought(at=NOON, text="running the tests", objective="make it faster", rest=Rest.ACTIVE)
THROUGH = Thought(
    at=NOON,
    text="done: All is well.",
    state=ThoughtState.SLEEPING,
    rest=Rest.SLEEPING,
    cues=(Cue.AWAITING_USER, Cue.COMMIT_READY),
    commit_candidate=True,
)


def changed(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.kind is EventKind.STATE_CHANGED]


@pytest.mark.parametrize(
    "told",
    [
        hook(IDLE),
        hook(ATTENTION, Reason.PERMISSION),
        screen(ERROR),
        screen(None),
        Ended(what=Ending.PROGRAM),
        Ended(what=Ending.SERVER),
    ],
)
def test_what_a_run_was_at_is_not_said_any_more_once_it_is_not(told: Heard) -> None:
    player = Player(in_state(BUSY, thought=AT_WORK)).tell(1, told).pass_until(9)
    assert player.run.status.state is not BUSY
    assert player.run.thought is not None
    assert player.run.thought.text is None
    assert [event.data["thought"] for event in changed(player.events)] == [None]


def test_whoever_is_at_work_again_neither_sleeps_nor_waits_nor_is_through() -> None:
    player = Player(in_state(ATTENTION, Reason.DONE, thought=THROUGH)).tell(1, Told())
    thought = player.run.thought
    assert thought is not None
    assert (thought.text, thought.rest, thought.state) == (None, Rest.ACTIVE, ThoughtState.HOLDING)
    # That the files are ready is as true as it was.
    assert (thought.cues, thought.commit_candidate) == ((Cue.COMMIT_READY,), True)


def test_what_is_done_is_done_when_it_was_seen() -> None:
    player = Player(in_state(ATTENTION, Reason.DONE, thought=THROUGH)).tell(1, Watched())
    assert (player.run.status.word, player.run.thought) == ("idle", THROUGH)
    assert [event.data["thought"] for event in changed(player.events)] == ["done: All is well."]


def test_whoever_has_ended_sleeps_deeply_and_nothing_is_to_be_done_about_it() -> None:
    track, _ = advance(Track(run=in_state(IDLE, thought=THROUGH)), Ended(what=Ending.SERVER), at(1))
    thought = track.run.thought
    assert thought is not None
    assert (thought.text, thought.rest, thought.cues) == (None, Rest.DEEP_SLEEP, ())
    assert not thought.commit_candidate


def test_of_whoever_is_back_nothing_is_said_that_was_said_before() -> None:
    back, _ = returned(in_state(BUSY, thought=AT_WORK), FOUND, at(60))
    assert back.run.thought is not None
    assert (back.run.thought.text, back.run.thought.objective) == (None, "make it faster")


ANOTHER = Program(pid=5001, start_ticks=6001)


@pytest.mark.parametrize(
    "seen",
    [
        Identified(identity=an_identity(conversation="another"), program=AGENT),
        Identified(identity=an_identity(conversation="another"), program=ANOTHER),
        # It does not say in which conversation it is, or that is only guessed.
        Identified(identity=an_identity(conversation=None, certain=False), program=ANOTHER),
        Identified(identity=an_identity(certain=False), program=ANOTHER),
    ],
)
def test_what_was_said_of_a_conversation_is_said_of_no_other(seen: Identified) -> None:
    """It goes in the same moment, and whoever listens hears so: nobody thinks about the next one before a while has passed."""
    player = Player(in_state(IDLE, thought=AT_WORK)).tell(1, seen)
    thought = player.run.thought
    assert thought is not None
    assert (thought.text, thought.objective, thought.cues) == (None, None, ())
    told = [event for event in player.events if event.kind is EventKind.THOUGHT]
    assert [(event.data["thought"], event.data["objective"]) for event in told] == [(None, None)]


@pytest.mark.parametrize("before", [None, an_identity(conversation=None, certain=False), an_identity()])
def test_whoever_says_only_now_who_it_is_is_the_same(before: Identity | None) -> None:
    player = Player(in_state(BUSY, thought=AT_WORK, identity=before)).tell(
        1, Identified(identity=an_identity(), program=AGENT)
    )
    assert player.run.thought == AT_WORK


def test_a_conversation_that_was_taken_up_again_is_still_about_the_same() -> None:
    player = Player(in_state(BUSY, thought=AT_WORK)).tell(1, Identified(identity=an_identity(), program=ANOTHER))
    assert player.run.thought is not None
    assert (player.run.thought.text, player.run.thought.objective) == (None, "make it faster")


@pytest.mark.parametrize("another", [an_identity("other", None, certain=False), an_identity(conversation=None)])
def test_what_is_known_of_an_agent_without_a_conversation_is_known_of_no_other(another: Identity) -> None:
    unnamed = in_state(IDLE, identity=an_identity(conversation=None), details=AgentDetails(task="x"), skill="review")
    run = Player(unnamed).tell(1, Identified(identity=another, program=ANOTHER)).run
    assert (run.details, run.skill) == (None, None)


@given(RUNS, stories())
def test_words_are_never_older_than_the_state_unless_it_only_was_seen(run: Run, story: Story) -> None:
    """Whatever happens: what was said of a run at work is gone with the work."""
    start = advance(Track(run=run), Told(), at(0))[0].run
    if start.status.state is not BUSY or start.is_over:
        return
    for track, events, _ in tracks(structs.replace(start, thought=AT_WORK), story)[1:]:
        if changed(events) or any(event.kind is EventKind.THOUGHT for event in events):
            assert track.run.thought is not None
            assert track.run.thought.text is None
            return
        assert track.run.thought == AT_WORK


def test_what_is_thought_of_a_change_at_once_is_told_with_it() -> None:
    """One event has both: whoever shows the state has the words that belong to it."""
    supervisor = Supervisor([in_state(BUSY, thought=AT_WORK)])
    supervisor.observe("r1", heard(hook(IDLE), at(1)), at(1))
    thought = Event(kind=EventKind.THOUGHT, at=at(1), run="r1", data={"thought": THROUGH.text})
    supervisor.think("r1", THROUGH, thought)
    batch = supervisor.batch()
    assert [event.kind for event in batch.events] == [EventKind.STATE_CHANGED, EventKind.THOUGHT]
    assert batch.events[0].data["thought"] == "done: All is well."
    assert batch.runs[0].thought == THROUGH


def test_words_that_cannot_be_kept_are_not_told_with_the_change_either() -> None:
    supervisor = Supervisor([in_state(BUSY, thought=AT_WORK)])
    supervisor.observe("r1", heard(hook(IDLE), at(1)), at(1))
    run = supervisor.get("r1")
    assert run is not None
    supervisor.think("r1", THROUGH, None)
    supervisor.unthink("r1", run.thought)
    assert [event.data["thought"] for event in supervisor.batch().events] == [None]


def test_what_was_told_before_stays_as_it_was_told() -> None:
    supervisor = Supervisor([in_state(BUSY, thought=AT_WORK)])
    supervisor.observe("r1", heard(hook(IDLE), at(1)), at(1))
    batch = supervisor.batch()
    supervisor.recorded(batch)
    supervisor.think("r1", THROUGH, None)
    assert batch.events[0].data["thought"] is None
    assert supervisor.batch().events == ()
