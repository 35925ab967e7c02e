from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec import structs

from perdure.live.advance import Track, advance, due, weigh
from perdure.live.lifetimes import remembered
from perdure.model.event import EventKind
from perdure.model.identity import AgentDetails
from perdure.model.observation import Answered, Ended, Ending, Identified, Passed, Sighted, Source, Told, Watched
from perdure.model.run import Confidence, Health, Place, Program, Reason, RunState, Status
from tests.builders import an_identity, at
from tests.unit.live.timeline import (
    AGENT,
    FRAMES,
    PLACE,
    Heard,
    Player,
    Story,
    a_run,
    a_shell,
    heard,
    hook,
    in_state,
    play,
    printed,
    prompt,
    registry,
    says,
    screen,
    sighted,
    viewer,
    words,
)

BUSY, IDLE, ERROR, UNKNOWN = RunState.BUSY, RunState.IDLE, RunState.ERROR, RunState.UNKNOWN
ATTENTION, EXITED = RunState.ATTENTION, RunState.EXITED
PERMISSION, QUESTION, LIMIT, DONE, STALLED = (
    Reason.PERMISSION,
    Reason.QUESTION,
    Reason.LIMIT,
    Reason.DONE,
    Reason.STALLED,
)
LOW, MEDIUM, HIGH = Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH
#: Somebody has the pane before their eyes, so that nothing is ever `done`.
SEEN: tuple[float, Heard] = (0, printed(watched=True))
NEXT = Program(pid=7000, start_ticks=8000)


# -- patience ---------------------------------------------------------------------------------------------------------


def test_a_screen_that_shows_an_end_has_to_show_it_for_a_while() -> None:
    """Busy to idle is held back for one to two seconds, where the state is made and not where it is shown."""
    story: Story = [SEEN, (1, screen(BUSY)), (5, screen(IDLE))]
    assert play(story, until=60) == [(1, "busy", "screen:busy"), (6.5, "idle", "screen:idle")]


def test_a_screen_that_shows_an_end_for_a_moment_shows_none() -> None:
    """A state that flickers is no state: each edge has its own patience."""
    story: Story = [(1, screen(BUSY)), *[(t, screen(IDLE if t % 2 else BUSY)) for t in range(3, 40)]]
    assert words(story) == ["busy"]


def test_the_wait_goes_on_when_another_rule_says_the_same() -> None:
    story: Story = [SEEN, (1, screen(BUSY)), (5, screen(IDLE, rule="box")), (6, screen(IDLE, rule="footer"))]
    assert play(story, until=60)[1:] == [(6.5, "idle", "screen:footer")]


def test_somebody_who_looks_away_during_the_wait_does_not_begin_it_anew() -> None:
    story: Story = [SEEN, (1, screen(BUSY)), (5, screen(IDLE)), (6, sighted(watched=False))]
    assert play(story, until=60)[1:] == [(6.5, "attention(done)", "screen:idle")]


@pytest.mark.parametrize("tell", [hook, registry])
def test_what_is_told_counts_at_once(tell: Callable[..., Heard]) -> None:
    story: Story = [SEEN, (1, tell(BUSY)), (5, tell(IDLE)), (6, tell(ATTENTION, QUESTION)), (7, tell(ERROR))]
    assert [(moment.seconds, moment.word) for moment in play(story)] == [
        (1, "busy"),
        (5, "idle"),
        (6, "attention(question)"),
        (7, "error"),
    ]


def test_an_end_that_is_told_while_it_is_waited_for_counts_at_once() -> None:
    story: Story = [SEEN, (1, screen(BUSY)), (5, screen(IDLE)), (5.5, hook(IDLE))]
    assert play(story)[1:] == [(5.5, "idle", "hook:idle")]


def test_a_permission_that_is_given_at_once_calls_nobody() -> None:
    """Where all is allowed, a hook asks and the next one goes on: what is asked for is held back for a moment."""
    story: Story = [(1, hook(BUSY)), *[(t + part, hook(*said)) for t in range(2, 9) for part, said in FLASH]]
    assert words(story) == ["busy"]


FLASH: list[tuple[float, tuple[RunState, Reason | None]]] = [(0, (ATTENTION, PERMISSION)), (0.5, (BUSY, None))]


def test_a_permission_that_is_not_given_calls_somebody() -> None:
    assert play([(1, hook(BUSY)), (2, hook(ATTENTION, PERMISSION))], until=10)[1:] == [
        (2.7, "attention(permission)", "hook:attention")
    ]


@pytest.mark.parametrize("first", ["screen", "hook"])
def test_a_permission_whose_form_is_on_the_screen_counts_at_once(first: str) -> None:
    pair: Story = [(2.0, hook(ATTENTION, PERMISSION)), (2.1, screen(ATTENTION, PERMISSION))]
    if first == "screen":
        pair = [(2.0, screen(ATTENTION, PERMISSION)), (2.1, hook(ATTENTION, PERMISSION))]
    assert [(moment.seconds, moment.word) for moment in play([(1, hook(BUSY)), *pair], until=10)][1:] == [
        (2.1, "attention(permission)")
    ]


def test_a_title_that_calls_without_saying_what_for_agrees_with_the_hook_that_says_it() -> None:
    story: Story = [(1, hook(BUSY)), (2, hook(ATTENTION, PERMISSION)), (2.1, screen(ATTENTION, rule="title"))]
    assert play(story)[1:] == [(2.1, "attention(permission)", "hook:attention")]


def test_a_form_on_the_screen_alone_counts_after_a_moment() -> None:
    assert play([(1, screen(BUSY)), (2, screen(ATTENTION, PERMISSION))], until=5)[1:] == [
        (2.4, "attention(permission)", "screen:attention")
    ]


def test_nothing_is_waited_for_where_nothing_is_known() -> None:
    assert play([(1, screen(ATTENTION, PERMISSION))]) == [(1, "attention(permission)", "screen:attention")]


def test_an_error_on_the_screen_has_to_stay_for_a_second() -> None:
    story: Story = [(1, screen(IDLE)), (2, screen(ERROR)), (2.5, screen(IDLE)), (3, screen(ERROR))]
    assert play(story, until=9)[1:] == [(4, "error", "screen:error")]


def test_a_form_that_is_not_shown_for_a_moment_is_still_there() -> None:
    run = in_state(ATTENTION, LIMIT)
    story: Story = [(1, screen(IDLE)), (1.4, screen(ATTENTION, LIMIT)), (3, screen(IDLE))]
    assert play(story, run, until=9) == [(3.5, "idle", "screen:idle")]


def test_an_agent_goes_to_work_without_delay() -> None:
    assert play([(1, screen(IDLE)), (2, screen(BUSY))])[1:] == [(2, "busy", "screen:busy")]


# -- who is believed --------------------------------------------------------------------------------------------------


def test_a_hook_that_went_quiet_loses_against_a_screen_that_is_read_again() -> None:
    """Esc fires no hook, so an authority may be stuck on busy: it is checked even when no event arrives."""
    story: Story = [SEEN, (1, hook(BUSY)), (3, screen(IDLE)), (3.9, screen(IDLE)), (4.1, screen(IDLE))]
    assert play(story, until=60)[1:] == [(5.5, "idle", "screen:idle")]


def test_a_hook_that_went_quiet_loses_without_anybody_looking_again() -> None:
    """The last thing that was printed was the prompt: the screen still shows it, and no event will ever come."""
    story: Story = [SEEN, (1, hook(BUSY)), (1.5, printed(watched=True)), (1.6, screen(IDLE))]
    assert play(story, until=60)[1:] == [(5.5, "idle", "screen:idle")]


def test_a_screen_that_has_changed_since_it_was_read_proves_nothing() -> None:
    story: Story = [SEEN, (1, hook(BUSY)), (1.1, screen(IDLE)), (1.2, printed(watched=True)), (9, sighted())]
    assert words(story, until=60) == ["busy"]


def test_a_screen_from_before_the_hook_proves_nothing() -> None:
    story: Story = [SEEN, (1, screen(IDLE)), (2, hook(BUSY))]
    assert words(story, until=60) == ["idle", "busy"]


def test_a_doubtful_screen_never_wins_against_a_hook() -> None:
    story: Story = [SEEN, (1, hook(BUSY)), (5, screen(IDLE, confidence=LOW)), (20, screen(IDLE, confidence=LOW))]
    assert words(story, until=60) == ["busy"]


def test_an_unreadable_screen_leaves_the_last_word_to_the_hook() -> None:
    assert words([(1, hook(BUSY)), (5, screen(None)), (20, screen(None))], until=60) == ["busy"]


def test_an_unreadable_screen_brings_back_nothing_that_was_told_before() -> None:
    """Between a form and what comes of its answer there may be nothing to be read; the turn before is over all the same."""
    before: Story = [SEEN, (1, hook(BUSY)), (4, hook(IDLE)), (4.1, screen(IDLE)), (10, screen(BUSY))]
    asked: Story = [(12, screen(ATTENTION, QUESTION)), (20, screen(None)), (20.6, screen(BUSY))]
    assert words([*before, *asked]) == ["busy", "idle", "busy", "attention(question)", "busy"]
    assert words([*before, *asked[:-1]], until=60)[-1] == "unknown"


def test_the_screen_decides_who_is_blocked() -> None:
    """Hooks and transcripts raise or lower confidence; whether somebody is asked, the screen decides."""
    story: Story = [(1, hook(BUSY)), (2, screen(ATTENTION, PERMISSION))]
    assert play(story, until=10)[1:] == [(2.4, "attention(permission)", "screen:attention")]


def test_a_form_that_was_answered_is_gone_when_the_screen_says_so() -> None:
    """No hook tells that a permission was given: it is over when the next thing happens."""
    story: Story = [
        (1, hook(BUSY)),
        (2, hook(ATTENTION, PERMISSION)),
        (2.1, screen(ATTENTION, PERMISSION)),
        (3, screen(BUSY)),
    ]
    assert play(story)[2:] == [(3, "busy", "screen:busy")]


def test_a_form_of_which_is_told_that_it_was_answered_is_only_not_gone_from_the_screen_yet() -> None:
    asked: Story = [(2, hook(ATTENTION, PERMISSION)), (2.1, screen(ATTENTION, PERMISSION))]
    answered: Story = [(9, hook(BUSY)), (9.2, screen(ATTENTION, PERMISSION)), (9.9, screen(ATTENTION, PERMISSION))]
    story: Story = [(1, hook(BUSY)), *asked, *answered, (10.4, screen(BUSY))]
    assert words(story, until=60) == ["busy", "attention(permission)", "busy"]


def test_a_form_that_stays_though_an_answer_was_told_is_another_one() -> None:
    asked: Story = [(2, hook(ATTENTION, PERMISSION)), (2.1, screen(ATTENTION, PERMISSION))]
    story: Story = [(1, hook(BUSY)), *asked, (9, hook(BUSY)), (9.2, screen(ATTENTION, PERMISSION))]
    assert play(story, until=60)[3:] == [(12.4, "attention(permission)", "screen:attention")]


def test_a_registry_that_does_not_tell_who_is_asked_takes_no_form_away() -> None:
    """It is written again and again while a form is on the screen, and says each time that a turn goes on."""
    asked: Story = [(1, registry(BUSY, confidence=MEDIUM)), (2, screen(ATTENTION, PERMISSION))]
    again: Story = [(t, registry(BUSY, confidence=MEDIUM)) for t in (3, 3.5, 9)]
    story: Story = [*asked, *again, (9.1, screen(ATTENTION, PERMISSION)), (10, screen(BUSY))]
    assert words(story, until=60) == ["busy", "attention(permission)", "busy"]


def test_a_permission_that_was_never_shown_gives_way_to_the_screen_soon() -> None:
    story: Story = [(1, hook(BUSY)), (2, hook(ATTENTION, PERMISSION)), (2.2, screen(BUSY))]
    assert words(story, until=60) == ["busy"]


def test_the_latest_of_those_who_were_told_is_believed() -> None:
    assert words([SEEN, (1, registry(BUSY)), (2, hook(IDLE)), (3, registry(BUSY))]) == ["busy", "idle", "busy"]


def test_a_hook_that_was_overtaken_says_nothing() -> None:
    """What ends behind the turn it belongs to does not revive it."""
    assert words([SEEN, (1, hook(BUSY)), (3, hook(IDLE)), (4, hook(BUSY, of=2))]) == ["busy", "idle"]


def test_a_hook_dated_in_the_future_silences_nobody() -> None:
    assert words([SEEN, (1, hook(BUSY, of=4000)), (3, hook(IDLE))]) == ["busy", "idle"]


def test_a_turn_that_failed_is_an_error_though_the_agent_is_at_its_prompt() -> None:
    story: Story = [(1, registry(BUSY)), (5, hook(ERROR)), (5.1, registry(IDLE)), (6, screen(IDLE)), (30, screen(IDLE))]
    assert words(story, until=60) == ["busy", "error"]


def test_an_error_ends_with_the_next_turn_or_the_next_word_and_never_with_time() -> None:
    """An error is not taken back by what merely lives; time alone does not make it undone."""
    assert words([(1, hook(ERROR))], until=3600) == ["error"]
    assert words([(1, hook(ERROR)), (9, prompt(is_there=True)), (9, prompt(is_there=False))], until=3600) == ["error"]
    assert words([(1, hook(ERROR)), (9, screen(BUSY))]) == ["error", "busy"]
    assert words([(1, hook(ERROR)), (9, hook(IDLE))]) == ["error", "idle"]


def test_the_same_again_is_no_news() -> None:
    """Detecting the same again changes nothing: the evidence is not dated anew, and nothing is said."""
    player = Player().tell(1, screen(IDLE, rule="box"))
    before = player.run
    for seconds in range(2, 20):
        player.tell(seconds, screen(IDLE, rule="box"))
    assert player.run == before
    assert len(player.events) == 1


def test_better_evidence_is_taken_over_without_a_word() -> None:
    player = Player().tell(1, screen(IDLE, confidence=LOW)).tell(5, hook(IDLE))
    status = player.run.status
    assert (status.cause, status.confidence, status.since, status.observed_at) == ("hook:idle", HIGH, at(1), at(5))
    assert len(player.events) == 1
    player.tell(6, screen(IDLE, confidence=MEDIUM))
    assert player.run.status == status


def test_what_was_told_before_the_present_state_is_not_what_ended_it() -> None:
    """A hook that begins a turn says the same as the screen after a question in that turn was answered."""
    asked: Story = [(1, hook(BUSY)), (5, screen(ATTENTION, QUESTION))]
    assert play([*asked, (9, screen(BUSY))], until=60)[2:] == [(9, "busy", "screen:busy")]


def test_what_a_run_was_before_is_kept() -> None:
    player = Player().tell(1, screen(IDLE)).tell(9, screen(BUSY, rule="spinner"))
    assert player.run.previous is not None
    assert player.run.previous.word == "idle"
    assert player.run.last_activity_at == at(9)
    [_, event] = player.events
    assert event.data == {
        "state": "busy",
        "reason": None,
        "cause": "screen:spinner",
        "confidence": "high",
        "from": "idle",
        "to": "busy",
        "thought": None,
    }


# -- viewers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [BUSY, IDLE, ERROR])
def test_a_viewer_freezes_what_was(state: RunState) -> None:
    """A transcript viewer, a picker or an overlay must freeze the state and not change it."""
    story: Story = [(1, screen(state)), *[(t, viewer()) for t in range(5, 2000, 50)]]
    assert words(story, until=4000) == [str(state)]


def test_a_wait_for_what_the_screen_showed_ends_when_a_viewer_covers_it() -> None:
    assert words([SEEN, (1, screen(BUSY)), (5, screen(IDLE)), (6, viewer())], until=60) == ["busy"]


def test_behind_a_viewer_those_are_heard_who_do_not_look() -> None:
    story: Story = [SEEN, (1, hook(BUSY)), (5, viewer()), (9, viewer()), (10, hook(IDLE)), (12, viewer())]
    assert words(story, until=60) == ["busy", "idle"]


def test_a_hook_that_is_heard_late_counts_if_it_was_called_behind_the_viewer() -> None:
    story: Story = [SEEN, (1, hook(BUSY)), (5, viewer()), (12, viewer()), (12.1, hook(IDLE, of=11.9))]
    assert words(story, until=60) == ["busy", "idle"]


def test_a_permission_asked_for_just_before_a_viewer_came_is_not_lost() -> None:
    story: Story = [(1, hook(BUSY)), (2, hook(ATTENTION, PERMISSION)), (2.3, viewer()), (2.5, viewer())]
    assert play(story, until=60)[1:] == [(2.7, "attention(permission)", "hook:attention")]


def test_a_hook_that_went_quiet_does_not_come_back_behind_a_viewer() -> None:
    story: Story = [SEEN, (1, hook(BUSY)), (9, screen(IDLE)), (11, viewer())]
    assert words(story, until=60) == ["busy", "idle"]


# -- unknown ----------------------------------------------------------------------------------------------------------


def test_a_screen_nobody_can_read_is_unknown_after_a_while_and_never_an_error() -> None:
    """An empty or failed capture is unknown, never an error: a machine under load turns nobody red."""
    assert play([(1, screen(IDLE)), (5, screen(None))], until=30)[1:] == [(10, "unknown", "screen:unread")]


def test_a_screen_that_cannot_be_read_for_a_moment_is_no_state() -> None:
    """Emoji, a resize, half a redraw: what cannot be read for a moment changes nothing."""
    story: Story = [(1, screen(IDLE)), *[(t, screen(None if t % 4 else IDLE)) for t in range(2, 60)]]
    assert words(story) == ["idle"]


def test_an_agent_nobody_ever_read_stays_unknown_without_a_word() -> None:
    assert words([(1, screen(None)), (30, printed())], until=40) == []


# -- done -------------------------------------------------------------------------------------------------------------


def test_a_turn_nobody_watched_is_done_until_it_is_seen() -> None:
    """A turn that just ended and was not looked at is another thing than an agent that waits."""
    player = Player().tell(1, hook(BUSY)).tell(9, hook(IDLE)).tell(100, screen(IDLE)).pass_until(4000)
    assert player.run.status.word == "attention(done)"
    player.tell(4001, Watched())
    assert player.moments[-1:] == [(4001, "idle", "seen")]
    assert player.run.seen_at == at(4001)
    assert player.kinds()[-2:] == [EventKind.SEEN, EventKind.STATE_CHANGED]
    player.tell(4002, hook(IDLE, of=9)).tell(4003, screen(IDLE)).pass_until(9999)
    assert player.run.status.word == "idle"


def test_a_turn_somebody_watched_is_not_done() -> None:
    assert words([SEEN, (1, hook(BUSY)), (9, hook(IDLE))]) == ["busy", "idle"]


def test_done_is_seen_when_a_client_shows_the_pane() -> None:
    assert words([(1, hook(BUSY)), (9, hook(IDLE)), (20, sighted(watched=True))])[-1] == "idle"


def test_a_look_that_did_not_ask_who_watches_leaves_that_as_it_was() -> None:
    assert words([SEEN, (1, hook(BUSY)), (2, sighted()), (9, hook(IDLE))])[-1] == "idle"


def test_done_is_seen_by_whoever_goes_on() -> None:
    player = Player().tell(1, hook(BUSY)).tell(9, hook(IDLE)).tell(20, Told())
    assert player.run.status.word == "busy"
    assert player.run.seen_at == at(20)


def test_a_turn_that_begins_again_is_not_done_any_more() -> None:
    assert words([(1, hook(BUSY)), (9, hook(IDLE)), (10, hook(BUSY)), (11, hook(IDLE))]) == [
        "busy",
        "attention(done)",
        "busy",
        "attention(done)",
    ]


@pytest.mark.parametrize("state", [UNKNOWN, IDLE, ERROR])
def test_nothing_is_done_where_nothing_was_going_on(state: RunState) -> None:
    assert "attention(done)" not in words([(1, screen(IDLE))], in_state(state), until=30)


@pytest.mark.parametrize(("reason", "word"), [(PERMISSION, "attention(done)"), (LIMIT, "idle"), (Reason.LOGIN, "idle")])
def test_a_question_belongs_to_a_turn_and_a_limit_to_none(reason: Reason, word: str) -> None:
    assert words([(1, screen(IDLE))], in_state(ATTENTION, reason), until=30) == [word]


def test_a_turn_that_ended_while_nobody_could_read_it_is_done() -> None:
    assert words([(1, screen(BUSY)), (5, screen(None)), (40, screen(IDLE))])[-2:] == ["unknown", "attention(done)"]


def test_a_turn_that_ended_while_perdure_was_away_is_done() -> None:
    run = remembered(in_state(BUSY, since=-3600))
    assert words([(1, sighted()), (1, screen(IDLE))], run, until=30) == ["attention(done)"]


def test_of_a_shell_it_is_told_what_runs_in_it_now() -> None:
    """What it runs is a copy of itself first, and may be followed by another program without a prompt between them."""
    player = Player(a_shell())
    for second, name in enumerate(("sh", "make", "cc"), 1):
        player.tell(second, says(Source.PROCESS, BUSY, rule=name))
        assert player.run.status.cause == f"process:{name}"
    assert (player.run.status.word, player.run.status.since) == ("busy", at(1))
    assert player.moments == [(1, "busy", "process:sh")]


def test_a_shell_is_never_done() -> None:
    assert words([(1, prompt(is_there=False)), (5, prompt(is_there=True))], a_shell()) == ["busy", "idle"]


def test_whoever_has_seen_it_has_seen_what_it_has_come_to_by_then() -> None:
    track, _ = advance(Track(run=in_state(BUSY)), heard(screen(IDLE), at(5)), at(5))
    track, events = advance(track, Watched(), at(6.5))
    assert track.run.status.word == "idle"
    assert [event.data.get("to") for event in events] == ["attention(done)", None, "idle"]


def test_what_is_only_seen_keeps_what_it_asks_for() -> None:
    """Dismissing is for what is done: a form that waits for an answer is still there after a look at it."""
    run = in_state(ATTENTION, PERMISSION)
    player = Player(run).tell(1, Watched())
    assert player.run == structs.replace(run, seen_at=at(1))
    assert player.events == []


# -- told -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", [IDLE, UNKNOWN, ERROR])
def test_whoever_is_told_something_is_busy(state: RunState) -> None:
    """Input makes any state busy, except busy and exited."""
    assert play([(1, Told())], in_state(state)) == [(1, "busy", "input")]


def test_whoever_is_busy_or_gone_stays_so_when_told_something() -> None:
    """Input makes any state busy, except busy and exited."""
    assert words([(1, Told())], in_state(BUSY)) == []
    assert words([(1, Told())], in_state(EXITED, program=None)) == []


def test_what_was_known_before_does_not_take_back_that_it_was_told_something() -> None:
    story: Story = [(1, screen(IDLE)), (1, registry(IDLE)), (10, Told()), (10.1, screen(IDLE)), (11, screen(BUSY))]
    assert words(story, until=12) == ["idle", "busy"]


def test_what_shows_no_sign_of_what_it_was_told_is_what_it_was_and_not_done() -> None:
    # What is told counts at once; what is shown has to hold.
    for known, back in ((registry(IDLE), 13), (screen(IDLE), 14.5)):
        moments = play([(1, known), (10, Told())], until=60)
        assert [moment[:2] for moment in moments] == [(1, "idle"), (10, "busy"), (back, "idle")]


def test_a_shell_that_was_told_something_is_busy_until_it_is_back_at_its_prompt() -> None:
    run = a_shell()
    story: Story = [
        (1, prompt(is_there=True)),
        (10, Told()),
        (10.1, prompt(is_there=False)),
        (10.3, prompt(is_there=True)),
    ]
    assert words(story, run) == ["idle", "busy", "idle"]
    # What it was told takes a moment to get there.
    early: Story = [(1, prompt(is_there=True)), (10, Told()), (10.1, prompt(is_there=True)), (11, Passed())]
    assert words(early, run) == ["idle", "busy"]
    assert [moment[:2] for moment in play([(1, prompt(is_there=True)), (10, Told())], run, until=60)][1:] == [
        (10, "busy"),
        (13, "idle"),
    ]


def test_an_answer_within_a_moment_of_being_told_counts() -> None:
    assert words([(1, hook(IDLE)), (10, Told()), (10.5, hook(IDLE))], until=60) == ["idle", "busy", "attention(done)"]


@pytest.mark.parametrize("known", [hook, registry])
def test_an_answer_that_came_before_it_was_told_of_counts(known: Callable[..., Heard]) -> None:
    """A turn may be over by the time it is known that it was begun: what was typed at 10 is told at 11."""
    story: Story = [(1, known(IDLE)), (10.5, known(IDLE)), (11, Told(at=at(10)))]
    assert words(story, until=60) == ["idle", "busy", "attention(done)"]
    # What was said before has nothing to do with it.
    late: Story = [(1, known(IDLE)), (9.9, known(IDLE)), (11, Told(at=at(10)))]
    assert words(late, until=60) == ["idle", "busy", "idle"]


def test_who_has_typed_has_not_seen_what_came_of_it() -> None:
    story: Story = [(1, hook(IDLE)), (10.1, hook(BUSY)), (10.5, hook(IDLE)), (11, Told(at=at(10)))]
    assert words(story, until=60) == ["idle", "busy", "attention(done)"]
    # But what was there before.
    seen: Story = [(1, hook(BUSY)), (5, hook(IDLE)), (11, Told(at=at(10)))]
    assert words(seen, until=12) == ["busy", "attention(done)", "busy"]


# -- stopped ----------------------------------------------------------------------------------------------------------


def halted(*, is_so: bool = True) -> Heard:
    """The agent's process was looked at."""
    return says(Source.PROCESS, UNKNOWN, rule="stopped") if is_so else says(Source.PROCESS, None)


@pytest.mark.parametrize("known", [(registry(BUSY), screen(BUSY)), (registry(IDLE),), (screen(BUSY),), ()])
def test_an_agent_that_is_stopped_is_neither_busy_nor_idle_nor_stalled(known: tuple[Heard, ...]) -> None:
    """Whatever its files say is of before, and what is on the screen is the shell's."""
    before: Story = [(1, each) for each in known]
    story: Story = [*before, (10, halted()), (11, screen(IDLE)), (12, screen(None)), (13, halted())]
    player = Player()
    for seconds, told in story:
        player.tell(seconds, told)
    player.pass_until(10_000)
    assert (player.run.status.word, player.run.status.cause) == ("unknown", "process:stopped")
    assert player.run.status.confidence is HIGH


def test_one_that_goes_on_is_what_it_is_by_then() -> None:
    story: Story = [(1, screen(BUSY)), (10, halted()), (20, halted(is_so=False)), (20, screen(BUSY))]
    assert words(story) == ["busy", "unknown", "busy"]
    # Its turn was over while it was not looked at, or is before anybody looks.
    story = [(1, screen(BUSY)), (10, halted()), (20, halted(is_so=False)), (20, screen(IDLE))]
    assert words(story, until=30) == ["busy", "unknown", "attention(done)"]
    # Nothing that it shows tells.
    player = Player()
    for seconds, told in ((1, screen(None)), (10, halted()), (20, halted(is_so=False)), (20, screen(None))):
        player.tell(seconds, told)
    assert player.run.status.cause == "screen:unread"


def test_one_that_is_stopped_for_a_moment_is_not() -> None:
    story: Story = [(1, screen(BUSY)), (10, halted()), (10.2, halted(is_so=False)), (10.4, halted())]
    assert words([*story, (10.6, halted(is_so=False))], until=15) == ["busy"]
    # Also when nothing else is known of it.
    assert words([(10, halted()), (10.2, halted(is_so=False))], until=15) == []


def test_what_was_done_before_it_was_stopped_is_still_to_be_seen() -> None:
    story: Story = [(1, screen(BUSY)), (5, screen(IDLE)), (10, halted()), (20, halted(is_so=False)), (20, screen(IDLE))]
    assert words(story, until=30) == ["busy", "attention(done)", "unknown", "attention(done)"]


# -- answered ---------------------------------------------------------------------------------------------------------


def test_a_turn_that_no_look_has_caught_is_done_by_its_answer() -> None:
    story: Story = [(1, screen(IDLE)), (10.6, screen(IDLE)), (11.5, Answered(at=at(10.5)))]
    assert play(story, until=60) == [(1, "idle", "screen:idle"), (11.5, "attention(done)", "transcript")]
    # Once: what was seen is not done again by the same answer.
    again: Story = [*story, (20, Watched()), (21, Answered(at=at(10.5)))]
    assert words(again, until=60) == ["idle", "attention(done)", "idle"]


def test_what_was_told_something_and_has_answered_is_done() -> None:
    told: Story = [(1, screen(IDLE)), (11, Told(at=at(10)))]
    assert words([*told, (11.5, Answered(at=at(10.5)))], until=60) == ["idle", "busy", "attention(done)"]
    # However late that is known.
    assert words([*told, (30, Answered(at=at(10.5)))], until=60) == ["idle", "busy", "idle", "attention(done)"]
    # The answer to what was said before is none.
    assert words([*told, (11.5, Answered(at=at(9)))], until=60) == ["idle", "busy", "idle"]


@pytest.mark.parametrize(
    "story",
    [
        # It was there before anybody looked.
        [(1, screen(IDLE)), (2, Answered(at=at(0.5)))],
        # It is dated by another clock.
        [(1, screen(IDLE)), (2, Answered(at=at(3)))],
        # Somebody watches, or did when it was given.
        [(1, sighted(watched=True)), (1, screen(IDLE)), (5, Answered(at=at(4)))],
        [(1, sighted(watched=True)), (1, screen(IDLE)), (4, sighted(watched=False)), (5, Answered(at=at(3.9)))],
        # It was seen to be at work then, and is over, which somebody has seen.
        [(1, screen(BUSY)), (3, screen(IDLE)), (8, Watched()), (9, Answered(at=at(2.9)))],
    ],
)
def test_an_answer_that_somebody_may_have_seen_is_not_done(story: Story) -> None:
    assert words(story, until=60)[-1] == "idle"


def test_the_answer_of_a_process_before_is_none_of_this_one() -> None:
    story: Story = [(1, screen(IDLE)), (10, Identified(program=NEXT)), (11, screen(IDLE)), (12, Answered(at=at(9)))]
    assert words(story, until=60) == ["idle", "unknown", "idle"]


def test_a_form_that_was_answered_through_us_is_not_asked_again() -> None:
    story: Story = [
        (1, hook(ATTENTION, PERMISSION)),
        (1, screen(ATTENTION, PERMISSION)),
        (9, Told()),
        (9.1, screen(ATTENTION, PERMISSION)),
        (9.3, screen(BUSY)),
    ]
    assert words(story, until=60) == ["attention(permission)", "busy"]


def test_a_form_that_stays_though_it_was_told_something_is_asked_again() -> None:
    story: Story = [(1, screen(ATTENTION, PERMISSION)), (9, Told()), (9.1, screen(ATTENTION, PERMISSION))]
    assert play(story, until=60)[-1] == (9.5, "attention(permission)", "screen:attention")


# -- exited -----------------------------------------------------------------------------------------------------------


def test_what_ended_stays_so_while_only_the_shell_is_there() -> None:
    """Exited is never overridden by what lives: the shell at its prompt says nothing about what ended in it."""
    story: Story = [(1, screen(IDLE)), (2, Ended(what=Ending.PROGRAM, exit_status=0)), (3, prompt(is_there=True))]
    late: Story = [(4, hook(BUSY)), (5, screen(BUSY)), (6, hook(IDLE)), (7, Identified()), (8, printed())]
    assert words([*story, *late], until=4000) == ["idle", "exited"]


def test_an_agent_that_left_of_itself_is_exited_and_not_an_error() -> None:
    """A clean exit is no error; how it ended is told with it."""
    player = Player().tell(1, screen(BUSY)).tell(2, Ended(what=Ending.PROGRAM, exit_status=0))
    assert player.moments[-1:] == [(2, "exited", "process:process_exit")]
    assert player.events[-1].data["exit_status"] == 0
    assert not player.run.is_over


def test_a_pane_without_its_agent_has_an_agent_that_exited() -> None:
    """The foreground is the shell's again: the agent has exited."""
    player = Player().tell(1, screen(IDLE)).tell(2, Identified())
    assert player.run.status.word == "exited"
    assert player.run.program is None
    assert player.run.identity == an_identity()
    player.tell(2.1, Ended(what=Ending.PROGRAM, exit_status=3))
    assert player.run.exit_status == 3
    assert player.moments[1:] == [(2, "exited", "process:process_exit")]


def test_a_shell_that_runs_something_else_is_busy() -> None:
    story: Story = [
        (2, Ended(what=Ending.PROGRAM, exit_status=3)),
        (3, prompt(is_there=False)),
        (9, prompt(is_there=True)),
    ]
    player = Player()
    for seconds, told in story:
        player.tell(seconds, told)
    assert [moment.word for moment in player.moments] == ["exited", "busy", "idle"]
    assert player.run.exit_status is None


def test_a_new_agent_in_a_pane_begins_unknown() -> None:
    """Nothing that was known of the one before says anything about the next: its tool and its mode are its own."""
    story: Story = [
        (1, screen(IDLE)),
        (2, Ended(what=Ending.PROGRAM)),
        (3, Identified(identity=an_identity(), program=NEXT)),
    ]
    assert play(story)[-1] == (3, "unknown", "process:started")
    assert words([*story, (4, screen(IDLE))])[-1] == "idle"


def test_an_agent_started_from_a_busy_shell_has_not_done_anything_yet() -> None:
    story: Story = [
        (1, prompt(is_there=False)),
        (2, Identified(identity=an_identity(), program=AGENT)),
        (3, screen(IDLE)),
    ]
    assert words(story, a_shell(), until=20) == ["busy", "unknown", "idle"]


def test_an_end_of_the_process_before_does_not_end_the_next() -> None:
    story: Story = [(1, screen(IDLE)), (2, Identified(identity=an_identity(), program=NEXT)), (3, screen(IDLE))]
    late = (4, Ended(what=Ending.PROGRAM, program=AGENT, exit_status=1))
    assert words([*story, late]) == ["idle", "unknown", "idle"]
    assert words([*story, (4, Ended(what=Ending.PROGRAM, program=NEXT))])[-1] == "exited"


@pytest.mark.parametrize("noticed", ["its end", "what is left"])
def test_what_has_started_an_agent_is_not_another_one_when_that_has_ended(noticed: str) -> None:
    """A loader ends a moment after the program it has loaded, and would be taken for the agent if that is not there."""
    loader = Program(pid=AGENT.pid - 1, start_ticks=AGENT.start_ticks - 1)
    begun = (1, Identified(identity=an_identity(), program=AGENT, launchers=(loader,)))
    left = (5, Identified(identity=an_identity(conversation=None), program=loader))
    ended: Story = [(5, Ended(what=Ending.PROGRAM, program=AGENT, exit_status=0))] if noticed == "its end" else []
    player = Player()
    for seconds, told in [begun, (2, screen(IDLE)), *ended, left, (6, left[1]), (7, Identified())]:
        player.tell(seconds, told)
    assert player.moments == [(2, "idle", "screen:idle"), (5, "exited", "process:process_exit")]
    assert player.run.identity == an_identity()
    player.tell(9, Identified(identity=an_identity(), program=NEXT, launchers=(loader,)))
    assert (player.run.status.word, player.run.program) == ("unknown", NEXT)


def test_a_loader_that_has_loaded_its_agent_goes_on_as_that() -> None:
    player = Player(a_run(program=None)).tell(1, Identified(identity=an_identity(), program=AGENT))
    player.tell(2, screen(IDLE)).tell(3, Identified(identity=an_identity(), program=NEXT, launchers=(AGENT,)))
    assert player.moments == [(2, "idle", "screen:idle")]
    assert player.run.program == NEXT
    player.tell(4, Ended(what=Ending.PROGRAM, program=NEXT))
    assert player.moments[-1] == (4, "exited", "process:process_exit")


@pytest.mark.parametrize("what", [Ending.PANE, Ending.MISSING, Ending.SERVER])
def test_a_pane_that_is_gone_is_over(what: Ending) -> None:
    """Whoever had been there and is not listed any more is exited and deleted, with the reason."""
    player = Player(structs.replace(in_state(BUSY), attached=2)).tell(5, Ended(what=what))
    assert player.run.is_over
    assert (player.run.health, player.run.attached) == (Health.DISCONNECTED, 0)
    assert player.kinds() == [EventKind.STATE_CHANGED, EventKind.RUN_DELETED]
    assert player.moments == [(5, "exited", f"process:{what}")]
    assert player.events[-1].data == {"reason": str(what), "target": "work:1.0"}


def test_the_end_of_a_pane_does_not_forget_how_its_agent_ended() -> None:
    player = Player().tell(1, Ended(what=Ending.PROGRAM, exit_status=3)).tell(2, Ended(what=Ending.PANE))
    assert player.run.exit_status == 3
    assert player.kinds() == [EventKind.STATE_CHANGED, EventKind.RUN_DELETED]


def test_an_end_is_final() -> None:
    player = Player(in_state(BUSY)).tell(5, Ended(what=Ending.PANE))
    over, events = player.track, list(player.events)
    observations: list[Heard] = [
        printed("another"),
        screen(BUSY),
        hook(BUSY),
        prompt(is_there=False),
        Told(),
        Watched(),
        Passed(),
    ]
    more: list[Heard] = [
        Identified(identity=an_identity("other"), program=NEXT),
        Ended(what=Ending.PROGRAM, exit_status=1),
    ]
    for told in [*observations, *more, Ended(what=Ending.SERVER)]:
        player.tell(9, told)
    assert (player.track, player.events) == (over, events)
    assert due(over) is None


# -- silence ----------------------------------------------------------------------------------------------------------


def test_a_turn_that_says_nothing_for_ten_minutes_wants_a_look() -> None:
    """No prompt, no output, no word: somebody should look, at low confidence."""
    player = Player().tell(1, screen(BUSY)).tell(30, printed()).pass_until(4000)
    assert player.moments[1:] == [(630, "attention(stalled)", "silence")]
    assert player.run.status.confidence is LOW


def test_an_agent_that_cannot_be_read_wants_a_look_after_a_minute_of_silence() -> None:
    """A picker nobody knows: neither an output nor a prompt nor a form that could be read."""
    assert play([(0, screen(None)), (5, printed())], until=4000) == [(65, "attention(stalled)", "silence")]


def test_whoever_prints_or_is_heard_of_is_not_stalled() -> None:
    assert words([(0, screen(BUSY)), *[(t, printed()) for t in range(500, 5000, 500)]]) == ["busy"]
    assert words([(0, hook(BUSY)), *[(t, hook(BUSY)) for t in range(500, 5000, 500)]]) == ["busy"]


def test_whoever_is_told_more_is_not_stalled_yet() -> None:
    assert play([(0, screen(BUSY)), (500, Told())], until=2000)[1:] == [(1100, "attention(stalled)", "silence")]


def test_a_screen_that_is_read_again_and_says_the_same_does_not_break_the_silence() -> None:
    story: Story = [(0, screen(BUSY)), *[(t, screen(BUSY)) for t in range(50, 3000, 50)]]
    assert play(story)[1:] == [(600, "attention(stalled)", "silence")]


@pytest.mark.parametrize(
    ("told", "word"),
    [
        (printed(), "busy"),
        (hook(BUSY), "busy"),
        (hook(IDLE), "attention(done)"),
        (screen(IDLE), "attention(done)"),
        (screen(ATTENTION, QUESTION), "attention(question)"),
        (Told(), "busy"),
        (Ended(what=Ending.PROGRAM), "exited"),
    ],
)
def test_whoever_stalled_goes_on_when_something_is_heard(told: Heard, word: str) -> None:
    assert words([(0, screen(BUSY)), (700, told)], until=702) == ["busy", "attention(stalled)", word]


@pytest.mark.parametrize("told", [sighted(), sighted("renamed"), Passed(), Watched(), screen(BUSY)])
def test_whoever_stalled_stays_so_while_nothing_is_heard(told: Heard) -> None:
    assert words([(0, screen(BUSY)), (700, told), (800, told)], until=5000) == ["busy", "attention(stalled)"]


def test_an_agent_that_was_never_read_and_prints_again_is_unknown_again() -> None:
    assert words([(70, printed())], until=80) == ["attention(stalled)", "unknown"]


def test_silence_that_nobody_listened_to_does_not_count() -> None:
    run = remembered(in_state(BUSY, since=-7200))
    story: Story = [(0, sighted()), (1, screen(BUSY))]
    assert [moment[:2] for moment in play(story, run, until=4000)] == [(601, "attention(stalled)")]
    assert words([], run, until=4000) == []


def test_nobody_is_stalled_behind_a_viewer() -> None:
    assert words([(0, screen(BUSY)), (5, viewer()), (3000, screen(BUSY))], until=3001) == ["busy"]


@pytest.mark.parametrize("state", [IDLE, ERROR])
def test_whoever_waits_may_be_silent_for_ever(state: RunState) -> None:
    """Waiting does not age: an agent at its prompt is what it is, however long."""
    player = Player().tell(0, screen(state)).pass_until(5)
    assert player.run.status.state is state
    assert due(player.track) is None


# -- what is seen of the pane -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "shape", ["{} Fix the parser", "Fix the parser | {}", "{}", "[ {} ] Fix the parser", "{} {} é"]
)
def test_a_spinner_in_a_title_is_neither_news_nor_work(shape: str) -> None:
    """Status-line clocks, spinners, emoji and resizes never make an idle agent busy."""
    player = Player().tell(0, printed(shape.replace("{}", "✳"))).tell(1, screen(IDLE))
    before, count = player.run, len(player.events)
    for seconds, frame in enumerate(FRAMES * 20, 2):
        player.tell(seconds / 10, printed(shape.replace("{}", frame)))
    assert player.run == before
    assert len(player.events) == count


def test_another_title_is_news() -> None:
    player = Player().tell(0, printed("⠋ Fix the parser")).tell(1, printed("⠙ Fix the tests"))
    assert player.run.title == "Fix the tests"
    assert [(event.data["was"], event.data["title"]) for event in player.events] == [
        ("", "Fix the parser"),
        ("Fix the parser", "Fix the tests"),
    ]


def test_an_idle_agent_that_prints_is_idle() -> None:
    """A clock in a status line prints every minute, a resize prints everything: neither is work."""
    story: Story = [(0, screen(IDLE)), *[(t, printed(f"🎉 {t}")) for t in range(1, 5000, 61)]]
    assert words(story, until=9000) == ["idle"]


def test_what_tmux_has_of_a_pane_is_taken_over() -> None:
    run = structs.replace(remembered(a_run()), cwd="/home/dev", command="node")
    place = Place(session="other", window=3, pane=1, window_name="logs")
    after, events = advance(Track(run=run), Sighted(place=place, attached=2, cwd="/home/dev/src"), at(1))
    assert events == ()
    assert (after.run.place, after.run.cwd, after.run.command, after.run.attached) == (
        place,
        "/home/dev/src",
        "node",
        2,
    )
    assert (after.run.health, after.run.stale) == (Health.HEALTHY, False)


# -- who is in it -----------------------------------------------------------------------------------------------------


def test_another_conversation_is_told_with_the_one_before() -> None:
    player = Player(a_run(skill="review", details=AgentDetails(model="m")))
    player.tell(1, Identified(identity=an_identity(conversation="beef"), program=AGENT))
    assert player.kinds() == [EventKind.IDENTITY_CHANGED, EventKind.SKILL_CHANGED]
    assert player.events[0].data == {
        "agent": "some",
        "conversation": "beef",
        "certain": True,
        "evidence": "registry",
        "was": "c0ffee",
    }
    assert (player.run.skill, player.run.details) == (None, None)


def test_the_same_conversation_is_no_news_whatever_was_looked_at() -> None:
    player = Player(a_run(skill="review"))
    player.tell(1, Identified(identity=an_identity(because=("a file",), prompted=True), program=AGENT))
    assert player.events == []
    assert player.run.skill == "review"


def test_a_conversation_that_goes_on_in_another_process_keeps_its_skill() -> None:
    player = Player(a_run(skill="review")).tell(1, Identified(identity=an_identity(), program=NEXT, skill="commit"))
    assert player.kinds() == [EventKind.SKILL_CHANGED]
    assert player.run.skill == "commit"
    assert player.tell(2, Identified(identity=an_identity(), program=AGENT)).run.skill == "commit"


def test_a_pane_whose_agent_was_never_known_may_get_one() -> None:
    player = Player(a_shell()).tell(1, Identified(identity=an_identity(), program=AGENT))
    assert player.kinds() == [EventKind.IDENTITY_CHANGED]
    assert (player.run.agent, player.run.program) == ("some", AGENT)


# -- clocks -----------------------------------------------------------------------------------------------------------


def test_a_clock_that_is_set_back_keeps_nobody_waiting() -> None:
    track, _ = advance(Track(run=in_state(BUSY, since=0)), heard(screen(IDLE), at(100)), at(100))
    track, _ = advance(track, heard(screen(IDLE), at(-3600)), at(-3600))
    track, events = advance(track, Passed(), at(-3598))
    assert [event.data["to"] for event in events] == ["attention(done)"]
    assert track.run.status.since == at(0)


def test_nothing_was_ever_heard_and_nothing_comes_of_it() -> None:
    assert weigh(Track(run=a_run()), at(5)) is None
    assert weigh(Track(run=a_shell()), at(5)) is None
    assert due(Track(run=a_shell())) is None
    assert due(Track(run=a_run())) == at(60)


def test_a_run_knows_where_it_is() -> None:
    assert PLACE.target == "work:1.0"
    assert Status(state=ATTENTION, reason=DONE, since=at(0)).waits
    assert not Status(state=ATTENTION, reason=STALLED, since=at(0)).waits


def test_no_secret_in_a_title_is_kept_or_told() -> None:
    key = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    track, events = advance(Track(run=a_run()), sighted(f"deploy with {key}"), at(1))
    assert key not in track.run.title
    assert [event.kind for event in events] == [EventKind.TITLE_CHANGED]
    assert key not in str(events[0].data)
    again, events = advance(track, sighted(f"deploy with {key}"), at(2))
    assert (again.run.title, events) == (track.run.title, ())
