"""A story of observations, told second by second, and what a run makes of it.

    play([(0, busy()), (10, idle())]) == [(0, "busy", "screen:busy"), (11.5, "attention(done)", "screen:idle")]

Time passes as it does for the daemon: whenever a run is due, it is looked at, and nobody looks in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from msgspec import structs

from perdure.live.advance import Track, advance, due
from perdure.model.event import Event, EventKind
from perdure.model.observation import Observation, Passed, Reading, Sighted, Source
from perdure.model.run import Confidence, Place, Program, Reason, Run, RunState, Status
from perdure.model.server import ServerProcess
from tests.builders import NOON, a_server, an_identity, at

#: An observation, or what makes one of the moment it is told at.
Heard = Observation | Callable[[datetime], Observation]
#: What is told when, in seconds after noon.
Story = Sequence[tuple[float, Heard]]
AGENT = Program(pid=5000, start_ticks=6000)
PLACE = Place(session="work", window=1, pane=0, window_name="main")

#: What turns in titles.
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏✳✶✻·◐◓"


class Moment(NamedTuple):
    """A run has come into a state."""

    seconds: float
    word: str
    cause: str


def a_run(**changes: object) -> Run:
    """An agent that was started at noon, of which nothing is known yet."""
    run = Run(
        id="r1",
        server=a_server(),
        place=PLACE,
        pane="%1",
        status=Status(since=NOON),
        created_at=NOON,
        process=ServerProcess(pid=300, started_at=at(-3600), version="3.4"),
        first=Program(pid=4000, start_ticks=5000),
        program=AGENT,
        identity=an_identity(),
    )
    return structs.replace(run, **changes)


def a_shell(**changes: object) -> Run:
    """A pane without an agent."""
    return a_run(**{"program": None, "identity": None, **changes})


def in_state(state: RunState, reason: Reason | None = None, *, since: float = 0, **changes: object) -> Run:
    """An agent that was seen in a state."""
    status = Status(state=state, reason=reason, cause="before", since=at(since), observed_at=at(since))
    return a_run(status=structs.replace(status, confidence=Confidence.HIGH), **changes)


# What may be told of a run; the time is that at which it is told, unless another is named.


def says(
    source: Source,
    state: RunState | None,
    reason: Reason | None = None,
    *,
    rule: str = "",
    confidence: Confidence = Confidence.HIGH,
    frozen: bool = False,
    of: float | None = None,
) -> Heard:
    """One source says something, of that moment or of another (`of`, in seconds)."""

    def told(now: datetime) -> Reading:
        dated = now if of is None else at(of)
        word = rule or (str(state) if state else "")
        return Reading(
            source=source, at=dated, state=state, reason=reason, rule=word, confidence=confidence, frozen=frozen
        )

    return told


def screen(
    state: RunState | None, reason: Reason | None = None, *, rule: str = "", confidence: Confidence = Confidence.HIGH
) -> Heard:
    """The screen was read; None: nobody can tell what it shows."""
    return says(Source.SCREEN, state, reason, rule=rule, confidence=confidence)


def viewer() -> Heard:
    """The screen was read, and something covers the agent."""
    return says(Source.SCREEN, None, rule="viewer", frozen=True)


def hook(state: RunState, reason: Reason | None = None, *, of: float | None = None) -> Heard:
    """A hook was called."""
    return says(Source.HOOK, state, reason, of=of)


def registry(
    state: RunState,
    reason: Reason | None = None,
    *,
    of: float | None = None,
    confidence: Confidence = Confidence.HIGH,
) -> Heard:
    """The agent's registry was read; of less than high confidence, it does not tell who is asked."""
    return says(Source.REGISTRY, state, reason, of=of, confidence=confidence)


def prompt(*, is_there: bool) -> Heard:
    """The shell is at its prompt, or is not."""
    return says(Source.PROCESS, RunState.IDLE if is_there else RunState.BUSY)


def printed(title: str = "", *, watched: bool | None = None) -> Heard:
    """Something was printed in the pane."""
    return lambda now: Sighted(place=PLACE, title=title, watched=watched, output_at=now)


def sighted(title: str = "", *, watched: bool | None = None, place: Place = PLACE) -> Sighted:
    """The pane was looked at; nothing was printed."""
    return Sighted(place=place, title=title, watched=watched)


def heard(told: Heard, now: datetime) -> Observation:
    """What is observed when this is told now."""
    return told(now) if callable(told) else told


class Player:
    """A run in time."""

    def __init__(self, run: Run | None = None) -> None:
        self.track = Track(run=run or a_run())
        self.events: list[Event] = []

    @property
    def run(self) -> Run:
        return self.track.run

    @property
    def moments(self) -> list[Moment]:
        """Every state it came into."""
        return [
            Moment(round((event.at - NOON).total_seconds(), 6), event.data["to"], event.data["cause"])
            for event in self.events
            if event.kind is EventKind.STATE_CHANGED
        ]

    def kinds(self) -> list[EventKind]:
        """What has happened, in order."""
        return [event.kind for event in self.events]

    def tell(self, seconds: float, told: Heard) -> Player:
        """Let time pass until then, and something be observed."""
        self.pass_until(seconds)
        self._advance(heard(told, at(seconds)), at(seconds))
        return self

    def pass_until(self, seconds: float) -> Player:
        """Let time pass, and nothing else."""
        while (next_at := due(self.track)) is not None and next_at <= at(seconds):
            before = (self.track.pending, self.run.status)
            self._advance(Passed(), next_at)
            assert (self.track.pending, self.run.status) != before, "whoever is woken has something to do"
        return self

    def _advance(self, seen: Observation, now: datetime) -> None:
        self.track, events = advance(self.track, seen, now)
        self.events += events


def play(story: Story, run: Run | None = None, *, until: float | None = None) -> list[Moment]:
    """Return every state a run comes into while a story is told, and until some seconds later, when it is said."""
    player = Player(run)
    for seconds, told in story:
        player.tell(seconds, told)
    if until is not None:
        player.pass_until(until)
    return player.moments


def words(story: Story, run: Run | None = None, *, until: float | None = None) -> list[str]:
    """Return only the words of `play`."""
    return [moment.word for moment in play(story, run, until=until)]
