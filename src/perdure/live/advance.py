"""What an observation makes of a run. Pure: time is handed in, and nothing is looked up.

Several sources speak of the same run, and none is right every time. A registry and hooks know most and can go quiet; a
screen is always of this moment and shows best who is blocked; a viewer on it shows nothing. So the latest word of each is
kept, `weigh` decides between them, and every edge has its own patience: what flickers never becomes a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from msgspec import Struct, structs

from perdure.model.event import Event, EventKind
from perdure.model.observation import (
    Ended,
    Ending,
    Identified,
    Observation,
    Reading,
    Sighted,
    Source,
    Told,
    Watched,
)
from perdure.model.run import Confidence, Health, Reason, Run, RunState, Status

#: After this long what a registry or a hook last said is checked against the screen.
QUIET = timedelta(seconds=3)
#: How long a run that is busy may be silent before somebody should look.
STALLED = timedelta(minutes=10)
#: How long an agent that cannot be read may be silent before somebody should look.
LOST = timedelta(minutes=1)

_RANK = {Confidence.LOW: 0, Confidence.MEDIUM: 1, Confidence.HIGH: 2}
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


class Pending(Struct, frozen=True, kw_only=True):
    """A verdict that has to hold for a while before it counts."""

    verdict: Verdict
    since: datetime


class Track(Struct, frozen=True, kw_only=True):
    """A run, and what was last heard of it from everyone. Only the run is kept."""

    run: Run
    latest: Mapping[Source, Reading] = {}
    pending: Pending | None = None
    output_at: datetime | None = None
    #: Whether somebody has the pane before their eyes at this moment.
    watched: bool = False
    #: Whether the run was told something that it has not shown a sign of yet.
    told_at: datetime | None = None


def advance(track: Track, seen: Observation, now: datetime) -> tuple[Track, tuple[Event, ...]]:
    """Return the track after an observation, and what has happened. Says nothing when nothing changed."""
    if isinstance(seen, Ended):
        return _ended(track, seen, now)
    events: list[Event] = []
    if isinstance(seen, Sighted):
        track = _sighted(track, seen, now, events)
    elif isinstance(seen, Identified):
        track = _identified(track, seen, now, events)
    elif isinstance(seen, Reading):
        track = _heard(track, seen)
    elif isinstance(seen, Watched):
        track = _watched(track, now, events)
    elif isinstance(seen, Told):
        track = _told(track, now, events)
    return _settled(track, now, events)


def due(track: Track) -> datetime | None:
    """Return when time alone may change the run next, None when it will not."""
    times = []
    if track.pending is not None:
        times.append(track.pending.since + patience(track.run.status, track.pending.verdict))
    quiet = _quiet_since(track)
    if _may_stall(track.run):
        times.append(quiet + _stall_after(track.run))
    told = [reading.at + QUIET for reading in _tellers(track)]
    # The moment from which the screen is believed against them.
    times += [at for at in told if track.pending is None and at > _last_weighed(track)]
    return min(times, default=None)


def weigh(track: Track) -> Verdict | None:
    """Return what the latest readings come to, None when they say nothing that may change the run."""
    screen = track.latest.get(Source.SCREEN)
    told = max(_tellers(track), key=lambda reading: reading.at, default=None)
    if screen is not None and screen.frozen:
        # What is behind a viewer only those can tell who do not look at the screen.
        return _verdict(told) if told is not None and told.at > screen.at else None
    if screen is not None and screen.state is not None:
        if told is None or _overrules(screen, told):
            return _verdict(screen)
        return _verdict(told)
    if told is not None:
        return _verdict(told)
    process = track.latest.get(Source.PROCESS)
    if track.run.program is None and process is not None and process.state is not None:
        return _verdict(process)
    if screen is not None and track.run.program is not None:
        return Verdict(state=RunState.UNKNOWN, cause="screen:unread", shown=True)
    return None


def patience(status: Status, verdict: Verdict) -> timedelta:
    """Return how long a verdict has to hold before a run in this status takes it on."""
    if verdict.state is RunState.UNKNOWN:
        return timedelta(seconds=5)
    if not verdict.shown:
        # Where everything is allowed anyway, asking and being allowed are a moment apart.
        asks = verdict.reason is Reason.PERMISSION
        return timedelta(seconds=0.7) if asks else timedelta()
    if status.state is RunState.BUSY and verdict.state is RunState.IDLE:
        return timedelta(seconds=1.5)
    if verdict.state is RunState.ERROR:
        return timedelta(seconds=1)
    if verdict.state is RunState.ATTENTION and status.state is not RunState.UNKNOWN:
        return timedelta(seconds=0.4)
    if status.state is RunState.ATTENTION and verdict.state is RunState.IDLE:
        return timedelta(seconds=0.5)
    return timedelta()


# -- what was heard ---------------------------------------------------------------------------------------------------


def _tellers(track: Track) -> list[Reading]:
    """Those that were told what the agent does, instead of inferring it."""
    found = (track.latest.get(source) for source in (Source.REGISTRY, Source.HOOK))
    return [reading for reading in found if reading is not None and reading.state is not None]


def _overrules(screen: Reading, told: Reading) -> bool:
    """Whether the screen is believed against what was told."""
    if (screen.state, screen.reason) == (told.state, told.reason):
        return _RANK[screen.confidence] > _RANK[told.confidence]
    if screen.confidence is Confidence.LOW:
        return False
    if screen.reason in _FORMS and told.at <= screen.at:
        return True
    # A hook may have gone quiet: Esc fires none, and an answer to a question neither.
    return screen.at - told.at > QUIET


def _verdict(reading: Reading) -> Verdict:
    assert reading.state is not None
    return Verdict(
        state=reading.state,
        reason=reading.reason,
        cause=reading.cause,
        confidence=reading.confidence,
        shown=reading.source is Source.SCREEN,
    )


def _heard(track: Track, reading: Reading) -> Track:
    known = track.latest.get(reading.source)
    if known is not None and reading.source is Source.HOOK and reading.at < known.at:
        return track
    told_at = track.told_at
    if reading.state is RunState.BUSY:
        told_at = None
    return structs.replace(track, latest={**track.latest, reading.source: reading}, told_at=told_at)


def _sighted(track: Track, seen: Sighted, now: datetime, events: list[Event]) -> Track:
    run = track.run
    if seen.title != run.title:
        events.append(_event(EventKind.TITLE_CHANGED, run, now, title=seen.title, was=run.title))
    changed: Run = structs.replace(
        run,
        place=seen.place,
        title=seen.title,
        command=seen.command or run.command,
        cwd=seen.cwd or run.cwd,
        attached=seen.attached,
        health=Health.HEALTHY,
        stale=False,
    )
    output_at = max(filter(None, (track.output_at, seen.output_at)), default=None)
    track = structs.replace(
        track, run=changed, output_at=output_at, watched=track.watched if seen.watched is None else seen.watched
    )
    return _watched(track, now, events) if seen.watched else track


def _watched(track: Track, now: datetime, events: list[Event]) -> Track:
    run = track.run
    if run.status.reason is not Reason.DONE:
        return track
    status = _entered(run.status, Verdict(state=RunState.IDLE, cause="seen", confidence=run.status.confidence), now)
    events.append(_event(EventKind.SEEN, run, now))
    return _moved(structs.replace(track, run=structs.replace(run, seen_at=now)), status, now, events)


def _told(track: Track, now: datetime, events: list[Event]) -> Track:
    run = track.run
    if run.is_over or run.status.state in (RunState.BUSY, RunState.EXITED):
        return track
    verdict = Verdict(state=RunState.BUSY, cause="input", confidence=Confidence.MEDIUM)
    track = structs.replace(track, run=structs.replace(run, seen_at=now, last_activity_at=now), told_at=now)
    return _moved(track, _entered(run.status, verdict, now), now, events)


def _identified(track: Track, seen: Identified, now: datetime, events: list[Event]) -> Track:
    run = track.run
    if seen.program is None and run.program is not None:
        track, more = _ended(track, Ended(what=Ending.PROGRAM), now)
        events += more
        return track
    is_another = seen.program != run.program
    if seen.identity is not None and not _is_same(run, seen):
        before = run.identity
        data = {
            "agent": seen.identity.agent,
            "conversation": seen.identity.conversation,
            "certain": seen.identity.certain,
            "evidence": seen.identity.evidence,
            "was": before.conversation if before else None,
        }
        events.append(_event(EventKind.IDENTITY_CHANGED, run, now, **data))
    if seen.skill is not None and seen.skill != run.skill:
        events.append(_event(EventKind.SKILL_CHANGED, run, now, skill=seen.skill))
    activity = seen.details.last_activity_at if seen.details else None
    changed: Run = structs.replace(
        run,
        # A shell remembers who was in it last.
        identity=seen.identity or run.identity,
        program=seen.program,
        details=seen.details or (None if is_another else run.details),
        skill=seen.skill or (None if is_another else run.skill),
        last_activity_at=max(filter(None, (activity, run.last_activity_at)), default=None),
    )
    if not is_another:
        return structs.replace(track, run=changed)
    # Nothing that was heard of another process says anything about this one.
    latest = {source: each for source, each in track.latest.items() if source is Source.PROCESS}
    track = structs.replace(track, run=changed, latest=latest, pending=None, told_at=None)
    if run.status.state is RunState.EXITED and seen.program is not None:
        begun = Verdict(state=RunState.UNKNOWN, cause="process:started")
        track = _moved(track, _entered(run.status, begun, now), now, events)
    return track


def _is_same(run: Run, seen: Identified) -> bool:
    before, after = run.identity, seen.identity
    if before is None or after is None:
        return before is after
    return (before.agent, before.profile, before.conversation, before.certain) == (
        after.agent,
        after.profile,
        after.conversation,
        after.certain,
    )


def _ended(track: Track, seen: Ended, now: datetime) -> tuple[Track, tuple[Event, ...]]:
    run, events = track.run, list[Event]()
    if run.is_over or (seen.what is Ending.PROGRAM and run.program is None and run.status.state is RunState.EXITED):
        return track, ()
    run = structs.replace(run, program=None, exit_status=seen.exit_status, exit_signal=seen.exit_signal)
    verdict = Verdict(state=RunState.EXITED, cause=f"process:{seen.what}", confidence=Confidence.HIGH)
    track = Track(run=run, output_at=track.output_at, watched=track.watched)
    if run.status.state is not RunState.EXITED:
        track = _moved(track, _entered(run.status, verdict, now), now, events)
    if seen.what is not Ending.PROGRAM:
        over: Run = structs.replace(track.run, ended_at=now, health=Health.DISCONNECTED, attached=0, stale=False)
        track = structs.replace(track, run=over)
        events.append(_event(EventKind.RUN_DELETED, over, now, reason=str(seen.what), target=over.place.target))
    return track, tuple(events)


# -- what it comes to -------------------------------------------------------------------------------------------------


def _settled(track: Track, now: datetime, events: list[Event]) -> tuple[Track, tuple[Event, ...]]:
    """Let the verdict of this moment become the status, once it has held long enough."""
    run = track.run
    if run.is_over:
        return track, tuple(events)
    verdict = weigh(track)
    if verdict is not None:
        track = _towards(track, _noticed(track, verdict), now, events)
    return _stalled(track, now, events), tuple(events)


def _noticed(track: Track, verdict: Verdict) -> Verdict:
    """Return the verdict, or `done` where it means that a turn has ended which nobody has seen end."""
    run = track.run
    if verdict.state is not RunState.IDLE or run.program is None:
        return verdict
    worked = run.status.state is RunState.BUSY or run.status.reason in (Reason.PERMISSION, Reason.QUESTION)
    unseen = run.status.reason is Reason.DONE or (worked and not track.watched)
    return structs.replace(verdict, state=RunState.ATTENTION, reason=Reason.DONE) if unseen else verdict


def _towards(track: Track, verdict: Verdict, now: datetime, events: list[Event]) -> Track:
    status = track.run.status
    if not _may_follow(track, verdict):
        return structs.replace(track, pending=None)
    if (verdict.state, verdict.reason) == (status.state, status.reason):
        return _confirmed(structs.replace(track, pending=None), verdict, now)
    pending = track.pending
    # The same state by another rule is the same news.
    if pending is None or (pending.verdict.state, pending.verdict.reason) != (verdict.state, verdict.reason):
        pending = Pending(verdict=verdict, since=now)
    wait = min(patience(status, verdict), patience(status, pending.verdict))
    if now - pending.since < wait:
        return structs.replace(track, pending=structs.replace(pending, verdict=verdict))
    track = structs.replace(track, pending=None)
    return _moved(track, _entered(status, verdict, now), now, events)


def _may_follow(track: Track, verdict: Verdict) -> bool:
    status = track.run.status
    if status.state is RunState.EXITED and track.run.program is None:
        # The shell that is left says nothing about what ended in it, until it runs something else.
        return verdict.state is RunState.BUSY
    if status.cause == "input" and verdict.state is RunState.IDLE and track.told_at is not None:
        # It was told something just now, and has not begun to show it.
        reading = track.latest.get(Source.SCREEN)
        return reading is None or reading.at - track.told_at > QUIET
    return True


def _confirmed(track: Track, verdict: Verdict, now: datetime) -> Track:
    """Better evidence for the same is taken over without a word."""
    status = track.run.status
    if status.observed_at is not None and _RANK[verdict.confidence] <= _RANK[status.confidence]:
        return track
    better = structs.replace(status, cause=verdict.cause, confidence=verdict.confidence, observed_at=now)
    return structs.replace(track, run=structs.replace(track.run, status=better))


def _entered(status: Status, verdict: Verdict, now: datetime) -> Status:
    return Status(
        state=verdict.state,
        reason=verdict.reason,
        cause=verdict.cause,
        confidence=verdict.confidence,
        since=max(now, status.since),
        observed_at=now,
    )


def _moved(track: Track, status: Status, now: datetime, events: list[Event]) -> Track:
    before = track.run.status
    run: Run = structs.replace(track.run, status=status, previous=before)
    if status.state is not RunState.UNKNOWN:
        run = structs.replace(run, last_activity_at=now)
    data: dict[str, object] = {
        "state": status.state,
        "reason": status.reason,
        "cause": status.cause,
        "confidence": status.confidence,
        "from": before.word,
        "to": status.word,
    }
    if status.state is RunState.EXITED:
        data |= {"exit_status": run.exit_status, "exit_signal": run.exit_signal}
    events.append(_event(EventKind.STATE_CHANGED, run, now, **data))
    return structs.replace(track, run=run, pending=None)


def _stalled(track: Track, now: datetime, events: list[Event]) -> Track:
    run = track.run
    if not _may_stall(run) or now - _quiet_since(track) < _stall_after(run):
        return track
    verdict = Verdict(state=RunState.ATTENTION, reason=Reason.STALLED, cause="silence", confidence=Confidence.LOW)
    return _moved(track, _entered(run.status, verdict, now), now, events)


def _may_stall(run: Run) -> bool:
    return run.program is not None and not run.is_over and run.status.state in (RunState.BUSY, RunState.UNKNOWN)


def _stall_after(run: Run) -> timedelta:
    return STALLED if run.status.state is RunState.BUSY else LOST


def _quiet_since(track: Track) -> datetime:
    return max(filter(None, (track.output_at, track.run.status.since)))


def _last_weighed(track: Track) -> datetime:
    return max((reading.at for reading in track.latest.values()), default=track.run.status.since)


def _event(kind: EventKind, run: Run, now: datetime, **data: object) -> Event:
    return Event(kind=kind, at=now, run=run.id, server=run.server.key, data=data)
