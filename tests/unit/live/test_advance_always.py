"""What holds for every run, whatever is observed of it and in whichever order."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from perdure.live.advance import Track, advance, due
from perdure.live.lifetimes import remembered
from perdure.model.event import Event, EventKind
from perdure.model.observation import (
    Answered,
    Ended,
    Ending,
    Identified,
    Observation,
    Passed,
    Reading,
    Sighted,
    Source,
    Told,
    Watched,
)
from perdure.model.run import Confidence, Program, Reason, Run, RunState
from tests.builders import an_identity, at
from tests.unit.live.timeline import AGENT, FRAMES, PLACE, a_run, a_shell, in_state

#: Steps between observations: none, within every patience, and beyond every silence.
STEPS = st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 30.0, 61.0, 700.0])
SAID: list[tuple[RunState | None, Reason | None]] = [
    (None, None),
    (RunState.IDLE, None),
    (RunState.BUSY, None),
    (RunState.ERROR, None),
    (RunState.ATTENTION, None),
    (RunState.ATTENTION, Reason.PERMISSION),
    (RunState.ATTENTION, Reason.QUESTION),
    (RunState.ATTENTION, Reason.LIMIT),
]
PROGRAMS = [None, AGENT, Program(pid=7000, start_ticks=8000)]
IDENTITIES = [None, an_identity(), an_identity(conversation="beef"), an_identity("other", None, certain=False)]


@st.composite
def readings(draw: st.DrawFn, seconds: float) -> Reading:
    state, reason = draw(st.sampled_from(SAID))
    source = draw(st.sampled_from(Source))
    age = draw(st.sampled_from([0.0, 0.0, 0.2, 1.0, 4.0, 100.0])) if source is not Source.SCREEN else 0.0
    return Reading(
        source=source,
        at=at(seconds - age),
        state=state,
        reason=reason,
        rule=draw(st.sampled_from(["", "one", "two"])),
        confidence=draw(st.sampled_from(Confidence)),
        frozen=state is None and draw(st.booleans()),
    )


@st.composite
def sightings(draw: st.DrawFn, seconds: float) -> Sighted:
    return Sighted(
        place=PLACE,
        title=draw(st.sampled_from(["", "⠋ a", "⠙ a", "b", "🎉"])),
        watched=draw(st.sampled_from([None, True, False])),
        output_at=draw(st.sampled_from([None, at(seconds), at(seconds - 0.1)])),
    )


@st.composite
def observations(draw: st.DrawFn, seconds: float) -> Observation:
    kind = draw(st.sampled_from(["reading"] * 6 + ["sighted"] * 3 + ["identified", "ended", "word", "time"]))
    if kind == "reading":
        return draw(readings(seconds))
    if kind == "sighted":
        return draw(sightings(seconds))
    if kind == "identified":
        program = draw(st.sampled_from(PROGRAMS))
        identity = draw(st.sampled_from(IDENTITIES)) if program else None
        return Identified(identity=identity, program=program, skill=draw(st.sampled_from([None, "commit"])))
    if kind == "ended":
        what = draw(st.sampled_from([*[Ending.PROGRAM] * 6, Ending.PANE, Ending.SERVER]))
        return Ended(what=what, exit_status=draw(st.sampled_from([None, 0, 1])))
    age = draw(st.sampled_from([0.0, 0.2, 1.0, 4.0]))
    words: list[Observation] = [Watched(), Told(), Told(at=at(seconds - age)), Answered(at=at(seconds - age))]
    return draw(st.sampled_from(words)) if kind == "word" else Passed()


@st.composite
def stories(draw: st.DrawFn, length: int = 12) -> list[tuple[float, Observation]]:
    story, seconds = [], 0.0
    for _ in range(draw(st.integers(0, length))):
        seconds += draw(STEPS)
        story.append((seconds, draw(observations(seconds))))
    return story


RUNS = st.sampled_from(
    [
        a_run(),
        a_shell(),
        in_state(RunState.BUSY),
        in_state(RunState.IDLE),
        in_state(RunState.ATTENTION, Reason.DONE),
        in_state(RunState.ATTENTION, Reason.STALLED),
        in_state(RunState.EXITED, program=None),
        remembered(in_state(RunState.BUSY, since=-9000)),
    ]
)
Story = list[tuple[float, Observation]]


def tracks(run: Run, story: Story) -> list[tuple[Track, tuple[Event, ...], float]]:
    """Every track of a story, with what has happened; the first is before it."""
    track, found = Track(run=run), [(Track(run=run), (), 0.0)]
    result: list[tuple[Track, tuple[Event, ...], float]] = list(found)
    for seconds, seen in story:
        track, events = advance(track, seen, at(seconds))
        result.append((track, events, seconds))
    return result


@given(RUNS, stories())
def test_no_state_changes_without_an_event_and_no_event_without_a_change(run: Run, story: Story) -> None:
    seen = tracks(run, story)
    for (before, _, _), (after, events, _) in pairwise(seen):
        word = before.run.status.word
        for event in events:
            if event.kind is EventKind.STATE_CHANGED:
                assert event.data["from"] == word
                assert event.data["to"] != word
                word = event.data["to"]
        assert after.run.status.word == word
        kinds = [event.kind for event in events]
        assert (EventKind.TITLE_CHANGED in kinds) == (before.run.title != after.run.title)
        assert (EventKind.SKILL_CHANGED in kinds) == (before.run.skill != after.run.skill)
        assert (EventKind.RUN_DELETED in kinds) == (before.run.is_over != after.run.is_over)
        assert (EventKind.IDENTITY_CHANGED in kinds) == (_who(before.run) != _who(after.run))
        if events:
            assert before.run != after.run


def _who(run: Run) -> object:
    who = run.identity
    return who and (who.agent, who.profile, who.conversation, who.certain)


@given(RUNS, stories())
def test_the_same_at_the_same_time_again_is_as_if_it_had_not_been(run: Run, story: Story) -> None:
    for (track, _, seconds), (_, seen) in zip(tracks(run, story)[1:], story, strict=True):
        assert advance(track, seen, at(seconds)) == (track, ())


@given(RUNS, stories(), st.lists(STEPS, max_size=3))
def test_times_never_go_back(run: Run, story: Story, jumps: list[float]) -> None:
    """Not even when the clock is set back."""
    late = [(seconds - jump * 10, seen) for jump in jumps for seconds, seen in story[-3:]]
    seen = tracks(run, [*story, *late])
    for (before, _, _), (after, _, _) in pairwise(seen):
        assert after.run.status.since >= before.run.status.since
        assert (after.run.last_activity_at or at(-9999)) >= (before.run.last_activity_at or at(-9999))
        assert after.run.created_at == run.created_at


@given(RUNS, stories(), st.floats(0, 0.999))
def test_before_it_is_due_time_changes_nothing_and_then_it_does(run: Run, story: Story, share: float) -> None:
    """Whoever sleeps until a run is due misses nothing, and is never woken for nothing."""
    track, _, seconds = tracks(run, story)[-1]
    due_at = due(track)
    if due_at is None:
        for later in (0, 0.5, 3, 4, 70, 700, 90_000):
            assert _result(track, seconds + later) == (track.pending, track.run.status)
        return
    after, _ = advance(track, Passed(), due_at)
    assert (after.pending, after.run.status) != (track.pending, track.run.status)
    if due_at > at(seconds):
        between = at(seconds) + (due_at - at(seconds)) * share
        after, events = advance(track, Passed(), between)
        assert (after.pending, after.run.status, events) == (track.pending, track.run.status, ())


@given(RUNS, stories())
def test_nothing_is_due_that_was_due_before(run: Run, story: Story) -> None:
    """What the time has brought is brought by every observation: nobody is woken for the past."""
    for track, _, seconds in tracks(run, story)[1:]:
        due_at = due(track)
        assert due_at is None or due_at > at(seconds)


def _result(track: Track, seconds: float) -> object:
    after, _ = advance(track, Passed(), at(seconds))
    return (after.pending, after.run.status)


@given(RUNS, stories())
@settings(max_examples=50)
def test_time_alone_comes_to_rest(run: Run, story: Story) -> None:
    track, _, _ = tracks(run, story)[-1]
    for _ in range(12):
        due_at = due(track)
        if due_at is None:
            return
        track, _ = advance(track, Passed(), due_at)
    raise AssertionError("it goes on for ever")


@given(RUNS, stories())
def test_whoever_is_over_stays_so(run: Run, story: Story) -> None:
    over, _ = advance(Track(run=run), Ended(what=Ending.PANE), at(0))
    assert over.run.is_over
    assert due(over) is None
    for track, events, _ in tracks(over.run, story):
        assert (track.run, events) == (over.run, ())


@given(RUNS, stories())
def test_a_state_says_what_it_is(run: Run, story: Story) -> None:
    for track, _, _ in tracks(run, story)[1:]:
        status = track.run.status
        assert status.reason is None or status.state is RunState.ATTENTION
        assert status.cause
        if status.state is RunState.EXITED and not track.run.is_over:
            assert track.run.program is None
        if track.pending is not None:
            assert track.pending.verdict.state is not status.state or track.pending.verdict.reason != status.reason


NOISE = st.sampled_from(["⠋ work", "✳ work", "work", "◐ work", "work 🎉", "work ⠙", "👩‍💻 work"])


@given(st.lists(st.tuples(STEPS, NOISE, st.sampled_from([None, RunState.IDLE])), max_size=30))
def test_noise_never_makes_an_idle_agent_busy(noise: list[tuple[float, str, RunState | None]]) -> None:
    """Clocks in status lines, spinners in titles, emoji and resizes print, and may make a screen unreadable."""
    track, seconds = Track(run=structs.replace(in_state(RunState.IDLE), title="work")), 0.0
    for step, title, state in noise:
        seconds += step
        for seen in (
            Sighted(place=PLACE, title=title, output_at=at(seconds)),
            Reading(source=Source.SCREEN, at=at(seconds), state=state, rule=title),
        ):
            track, events = advance(track, seen, at(seconds))
            assert not [event for event in events if event.kind is EventKind.TITLE_CHANGED]
            assert track.run.status.word in ("idle", "unknown", "attention(stalled)")


@given(st.text(alphabet="ab ⠋✳·", max_size=12), st.sampled_from(FRAMES), st.sampled_from(FRAMES))
def test_frames_of_a_spinner_make_no_two_titles(title: str, one: str, other: str) -> None:
    track, _ = advance(Track(run=a_run()), Sighted(place=PLACE, title=f"{one} {title}"), at(0))
    after, events = advance(track, Sighted(place=PLACE, title=f"{other} {title}"), at(1))
    assert (after.run, events) == (track.run, ())
