"""What everyone says of a run, weighed at one moment. Pure.

Several sources speak of the same run, and none is right every time. A registry and hooks know most and can go quiet; a
screen is always of this moment and shows best who is blocked; a viewer on it shows nothing. So the latest word of each is
kept, `weigh` decides between them, and every edge has its own `patience`: what flickers never becomes a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.model.observation import STOPPED, Reading, Source
from perdure.model.run import Confidence, Program, Reason, Run, RunState, Status

#: After this long a screen that says another thing is believed against a registry or a hook, and a run that was told
#: something and shows no sign of it is taken for what it was.
QUIET = timedelta(seconds=3)
#: The same for a form, which is either on the screen or not there: asking and being allowed may be a moment apart.
ASKED = timedelta(seconds=0.7)

#: What a run is unknown by that was looked at.
UNREAD = "screen:unread"
#: What an agent is unknown by that was stopped: it does nothing and hears nothing until somebody lets it go on.
HALTED = f"{Source.PROCESS}:{STOPPED}"
#: Low to high.
RANK = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}
#: Those that were told what the agent does, instead of inferring it.
TELLERS = (Source.REGISTRY, Source.HOOK)
#: What a form on the screen asks for; no other source knows better whether it is still there.
_FORMS = frozenset({Reason.PERMISSION, Reason.QUESTION, Reason.LOGIN, Reason.LIMIT})


class Verdict(Struct, frozen=True, kw_only=True):
    """What the sources come to."""

    state: RunState
    reason: Reason | None = None
    cause: str = ""
    confidence: Confidence = Confidence.LOW
    #: Whether it was inferred from what is shown, which flickers, and not told.
    shown: bool = False
    #: Whether it was told, and is shown as well.
    agreed: bool = False


class Pending(Struct, frozen=True, kw_only=True):
    """A verdict that has to hold for a while before it counts."""

    verdict: Verdict
    since: datetime


class Track(Struct, frozen=True, kw_only=True):
    """A run, and what was last heard of it from everyone. Only the run is kept."""

    run: Run
    #: When it was first advanced: nobody here knows what was seen before.
    begun_at: datetime | None = None
    #: When it was last advanced: what time brings before then, it has brought.
    at: datetime | None = None
    latest: Mapping[Source, Reading] = {}
    pending: Pending | None = None
    output_at: datetime | None = None
    #: When somebody last said another thing than before; a screen that is read again and says the same says nothing.
    news_at: datetime | None = None
    #: Whether somebody has the pane before their eyes at this moment, and when somebody last had.
    watched: bool = False
    watched_at: datetime | None = None
    #: When the run was told something that it has not shown a sign of yet.
    told_at: datetime | None = None
    #: What has started the agent that is there, or was there last: it ends a moment later, and is no other one.
    launchers: tuple[Program, ...] = ()


def weigh(track: Track, now: datetime) -> Verdict | None:
    """Return what the latest readings come to, None when they say nothing that may change the run."""
    if track.run.program is None:
        # Words of an agent that has ended come late, and say nothing about the shell.
        process = _counted(track, Source.PROCESS, now)
        return None if process is None or process.state is None else _verdict(process)
    if is_halted(track):
        # What its files say is of before, and what the screen shows is another's.
        return _verdict(track.latest[Source.PROCESS])
    told, screen = _told(track, now), _counted(track, Source.SCREEN, now)
    if screen is None:
        return None if told is None else _verdict(told)
    if screen.frozen:
        # What is behind a viewer only those can tell who do not look at the screen.
        return _verdict(told) if told is not None and told.at > screen.at else None
    if told is None or screen.state is None:
        unread = Verdict(state=RunState.UNKNOWN, cause=UNREAD, shown=True)
        said = screen if told is None or _is_past(told, track.run.status) else told
        return unread if said.state is None else _verdict(said)
    if _agree(screen, told):
        # What was told before the present state has not ended it, though it says the same as the screen does now.
        is_old = told.at < track.run.status.since
        better = screen if is_old or RANK[screen.confidence] > RANK[told.confidence] else told
        return Verdict(
            state=told.state or screen.state,
            reason=told.reason,
            cause=better.cause,
            confidence=better.confidence,
            agreed=True,
        )
    return _verdict(screen if _overrules(track, screen, told, now) else told)


def patience(status: Status, verdict: Verdict) -> timedelta:
    """Return how long a verdict has to hold before a run in this status takes it on."""
    if verdict.cause == HALTED:
        # Whoever is traced is stopped now and then.
        return timedelta(seconds=0.5)
    if verdict.state is RunState.UNKNOWN:
        return timedelta(seconds=5)
    if not verdict.shown:
        # Where everything is allowed anyway, nobody has to be called.
        asks = verdict.reason is Reason.PERMISSION and not verdict.agreed
        return ASKED if asks else timedelta()
    if status.state is RunState.BUSY and verdict.state is RunState.IDLE:
        return timedelta(seconds=1.5)
    if verdict.state is RunState.ERROR:
        return timedelta(seconds=1)
    if verdict.state is RunState.ATTENTION and status.state is not RunState.UNKNOWN:
        return timedelta(seconds=0.4)
    if status.state is RunState.ATTENTION and verdict.state is RunState.IDLE:
        return timedelta(seconds=0.5)
    return timedelta()


def moments(track: Track) -> list[datetime]:
    """Return when weighing the same readings again may come to something else, in no order."""
    found = [] if track.told_at is None else [track.told_at + QUIET]
    screen = track.latest.get(Source.SCREEN)
    if screen is not None and screen.state is not None and _stands(track, screen):
        told = [track.latest[source] for source in TELLERS if source in track.latest]
        over = (reading.at + _trusted_for(reading) for reading in told if not _agree(screen, reading))
        # One that was over when the screen was read makes no difference any more.
        found += [at for at in over if at > screen.at]
    return found


def is_hidden(track: Track) -> bool:
    """Return whether a viewer covers the agent."""
    screen = track.latest.get(Source.SCREEN)
    return screen is not None and screen.frozen


def is_halted(track: Track) -> bool:
    """Return whether the agent was stopped, and nobody has let it go on."""
    process = track.latest.get(Source.PROCESS)
    return track.run.program is not None and process is not None and process.rule == STOPPED


def _told(track: Track, now: datetime) -> Reading | None:
    found = (_counted(track, source, now) for source in TELLERS)
    said = [reading for reading in found if reading is not None and reading.state is not None]
    last = max(said, key=lambda reading: reading.at, default=None)
    if last is not None and last.state is RunState.IDLE:
        # A turn that has failed is over for both; only one of them says how.
        failed = (each for each in said if each.state is RunState.ERROR and last.at - each.at < QUIET)
        return next(failed, last)
    return last


def _counted(track: Track, source: Source, now: datetime) -> Reading | None:
    """What a source says, unless the run was told something just now that it cannot know about yet."""
    reading = track.latest.get(source)
    if reading is None or reading.frozen or track.told_at is None or not track.told_at <= now < track.told_at + QUIET:
        return reading
    has_not_begun = source not in TELLERS and reading.state is RunState.IDLE
    return None if reading.at <= track.told_at or has_not_begun else reading


def _is_past(told: Reading, status: Status) -> bool:
    """Whether something else has been seen since it was told."""
    says_the_same = (told.state, told.reason) == (status.state, status.reason)
    is_over = told.state is RunState.IDLE and status.waits
    return told.at < status.since and not says_the_same and not is_over


def _agree(screen: Reading, told: Reading) -> bool:
    # A title may tell that somebody is called, and not what for.
    return screen.state is told.state and screen.reason in (None, told.reason)


def _overrules(track: Track, screen: Reading, told: Reading, now: datetime) -> bool:
    """Whether the screen is believed against what was told."""
    if screen.confidence is Confidence.LOW:
        return False
    if told.state is RunState.ERROR and screen.state is RunState.IDLE:
        # An agent whose turn failed waits at its prompt: that is no contradiction.
        return False
    if screen.reason in _FORMS and (
        told.confidence is not Confidence.HIGH or (told.at <= screen.at and not _ended_form(track, told))
    ):
        # A form is there or is not, and a source of less confidence does not tell who is asked.
        return True
    # A hook may have gone quiet: Esc fires none, and an answer to a question neither.
    trusted = _trusted_for(told)
    return screen.at - told.at >= trusted or (
        screen.at >= told.at and now - told.at >= trusted and _stands(track, screen)
    )


def _ended_form(track: Track, told: Reading) -> bool:
    """Whether this word has just ended a form: that is answered before it is gone from the screen."""
    status, before = track.run.status, track.run.previous
    return before is not None and before.reason in _FORMS and status.cause == told.cause and status.since >= told.at


def _trusted_for(told: Reading) -> timedelta:
    return ASKED if told.reason in _FORMS else QUIET


def _stands(track: Track, screen: Reading) -> bool:
    """Whether the screen still shows what was read: nothing was printed since."""
    return track.output_at is None or track.output_at <= screen.at


def _verdict(reading: Reading) -> Verdict:
    return Verdict(
        state=reading.state or RunState.UNKNOWN,
        reason=reading.reason,
        cause=reading.cause,
        confidence=reading.confidence,
        shown=reading.source is Source.SCREEN,
    )
