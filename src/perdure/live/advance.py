"""What an observation makes of a run. Pure: time is handed in, and nothing is looked up.

Whatever comes in is kept with the track; what everyone says is weighed; and what has held long enough becomes the status,
with an event. What has ended stays as it is until it returns (`lifetimes`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec import structs

from perdure.live.delivery import told
from perdure.live.outlived import cleared, outlived
from perdure.live.rest import rest_of
from perdure.live.weigh import (
    HALTED,
    RANK,
    TELLERS,
    UNREAD,
    Pending,
    Track,
    Verdict,
    is_halted,
    is_hidden,
    moments,
    patience,
    weigh,
)
from perdure.model.event import Event, EventKind
from perdure.model.identity import Evidence, Identity
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
from perdure.model.run import Confidence, Health, Reason, Run, RunState, Status
from perdure.model.secrets import redact_text
from perdure.model.thought import Thought, ThoughtState
from perdure.tmux.assemble import calm_title

__all__ = ["LOST", "STALLED", "Pending", "Track", "Verdict", "advance", "due", "patience", "weigh"]

#: How long a run that is busy may be silent before somebody should look.
STALLED = timedelta(minutes=10)
#: How long an agent that cannot be read may be silent before somebody should look.
LOST = timedelta(minutes=1)

#: What a run is called busy by when all that is known is that it was told something.
_INPUT = "input"
#: What a run is called done by when all that is known is that it has answered.
_TRANSCRIPT = "transcript"
#: States that say nothing about what was done before.
_NOT_KNOWN = (RunState.UNKNOWN, RunState.EXITED)
#: What makes it stalled.
_SILENCE = "silence"


def advance(track: Track, seen: Observation, now: datetime) -> tuple[Track, tuple[Event, ...]]:
    """Return the track after an observation, and what has happened.

    Says nothing when nothing changed: the same observation at the same time again is as if it had not been. No status
    changes without an event. A run that is over stays as it is.
    """
    events: list[Event] = []
    if track.run.is_over:
        return track, ()
    if isinstance(seen, Sighted):
        track = _sighted(track, seen, now, events)
    elif isinstance(seen, Identified):
        track = _identified(track, seen, now, events)
    elif isinstance(seen, Reading):
        track = _heard(track, seen, now)
    elif isinstance(seen, Watched | Told):
        # A person speaks of what it has come to by now.
        track = _settled(track, now, events)
        if isinstance(seen, Told):
            track = _told(track, seen, now, events)
        else:
            track = _watched(_looked_at(track, now), now, events)
    elif isinstance(seen, Answered):
        track = _answered(_settled(track, now, events), seen, now, events)
    elif isinstance(seen, Ended):
        track = _ended(track, seen, now, events)
    track = _settled(track, now, events)
    return structs.replace(track, begun_at=track.begun_at or now, at=now), tuple(events)


def due(track: Track) -> datetime | None:
    """Return when time alone will change the run next, None when it will not.

    Before then it changes nothing; at that time `advance` with `Passed` does.
    """
    times = moments(track)
    if track.pending is not None:
        times.append(track.pending.since + patience(track.run.status, track.pending.verdict))
    if _may_stall(track):
        times.append(_quiet_since(track) + _stall_after(track.run))
    return next((at for at in sorted(times) if (track.at is None or at > track.at) and _comes_of(track, at)), None)


def _comes_of(track: Track, at: datetime) -> bool:
    after, _ = advance(track, Passed(), at)
    return (after.pending, after.run.status) != (track.pending, track.run.status)


# -- what was heard ---------------------------------------------------------------------------------------------------


def _heard(track: Track, reading: Reading, now: datetime) -> Track:
    if reading.source is Source.SCREEN and is_halted(track):
        # What is shown is not its own.
        return track
    known = track.latest.get(reading.source)
    if known is not None:
        # Hooks overtake each other. What is dated after now was dated by another clock, and would silence all others.
        if reading.source is Source.HOOK and reading.at < known.at <= now:
            return track
        if known.frozen and reading.frozen:
            # It is hidden since the viewer came, not since it was last looked at.
            return track
    is_told = reading.source in TELLERS
    is_newer = known is None or (is_told and reading.at > known.at)
    if is_newer or _said(known) != _said(reading):
        track = structs.replace(track, news_at=now)
    if track.told_at is not None and (
        reading.state is RunState.BUSY or (is_told and reading.state is not None and reading.at > track.told_at)
    ):
        track = structs.replace(track, told_at=None)
    track = structs.replace(track, latest={**track.latest, reading.source: reading})
    if is_halted(track):
        # Nor is it what it will show when it goes on.
        kept = {source: each for source, each in track.latest.items() if source is not Source.SCREEN}
        track = structs.replace(track, latest=kept)
    return track


def _said(reading: Reading | None) -> object:
    return None if reading is None else (reading.state, reading.reason, reading.rule, reading.frozen)


def _sighted(track: Track, seen: Sighted, now: datetime, events: list[Event]) -> Track:
    run, title = track.run, track.run.title
    # Otherwise only what turns or blinks in it is another.
    if not same_title(run.title, seen.title):
        title = _to_be_told(seen.title)
        events.append(_event(EventKind.TITLE_CHANGED, run, now, title=title, was=run.title))
    changed: Run = structs.replace(
        run,
        place=seen.place,
        title=title,
        command=seen.command or run.command,
        cwd=seen.cwd or run.cwd,
        attached=seen.attached,
        health=Health.HEALTHY,
        stale=False,
    )
    # Nobody listened while it was only remembered: its silence begins now.
    times = (track.output_at, seen.output_at, now if run.stale else None)
    watched = track.watched if seen.watched is None else seen.watched
    track = structs.replace(
        track,
        run=changed,
        output_at=max(filter(None, times), default=None),
        watched=watched,
        # Whoever has gone by now may have been there until this moment.
        watched_at=now if watched or track.watched else track.watched_at,
    )
    return _watched(track, now, events) if track.watched else track


def same_title(known: str, shown: str) -> bool:
    """Whether a title is the one that is known, but for what turns or blinks in it."""
    return known == shown or _words(_to_be_told(shown)) == _words(known)


def _to_be_told(title: str) -> str:
    """A title as it may be kept and shown: without what turns in it, and without secrets, which people do put there."""
    return redact_text(calm_title(title))


def _words(title: str) -> list[str]:
    return [word for word in title.split() if any(letter.isalnum() for letter in word)]


def _looked_at(track: Track, at: datetime) -> Track:
    latest = max(filter(None, (track.run.seen_at, at)))
    return structs.replace(track, run=structs.replace(track.run, seen_at=latest))


def _watched(track: Track, now: datetime, events: list[Event]) -> Track:
    run = track.run
    if run.status.reason is not Reason.DONE:
        # What it came to before it went, or could not be read any more, is on the screen as well.
        return structs.replace(track, run=structs.replace(run, unseen=False)) if run.unseen else track
    verdict = Verdict(state=RunState.IDLE, cause="seen", confidence=run.status.confidence)
    events.append(_event(EventKind.SEEN, run, now))
    return _moved(_looked_at(track, now), verdict, now, events)


def _told(track: Track, told: Told, now: datetime, events: list[Event]) -> Track:
    run, typed_at = track.run, now if told.at is None else min(told.at, now)
    if run.status.state is RunState.EXITED:
        return track
    # Whoever types has seen what was there by then, and nothing of what came of it.
    track = _looked_at(structs.replace(track, news_at=now), typed_at)
    if told.at is not None and run.status.since >= typed_at:
        return track
    if run.status.state is RunState.BUSY:
        return structs.replace(track, told_at=now) if track.told_at is not None else track
    track = structs.replace(track, run=_active(track.run, now))
    verdict = Verdict(state=RunState.BUSY, cause=_INPUT, confidence=Confidence.MEDIUM)
    known = (track.latest.get(source) for source in TELLERS)
    is_heard = any(each is not None and each.state is not None and each.at > typed_at for each in known)
    return structs.replace(_moved(track, verdict, now, events), told_at=None if is_heard else now)


def _answered(track: Track, answered: Answered, now: datetime, events: list[Event]) -> Track:
    """Take in an answer of which nobody may have seen the agent at work: a turn may be shorter than any look."""
    run = track.run
    if run.program is None or track.watched or answered.at > now:
        return track
    known = (track.begun_at or now, run.seen_at, track.watched_at)
    if any(at is not None and answered.at <= at for at in known):
        return track
    if track.told_at is not None:
        return structs.replace(track, told_at=None)
    # One that showed no sign of what it was told was idle all the time, for all that was known.
    showed_none = run.previous is not None and run.previous.cause == _INPUT
    if run.status.state is not RunState.IDLE or (answered.at <= run.status.since and not showed_none):
        return track
    confidence = run.status.confidence
    done = Verdict(state=RunState.ATTENTION, reason=Reason.DONE, cause=_TRANSCRIPT, confidence=confidence)
    return _moved(structs.replace(track, run=_active(run, answered.at)), done, now, events)


def _identified(track: Track, seen: Identified, now: datetime, events: list[Event]) -> Track:
    if seen.program in track.launchers:
        seen = Identified()
    if seen.program is None and track.run.program is not None:
        track = _ended(track, Ended(what=Ending.PROGRAM), now, events)
    run, before, after = track.run, track.run.identity, seen.identity
    if after is not None and (before is None or not _is_same(before, after)):
        data = {
            "agent": after.agent,
            "conversation": after.conversation,
            "certain": after.certain,
            "evidence": after.evidence,
            "was": before.conversation if before else None,
        }
        events.append(_event(EventKind.IDENTITY_CHANGED, run, now, **data))
    # What is told of a conversation is told of no other. A shell remembers who was in it last.
    goes_on = after is None or before is None or not _is_another(run, seen, before, after)
    skill = seen.skill or (run.skill if goes_on else None)
    if skill != run.skill:
        events.append(_event(EventKind.SKILL_CHANGED, run, now, skill=skill))
    activity = seen.details.last_activity_at if seen.details else None
    changed: Run = structs.replace(
        run,
        identity=after or _left(before),
        program=seen.program,
        details=seen.details or (run.details if goes_on else None),
        skill=skill,
        thought=run.thought if goes_on else _forgotten(run, now, events),
        unseen=(run.unseen or run.status.reason is Reason.DONE) and _is_its_own(run, seen),
        last_activity_at=max(filter(None, (activity, run.last_activity_at)), default=None),
    )
    launchers = track.launchers if seen.program is None else seen.launchers
    if _is_same_process(run, seen):
        track = structs.replace(track, run=changed, launchers=launchers)
        if run.status.reason is not Reason.DONE or changed.unseen:
            return track
        # Whatever was done, it was not this.
        anew = Verdict(state=RunState.IDLE, cause="conversation", confidence=run.status.confidence)
        return _moved(track, anew, now, events)
    # Nothing that was heard of another process says anything about this one, nor is what the shell did a turn of it.
    track = Track(
        run=changed,
        output_at=track.output_at,
        news_at=now,
        watched=track.watched,
        watched_at=track.watched_at,
        launchers=launchers,
    )
    if run.status.state is RunState.UNKNOWN:
        return track
    track = _moved(track, Verdict(state=RunState.UNKNOWN, cause="process:started"), now, events)
    # What the one before has done is no reason to look at another.
    return structs.replace(track, run=structs.replace(track.run, unseen=changed.unseen))


def _left(before: Identity | None) -> Identity | None:
    """Who was in a pane, for its run to be known by: what is not kept there any more is only remembered."""
    return structs.replace(before, evidence=Evidence.REMEMBERED) if before is not None and before.is_kept else before


def _is_same_process(run: Run, seen: Identified) -> bool:
    return seen.program == run.program or run.program in seen.launchers


def _is_another(run: Run, seen: Identified, before: Identity, after: Identity) -> bool:
    """Whether who is in a pane now is, or may be, in another conversation than who was known there."""
    if _is_same_process(run, seen):
        # It is in the one it was in, under a name that is known only now.
        return before.conversation not in (None, after.conversation)
    return not _goes_on(before, after)


def _forgotten(run: Run, now: datetime, events: list[Event]) -> Thought | None:
    """Nothing, for what was thought of another. Whoever shows that hears so at once: the next thought may be long in coming."""
    if run.thought is None:
        return None
    nothing = cleared(now, run.thought, rest_of(run.status.state, ThoughtState.HOLDING))
    event = told(run, nothing, run.thought, now)
    events += [event] if event is not None else []
    return nothing


def _is_its_own(run: Run, seen: Identified) -> bool:
    """Whether what was done in a run is the work of who is in it now: of the same process, or the same conversation."""
    before, after = run.identity, seen.identity
    if after is None:
        # A shell remembers who was in it last.
        return True
    if not _is_same_process(run, seen):
        return _goes_on(before, after) and after.prompted is not False
    if before is None or before.conversation is None or not after.certain or _goes_on(before, after):
        return True
    # One in which something was said may have done it under the name that is known only now.
    return run.status.reason is Reason.DONE and after.prompted is not False


def _goes_on(before: Identity | None, after: Identity) -> bool:
    """Whether it is the same conversation beyond doubt."""
    if before is None or after.conversation is None or not after.certain:
        return False
    return all(getattr(before, name) == getattr(after, name) for name in ("agent", "profile", "conversation"))


def _is_same(before: Identity, after: Identity) -> bool:
    names = ("agent", "profile", "conversation", "certain")
    return all(getattr(before, name) == getattr(after, name) for name in names)


def _ended(track: Track, seen: Ended, now: datetime, events: list[Event]) -> Track:
    run, was_exited = track.run, track.run.status.state is RunState.EXITED
    if seen.what is Ending.PROGRAM and seen.program is not None and seen.program != run.program:
        # Another one, that was there before.
        return track
    if not was_exited or seen.exit_status is not None or seen.exit_signal is not None:
        run = structs.replace(run, exit_status=seen.exit_status, exit_signal=seen.exit_signal)
    if was_exited and seen.what is Ending.PROGRAM:
        return structs.replace(track, run=run)
    # What was said while it lived says nothing any more.
    track = Track(
        run=structs.replace(run, program=None),
        output_at=track.output_at,
        watched=track.watched,
        watched_at=track.watched_at,
        launchers=track.launchers,
    )
    if not was_exited:
        verdict = Verdict(state=RunState.EXITED, cause=f"process:{seen.what}", confidence=Confidence.HIGH)
        track = _moved(track, verdict, now, events)
    if seen.what is not Ending.PROGRAM:
        over: Run = structs.replace(track.run, ended_at=now, health=Health.DISCONNECTED, attached=0, stale=False)
        track = structs.replace(track, run=over)
        events.append(_event(EventKind.RUN_DELETED, over, now, reason=str(seen.what), target=over.place.target))
    return track


# -- what it comes to -------------------------------------------------------------------------------------------------


def _settled(track: Track, now: datetime, events: list[Event]) -> Track:
    """Let the verdict of this moment become the status, once it has held long enough."""
    if track.run.is_over:
        return track
    verdict = _followed(track, weigh(track, now))
    track = structs.replace(track, pending=None) if verdict is None else _towards(track, verdict, now, events)
    return _stalled(track, now, events)


def _followed(track: Track, verdict: Verdict | None) -> Verdict | None:
    """Return the verdict where the run may follow it."""
    run, pending = track.run, track.pending
    if verdict is None and pending is not None and not pending.verdict.shown and pending.verdict.cause != HALTED:
        # A viewer came after it was told. It was not taken back.
        return pending.verdict
    if run.status.state is RunState.EXITED:
        # The shell that is left says nothing about what ended in it, until it runs something else.
        return verdict if verdict is not None and verdict.state is RunState.BUSY else None
    if run.status.cause == HALTED and verdict is None:
        # It goes on, and says nothing yet.
        return Verdict(state=RunState.UNKNOWN, cause=UNREAD)
    if run.status.reason is Reason.STALLED and not is_halted(track):
        if not _has_stirred(track):
            return None
        if verdict is None and not is_hidden(track):
            return Verdict(state=RunState.UNKNOWN, cause="output")
    return verdict


def _towards(track: Track, verdict: Verdict, now: datetime, events: list[Event]) -> Track:
    status = track.run.status
    if _is_news(status, verdict):
        pending = track.pending
        # The same state by another rule is the same news. A clock that was set back would keep it waiting.
        if pending is None or not _same(pending.verdict, verdict) or now < pending.since:
            pending = Pending(verdict=verdict, since=now)
        if now - pending.since < patience(status, verdict):
            return structs.replace(track, pending=structs.replace(pending, verdict=verdict))
        if verdict.state is not RunState.UNKNOWN:
            track = structs.replace(track, run=_active(track.run, now))
        return _moved(track, _noticed(track, verdict), now, events)
    track = structs.replace(track, pending=None)
    if status.observed_at is not None and not _is_better(track.run, verdict):
        return track
    # Better evidence for the same is taken over without a word.
    better = structs.replace(status, cause=verdict.cause, confidence=verdict.confidence, observed_at=now)
    return structs.replace(track, run=structs.replace(track.run, status=better))


def _is_better(run: Run, verdict: Verdict) -> bool:
    """Whether a verdict says more than a status in which the run is anyway."""
    gained = RANK[verdict.confidence] - RANK[run.status.confidence]
    # What a shell runs is followed by something else it runs without a prompt between them.
    runs_another = run.program is None and verdict.cause != run.status.cause
    goes_on = run.status.cause == HALTED and verdict.cause != HALTED
    return gained > 0 or goes_on or (gained == 0 and runs_another)


def _is_news(status: Status, verdict: Verdict) -> bool:
    if verdict.state is RunState.IDLE:
        return not status.waits
    return (verdict.state, verdict.reason) != (status.state, status.reason)


def _same(one: Verdict, other: Verdict) -> bool:
    return (one.state, one.reason) == (other.state, other.reason)


def _noticed(track: Track, verdict: Verdict) -> Verdict:
    """Return the verdict, or `done` where it means that a turn has ended which nobody has seen end."""
    run = track.run
    if verdict.state is not RunState.IDLE or run.program is None or track.watched or track.told_at is not None:
        return verdict
    # Neither a process that has just begun nor a run that has just come back is in the middle of anything.
    is_gap = run.status.cause in (UNREAD, _SILENCE, HALTED)
    worked = run.unseen or _is_turn(run.status) or (is_gap and run.previous is not None and _is_turn(run.previous))
    return structs.replace(verdict, state=RunState.ATTENTION, reason=Reason.DONE) if worked else verdict


def _is_turn(status: Status) -> bool:
    return status.state is RunState.BUSY or status.reason in (Reason.PERMISSION, Reason.QUESTION)


def _moved(track: Track, verdict: Verdict, now: datetime, events: list[Event]) -> Track:
    """Enter a state, and say so."""
    before = track.run.status
    status = Status(
        state=verdict.state,
        reason=verdict.reason,
        cause=verdict.cause,
        confidence=verdict.confidence,
        since=max(now, before.since),
        observed_at=now,
    )
    thought = outlived(track.run.thought, before, status, now)
    run: Run = structs.replace(
        track.run, status=status, previous=before, thought=thought, unseen=_is_unseen(track.run, status)
    )
    data: dict[str, object] = {
        "state": status.state,
        "reason": status.reason,
        "cause": status.cause,
        "confidence": status.confidence,
        "from": before.word,
        "to": status.word,
        # What is said of it from now on: whoever shows the one shows the other.
        "thought": thought.text if thought is not None else None,
    }
    if status.state is RunState.EXITED:
        data |= {"exit_status": run.exit_status, "exit_signal": run.exit_signal}
    elif before.state is RunState.EXITED:
        run = structs.replace(run, exit_status=None, exit_signal=None)
    events.append(_event(EventKind.STATE_CHANGED, run, now, **data))
    return structs.replace(track, run=run, pending=None, told_at=None)


def _is_unseen(run: Run, status: Status) -> bool:
    """Whether the end of a turn is still to be seen in this state: nothing that leaves open what it does makes it seen."""
    if status.reason is Reason.DONE:
        return True
    leaves_open = status.state in _NOT_KNOWN or status.reason in (Reason.STALLED, Reason.LOGIN)
    return leaves_open and (run.unseen or run.status.reason is Reason.DONE)


def _active(run: Run, now: datetime) -> Run:
    return structs.replace(run, last_activity_at=max(filter(None, (run.last_activity_at, now))))


# -- silence ----------------------------------------------------------------------------------------------------------


def _stalled(track: Track, now: datetime, events: list[Event]) -> Track:
    if not _may_stall(track) or now - _quiet_since(track) < _stall_after(track.run):
        return track
    verdict = Verdict(state=RunState.ATTENTION, reason=Reason.STALLED, cause=_SILENCE, confidence=Confidence.LOW)
    return _moved(track, verdict, now, events)


def _may_stall(track: Track) -> bool:
    run = track.run
    if run.program is None or run.is_over or run.stale or is_hidden(track) or is_halted(track):
        return False
    return run.status.state in (RunState.BUSY, RunState.UNKNOWN)


def _stall_after(run: Run) -> timedelta:
    return STALLED if run.status.state is RunState.BUSY else LOST


def _quiet_since(track: Track) -> datetime:
    return max(filter(None, (track.output_at, track.news_at, track.run.status.since)))


def _has_stirred(track: Track) -> bool:
    return _quiet_since(track) > track.run.status.since


def _event(kind: EventKind, run: Run, now: datetime, **data: object) -> Event:
    return Event(kind=kind, at=now, run=run.id, server=run.server.key, data=data)
