from __future__ import annotations

import msgspec
import pytest
from msgspec import structs

from perdure.live.advance import Track, advance, due
from perdure.live.lifetimes import AT_START, begun, remembered, returned
from perdure.live.recognise import Found
from perdure.model.event import EventKind
from perdure.model.identity import AgentDetails, Identity
from perdure.model.observation import Ended, Ending, Identified, Watched
from perdure.model.run import Confidence, Health, Place, Program, Reason, Run, RunState
from perdure.model.server import ServerProcess
from perdure.model.thought import Thought
from tests.builders import a_server, an_identity, at
from tests.unit.live.timeline import AGENT, Player, hook, in_state, printed, screen, sighted, words

FOUND = Found(
    server=a_server("other"),
    process=ServerProcess(pid=900, started_at=at(50), version="3.5"),
    pane="%42",
    place=Place(session="back", window=3, pane=1, window_name="main"),
    first=Program(pid=9000, start_ticks=9100),
    program=Program(pid=9001, start_ticks=9101),
    identity=an_identity(),
)
SHELL = structs.replace(FOUND, program=None, identity=None)


def test_a_new_run_says_where_it_is_and_why_it_is_there() -> None:
    track, events = begun("r7", FOUND, at(60), AT_START)
    [event] = events
    assert (event.kind, event.run, event.server, event.at) == (
        EventKind.RUN_CREATED,
        "r7",
        FOUND.server.key,
        at(60),
    )
    assert event.data == {
        "target": "back:3.1",
        "agent": "some",
        "conversation": "c0ffee",
        "reason": "startup_discovery",
    }
    run = track.run
    assert (run.pane, run.process, run.place) == (FOUND.pane, FOUND.process, FOUND.place)
    assert (run.first, run.program, run.identity) == (FOUND.first, FOUND.program, FOUND.identity)
    assert run.created_at == at(60)


def test_of_a_new_run_nothing_was_observed() -> None:
    """A placeholder is unobserved, and says so."""
    track, [event] = begun("r7", SHELL, at(60), AT_START)
    status = track.run.status
    assert (status.state, status.cause, status.observed_at, status.since) == (
        RunState.UNKNOWN,
        "initial",
        None,
        at(60),
    )
    assert status.confidence is Confidence.LOW
    assert (event.data["agent"], event.data["conversation"]) == (None, None)
    assert due(track) is None


def test_what_is_said_of_a_new_run_right_away_is_no_news() -> None:
    track, _ = begun("r7", FOUND, at(60), AT_START)
    after, events = advance(track, Identified(identity=FOUND.identity, program=FOUND.program), at(60))
    assert (after.run, events) == (track.run, ())


def an_end() -> Track:
    """A run that has ended with its server, and of which much was known."""
    thought = Thought(at=at(1), text="mending the parser")
    run = in_state(RunState.BUSY, thought=thought, skill="review", details=AgentDetails(model="m"), theme="/home/dev")
    return advance(Track(run=run), Ended(what=Ending.SERVER, exit_signal=9), at(10))[0]


def test_a_run_that_returns_is_the_one_it_was() -> None:
    """Whoever is revived keeps its id; it is healthy, not stale, and what it does was not observed."""
    ended = an_end().run
    track, events = returned(ended, FOUND, at(60))
    run = track.run
    for name in ("id", "created_at", "identity", "skill", "details", "theme"):
        assert getattr(run, name) == getattr(ended, name)
    assert (run.server, run.process, run.pane, run.place) == (FOUND.server, FOUND.process, FOUND.pane, FOUND.place)
    assert (run.first, run.program) == (FOUND.first, FOUND.program)
    assert (run.ended_at, run.exit_status, run.exit_signal) == (None, None, None)
    assert (run.health, run.stale, run.is_over) == (Health.HEALTHY, False, False)
    status = run.status
    assert (status.word, status.cause, status.observed_at, status.since) == ("unknown", "returned", None, at(60))
    assert run.previous == ended.status
    [event] = events
    assert (event.kind, event.run) == (EventKind.RUN_RETURNED, "r1")
    assert event.data == {
        "target": "back:3.1",
        "agent": "some",
        "conversation": "c0ffee",
        "from": "exited",
        "to": "unknown",
    }


def test_a_run_that_returns_goes_on_as_any_other() -> None:
    track, _ = returned(an_end().run, FOUND, at(60))
    story = [(61.0, hook(RunState.BUSY)), (62.0, hook(RunState.IDLE)), (63.0, Ended(what=Ending.PANE))]
    assert words(story, track.run) == ["busy", "attention(done)", "exited"]


def test_a_turn_that_the_end_of_its_server_cut_off_is_not_done() -> None:
    """It was busy when tmux was started anew, and is at its prompt now: that is not what it was asked for."""
    track, _ = returned(in_state(RunState.BUSY), FOUND, at(60))
    assert words([(61, screen(RunState.IDLE))], track.run, until=90) == ["idle"]


def test_a_shell_that_returns_remembers_who_was_in_it() -> None:
    track, [event] = returned(an_end().run, SHELL, at(60))
    assert track.run.program is None
    assert track.run.identity == an_identity()
    assert event.data["conversation"] is None


def test_a_return_is_never_dated_before_the_end() -> None:
    track, _ = returned(an_end().run, FOUND, at(-9000))
    assert track.run.status.since == at(10)


@pytest.mark.parametrize("state", [RunState.BUSY, RunState.IDLE, RunState.EXITED])
def test_a_run_that_is_only_remembered_says_so(state: RunState) -> None:
    """Whoever was there when perdure last ran is stale, without clients, and unobserved until it is seen."""
    run = in_state(state, attached=2)
    before = remembered(run)
    assert (before.stale, before.health, before.attached) == (True, Health.DISCONNECTED, 0)
    assert before.status == structs.replace(run.status, observed_at=None)
    assert remembered(before) == before


def test_a_run_that_is_over_is_not_waited_for() -> None:
    ended = an_end().run
    assert remembered(ended) == ended


def test_a_remembered_run_that_is_seen_as_it_was_becomes_observed_without_a_word() -> None:
    player = Player(remembered(in_state(RunState.IDLE, since=-500)))
    player.tell(1, sighted()).tell(2, screen(RunState.IDLE))
    assert player.events == []
    assert (player.run.stale, player.run.health) == (False, Health.HEALTHY)
    assert (player.run.status.since, player.run.status.observed_at) == (at(-500), at(2))


def test_a_remembered_run_that_is_not_there_any_more_was_missing_at_the_start() -> None:
    """Stale ones without a match are exited and deleted, because they were missing at the start."""
    player = Player(remembered(in_state(RunState.IDLE))).tell(1, Ended(what=Ending.MISSING))
    assert player.events[-1].data["reason"] == "startup_missing_tmux"
    assert (player.run.is_over, player.run.stale) == (True, False)


@pytest.mark.parametrize("fell", [True, False])
def test_what_was_done_and_not_seen_is_still_to_be_seen_when_it_is_back(fell: bool) -> None:
    run = Player().tell(1, hook(RunState.BUSY)).tell(5, hook(RunState.IDLE)).run
    if fell:
        run = advance(Track(run=run), Ended(what=Ending.SERVER), at(10))[0].run
    back, _ = returned(run, FOUND, at(60))
    for watched, word in ((False, "attention(done)"), (True, "idle")):
        player = Player(back.run)
        player.track = structs.replace(back, watched=watched)
        player.tell(62, screen(RunState.IDLE))
        player.pass_until(70)
        assert player.run.status.word == word


DONE = Player().tell(1, hook(RunState.BUSY)).tell(5, hook(RunState.IDLE)).run
AGAIN = Program(pid=9500, start_ticks=9501)


def again(run: Run) -> Player:
    """The next daemon, which knows of a run what was stored."""
    return Player(remembered(msgspec.json.decode(msgspec.json.encode(run), type=Run)))


def brought_back(run: Run, identity: Identity | None, *, restarts: bool) -> Player:
    """A run whose server has died, whose pane is back with a shell, and in which an agent is started then."""
    over = advance(Track(run=run), Ended(what=Ending.SERVER), at(10))[0].run
    back, _ = returned(over, SHELL, at(60))
    player = again(back.run) if restarts else Player(back.run)
    player.tell(61, sighted()).tell(62, Identified(identity=identity, program=AGAIN))
    return player.tell(63, screen(RunState.IDLE)).pass_until(80)


@pytest.mark.parametrize("restarts", [True, False])
def test_what_was_done_is_to_be_seen_when_its_conversation_is_taken_up_in_a_shell_that_is_back(restarts: bool) -> None:
    assert brought_back(DONE, DONE.identity, restarts=restarts).run.status.word == "attention(done)"


def test_another_conversation_in_its_place_has_done_nothing() -> None:
    assert brought_back(DONE, an_identity(conversation="beef"), restarts=False).run.status.word == "idle"
    assert brought_back(DONE, an_identity(certain=False), restarts=False).run.status.word == "idle"


def test_what_was_seen_is_seen_for_good() -> None:
    seen = Player(DONE).tell(7, Watched()).run
    assert brought_back(seen, seen.identity, restarts=True).run.status.word == "idle"
    assert again(seen).tell(63, screen(RunState.IDLE)).pass_until(80).run.status.word == "idle"


def test_what_was_done_is_to_be_seen_however_often_perdure_begins_anew() -> None:
    player = again(again(DONE).run).tell(9, sighted()).tell(10, screen(RunState.IDLE)).pass_until(90)
    assert player.run.status.word == "attention(done)"
    assert player.moments == []


@pytest.mark.parametrize("restarts", [True, False])
def test_what_was_done_is_to_be_seen_though_nobody_could_read_it_for_a_while(restarts: bool) -> None:
    """Nor does a login or a silence in between make it seen."""
    for between in ([screen(None)], [screen(RunState.ATTENTION, Reason.LOGIN)]):
        player = Player(DONE)
        for told in between:
            player.tell(20, told)
        player.pass_until(500)
        assert player.run.status.reason in (Reason.STALLED, Reason.LOGIN)
        player = again(player.run) if restarts else player
        player.tell(501, printed()).tell(502, screen(RunState.IDLE)).pass_until(520)
        assert player.run.status.word == "attention(done)"


def test_whoever_looks_at_it_while_it_is_away_has_seen_it() -> None:
    player = Player(DONE).tell(20, screen(None)).pass_until(40)
    player.tell(41, sighted(watched=True)).tell(42, sighted(watched=False)).tell(43, screen(RunState.IDLE)).pass_until(
        60
    )
    assert player.run.status.word == "idle"


def replaced(identity: Identity, *, first_gone: bool) -> Player:
    """A pane in which something was done and not seen, and which another process has from then on."""
    player = Player(DONE)
    if first_gone:
        player.tell(19, Ended(what=Ending.PROGRAM))
    player.tell(20, Identified(identity=identity, program=AGAIN))
    return player.tell(21, screen(RunState.IDLE)).pass_until(40)


@pytest.mark.parametrize("first_gone", [True, False])
def test_an_agent_that_takes_the_place_of_one_that_is_done_has_done_nothing(first_gone: bool) -> None:
    """Whether or not the end of the one before was noticed before the other was."""
    fresh = [
        an_identity(conversation="beef", prompted=False),
        an_identity(conversation="beef"),
        an_identity(conversation=None, evidence=None, certain=False),
        an_identity(certain=False),
        an_identity(agent="other"),
        an_identity(prompted=False),
    ]
    for identity in fresh:
        player = replaced(identity, first_gone=first_gone)
        assert (player.run.status.word, player.run.unseen) == ("idle", False), identity


@pytest.mark.parametrize("first_gone", [True, False])
def test_what_was_done_is_to_be_seen_when_another_process_takes_the_conversation_up(first_gone: bool) -> None:
    assert replaced(an_identity(), first_gone=first_gone).run.status.word == "attention(done)"


def test_a_conversation_that_was_never_used_is_not_done_for_the_one_before_it() -> None:
    """The same process has gone on to it: what was done before is behind it."""
    player = Player(DONE).tell(20, Identified(identity=an_identity(conversation="beef", prompted=False), program=AGENT))
    assert (player.run.status.word, player.run.unseen) == ("idle", False)
    assert player.moments[-1].cause == "conversation"
    used = Player(DONE).tell(20, Identified(identity=an_identity(conversation="beef", prompted=True), program=AGENT))
    assert used.run.status.word == "attention(done)"


def test_what_was_done_stays_to_be_seen_while_less_is_known_of_the_same_process() -> None:
    for identity in (an_identity(certain=False), an_identity(conversation=None, evidence=None, certain=False)):
        player = Player(DONE).tell(20, screen(None)).pass_until(40)
        player.tell(41, Identified(identity=identity, program=AGENT)).tell(42, screen(RunState.IDLE)).pass_until(60)
        assert player.run.status.word == "attention(done)", identity
