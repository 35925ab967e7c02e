from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, structs

from perdure.model.identity import Evidence
from perdure.model.plan import Action, Outcome, Result, Step
from perdure.model.process import Process
from perdure.model.screen import ScreenReading, State
from perdure.restore.judge import Seen
from perdure.restore.starting import INTERVAL, PATIENCE, Candidate, Stage, Starter, in_order
from tests.builders import a_process, an_identity, at

LIMIT = 60.0
PRESENT = (Evidence.REGISTRY,)
IDLE = ScreenReading(rule="idle", state=State.IDLE)
LOGIN = ScreenReading(rule="login", state=State.ATTENTION, reason="login")


class Life(Struct, frozen=True, kw_only=True):
    """What becomes of one agent once it is let go: after so many seconds, this is to be seen."""

    seconds: float = 1.0
    seen: Seen = Seen(identity=an_identity())
    #: What its screen says, from the same moment on.
    reading: ScreenReading | None = None
    #: Why it must not start.
    refusal: str = ""
    #: Until when the process that was in its conversation before lives.
    before: float | None = None


VERIFIED = Life()
ANOTHER = Life(seen=Seen(identity=an_identity(conversation="another")))
ENDED = Life(seen=Seen(status=1))
GONE = Life(seen=Seen(there=False))
ASKS = Life(reading=LOGIN)
NEVER = Life(seen=Seen())
DOUBTED = Life(seen=Seen(identity=an_identity(evidence=Evidence.ARGV)))
UP = structs.replace(DOUBTED, reading=IDLE)
REFUSED = Life(refusal="its transcript could not be copied")
HELD = Life(before=PATIENCE * 100)
LINGERING = Life(before=5.0)


class FakeStage(Stage):
    """A machine with a clock of its own, on which agents live as the test wants them to."""

    def __init__(self, lives: Mapping[str, Life], *, most: int, pressure: Callable[[float], bool]) -> None:
        self._lives = lives
        self._most = most
        self._pressure = pressure
        self._now = 1000.0
        #: When agents were let go, by pane, in that order.
        self.released: dict[str, float] = {}
        self.cancelled: dict[str, str] = {}
        #: Those of them that wait for Enter.
        self.asking: set[str] = set()
        self.settled: dict[str, Outcome] = {}
        self.said: list[str] = []
        #: Moments in which the server does not answer: the stage shows what it saw last.
        self.deaf: tuple[float, float] = (0.0, 0.0)
        self._shown: dict[str, Seen] = {}

    @property
    def elapsed(self) -> float:
        return self._now - 1000.0

    def is_starting(self, pane: str) -> bool:
        """Say whether an agent was let go, and nobody could know yet what came of it."""
        life = self._lives[pane]
        identity = life.seen.identity
        is_told = life.reading is not None or (life.seen != Seen() and (not identity or identity.evidence in PRESENT))
        return self.elapsed < self.released[pane] + (min(life.seconds, LIMIT) if is_told else LIMIT)

    def look(self, panes: Collection[str]) -> Mapping[str, Seen]:
        assert panes
        if not self.deaf[0] <= self.elapsed < self.deaf[1]:
            for pane in panes:
                life = self._lives[pane]
                is_over = pane in self.released and self.elapsed >= self.released[pane] + life.seconds
                self._shown[pane] = structs.replace(life.seen, status=None) if is_over else Seen()
        return {pane: self._shown.get(pane, Seen()) for pane in panes}

    def statuses(self) -> Mapping[int, int]:
        ended = {}
        for pane, since in self.released.items():
            life = self._lives[pane]
            if life.seen.status is not None and self.elapsed >= since + life.seconds:
                ended[number(pane)] = life.seen.status
        return ended

    def screen(self, candidate: Candidate, seen: Seen) -> Seen:
        return structs.replace(seen, screen=("one", " ", "two  "), reading=self._lives[candidate.pane].reading)

    def release(self, candidate: Candidate) -> str:
        pane = candidate.pane
        assert pane not in self.released, "started twice"
        assert pane not in self.settled
        assert not self._pressure(self.elapsed), "started under pressure"
        assert candidate.before is None or not self.is_alive(candidate.before), "two in one conversation"
        if self._lives[pane].refusal:
            return self._lives[pane].refusal
        starting = [each for each in self.released if self.is_starting(each)]
        assert len(starting) < self._most, "too many at once"
        self.released[pane] = self.elapsed
        return ""

    def cancel(self, candidate: Candidate, why: str, *, until: Process | None = None) -> None:
        assert candidate.pane not in self.released
        assert candidate.pane not in self.cancelled
        self.cancelled[candidate.pane] = why
        if until is not None:
            assert self.is_alive(until)
            self.asking.add(candidate.pane)

    def is_alive(self, process: Process) -> bool:
        until = self._lives[f"%{process.pid}"].before
        return until is not None and self.elapsed < until

    def pressure(self) -> bool:
        return self._pressure(self.elapsed)

    def say(self, sentence: str) -> None:
        self.said.append(sentence)

    def clock(self) -> float:
        return self._now

    def wait(self, seconds: float) -> None:
        assert seconds > 0
        self._now += seconds
        assert self.elapsed < 1e5, "it never ends"

    def report(self, outcome: Outcome) -> None:
        pane = outcome.step.pane
        assert pane not in self.settled, "two outcomes"
        self.settled[pane] = outcome


def number(pane: str) -> int:
    return int(pane.removeprefix("%"))


def a_candidate(n: int, *, active_at: datetime | None = None, life: Life = VERIFIED) -> Candidate:
    step = Step(
        n=n,
        pane=f"%{n}",
        target=f"work:0.{n}",
        action=Action.RESUME,
        agent="some",
        conversation="c0ffee",
        active_at=active_at,
    )
    return Candidate(step=step, pane=f"%{n}", before=a_process(n) if life.before is not None else None)


def calm(seconds: float) -> bool:
    return False


class Ran(Struct, frozen=True, kw_only=True):
    stage: FakeStage
    outcomes: Mapping[str, Outcome]

    @property
    def results(self) -> list[Result]:
        return [self.outcomes[pane].result for pane in sorted(self.outcomes, key=number)]


def run(
    lives: Sequence[Life],
    *,
    most: int = 2,
    running: Sequence[Life] = (),
    pressure: Callable[[float], bool] = calm,
    deaf: tuple[float, float] = (0.0, 0.0),
    active: Sequence[datetime | None] = (),
) -> Ran:
    """Start agents with these lives as %1, %2 and so on; those of `running`, numbered on, were let go before."""
    every = {f"%{n}": life for n, life in enumerate([*lives, *running], 1)}
    stage = FakeStage(every, most=most, pressure=pressure)
    stage.deaf = deaf
    moments = [*active, *[None] * len(every)]
    candidates = [a_candidate(n, life=life, active_at=moments[n - 1]) for n, life in enumerate(every.values(), 1)]
    fresh, begun = candidates[: len(lives)], candidates[len(lives) :]
    for each in begun:
        stage.released[each.pane] = 0.0
    outcomes = Starter(stage, most=most, limit=LIMIT, report=stage.report).start(fresh, begun)
    assert outcomes == stage.settled
    assert outcomes.keys() == every.keys()
    return Ran(stage=stage, outcomes=outcomes)


def test_all_are_started_a_few_at_a_time() -> None:
    """The stage itself fails when more than `most` are starting."""
    ran = run([VERIFIED] * 9, most=2)

    assert ran.results == [Result.VERIFIED] * 9
    moments = sorted(ran.stage.released.values())
    assert moments[:3] == [0.0, 0.0, pytest.approx(1.2)]


def test_the_newest_activity_comes_first() -> None:
    ran = run([VERIFIED] * 5, most=1, active=[at(3), None, at(9), at(-1), None])

    assert list(ran.stage.released) == ["%3", "%1", "%4", "%2", "%5"]


def test_where_no_activity_is_known_the_snapshot_orders() -> None:
    some = [a_candidate(n, active_at=None) for n in (3, 1, 2)]

    assert in_order(some) == some


@pytest.mark.parametrize(
    ("life", "result", "why"),
    [
        (VERIFIED, Result.VERIFIED, "registry"),
        (ANOTHER, Result.FAILED, "another"),
        (ENDED, Result.FAILED, "status 1"),
        (GONE, Result.FAILED, "gone"),
        (ASKS, Result.UNVERIFIED, "log in"),
        (NEVER, Result.FAILED, "in time"),
        (DOUBTED, Result.UNVERIFIED, "only its argv"),
        (UP, Result.UNVERIFIED, "only its argv"),
        (REFUSED, Result.FAILED, "could not be copied"),
        (HELD, Result.SKIPPED, "still runs as process 1"),
    ],
)
def test_every_end_of_a_start_makes_room_for_the_next(life: Life, result: Result, why: str) -> None:
    ran = run([life, VERIFIED, VERIFIED], most=1)

    assert ran.results == [result, Result.VERIFIED, Result.VERIFIED]
    assert why in ran.outcomes["%1"].why


def test_one_that_never_comes_up_is_late_and_shows_its_screen() -> None:
    ran = run([NEVER])

    assert ran.outcomes["%1"].screen == ("one", "two")
    assert ran.stage.elapsed == pytest.approx(LIMIT, abs=INTERVAL)


def test_one_that_is_up_makes_room_before_its_conversation_is_known() -> None:
    ran = run([UP, UP, VERIFIED], most=1)

    assert max(ran.stage.released.values()) < 2 * (1 + 2 * INTERVAL)
    assert ran.results == [Result.UNVERIFIED, Result.UNVERIFIED, Result.VERIFIED]


def test_a_pane_that_is_gone_has_no_id() -> None:
    assert run([GONE]).outcomes["%1"].pane is None
    assert run([VERIFIED]).outcomes["%1"].pane == "%1"


def test_nothing_starts_under_pressure_and_the_rest_follows_when_it_ends() -> None:
    """The stage itself fails when anything is let go under pressure."""
    ran = run([VERIFIED] * 6, most=2, pressure=lambda seconds: 1 <= seconds < 50)

    moments = sorted(ran.stage.released.values())
    assert moments[:2] == [0.0, 0.0]
    assert all(50 <= moment < 55 for moment in moments[2:])
    assert ran.results == [Result.VERIFIED] * 6
    # Whoever waits is told why, and once.
    assert ran.stage.said == [
        "memory is short, so 4 more agents wait until it is not",
        "memory is not short any more, so those that waited are started",
    ]


def test_those_that_are_starting_are_watched_under_pressure() -> None:
    ran = run([VERIFIED, VERIFIED], most=1, pressure=lambda seconds: 0.1 < seconds < 500)

    assert ran.results == [Result.VERIFIED, Result.VERIFIED]
    assert sorted(ran.stage.released.values()) == [0.0, pytest.approx(500, abs=INTERVAL)]


def test_an_old_process_is_waited_for() -> None:
    """The stage itself fails when the agent is let go while its old process lives."""
    ran = run([LINGERING, VERIFIED, VERIFIED], most=2)

    assert ran.results == [Result.VERIFIED] * 3
    assert ran.stage.released["%1"] == pytest.approx(5, abs=INTERVAL)
    assert max(ran.stage.released["%2"], ran.stage.released["%3"]) == 0.0


def test_an_old_process_that_stays_is_taken_as_living() -> None:
    ran = run([HELD])

    assert ran.results == [Result.SKIPPED]
    assert not ran.stage.released
    why = "some still runs as process 1, outside tmux; Enter in the pane resumes it when it has ended"
    assert ran.stage.cancelled == {"%1": why}
    assert ran.outcomes["%1"].why == why
    assert ran.stage.asking == {"%1"}, "the next snapshot knows its conversation"
    assert ran.stage.elapsed == pytest.approx(PATIENCE, abs=INTERVAL)


def test_one_that_must_not_start_leaves_a_shell_that_says_so() -> None:
    ran = run([REFUSED])

    assert ran.stage.cancelled == {"%1": REFUSED.refusal}
    assert not ran.stage.asking
    assert ran.outcomes["%1"].pane == "%1"


def test_a_server_that_does_not_answer_for_a_while_costs_only_time() -> None:
    ran = run([VERIFIED] * 4, most=2, deaf=(0.5, 30))

    assert ran.results == [Result.VERIFIED] * 4
    assert ran.stage.elapsed > 30


def test_those_that_were_started_before_count_and_are_not_started_again() -> None:
    ran = run([VERIFIED, VERIFIED], most=2, running=[VERIFIED, ENDED, NEVER])

    assert ran.results == [Result.VERIFIED, Result.VERIFIED, Result.VERIFIED, Result.FAILED, Result.FAILED]
    assert ran.stage.released["%1"] > 0


def test_nothing_to_do_takes_no_time() -> None:
    assert run([]).stage.elapsed == 0


LIVES = st.builds(
    structs.replace,
    st.sampled_from([VERIFIED, ANOTHER, ENDED, GONE, ASKS, NEVER, DOUBTED, UP, REFUSED]),
    seconds=st.floats(0, 2 * LIMIT),
    before=st.none() | st.floats(0, 2 * PATIENCE),
)
MOMENTS = st.floats(0, 3 * LIMIT)


@given(
    lives=st.lists(LIVES, max_size=12),
    running=st.lists(LIVES, max_size=3),
    most=st.integers(1, 5),
    pressed=st.lists(st.tuples(MOMENTS, MOMENTS), max_size=3),
    deaf=st.tuples(MOMENTS, MOMENTS),
    active=st.lists(st.none() | st.datetimes(), max_size=12),
)
def test_whatever_happens_the_cap_holds_and_everyone_gets_one_outcome(
    lives: list[Life],
    running: list[Life],
    most: int,
    pressed: list[tuple[float, float]],
    deaf: tuple[float, float],
    active: list[datetime | None],
) -> None:
    """The stage checks the cap, the pressure, old processes and single outcomes as it goes."""
    ran = run(
        lives,
        running=[structs.replace(life, refusal="", before=None) for life in running],
        most=most,
        pressure=lambda seconds: any(begin <= seconds < end for begin, end in pressed),
        deaf=deaf,
        active=[moment.replace(tzinfo=at(0).tzinfo) if moment else None for moment in active],
    )

    for pane, outcome in ran.outcomes.items():
        is_started = pane in ran.stage.released
        assert is_started != (pane in ran.stage.cancelled)
        assert is_started or outcome.result in (Result.SKIPPED, Result.FAILED)
