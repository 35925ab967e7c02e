"""Every run there is, what was observed of it, and what is still to be written down. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from msgspec import Struct, structs

from perdure.live.advance import advance, due
from perdure.live.ending import detached
from perdure.live.lifetimes import begun, remembered, returned
from perdure.live.recognise import Found, found_in, recognise
from perdure.live.weigh import Track
from perdure.model.event import Event, EventKind
from perdure.model.identity import Identity
from perdure.model.observation import Ended, Ending, Identified, Observation, Passed, Sighted
from perdure.model.run import Health, Run
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Capture
from perdure.model.thought import Thought
from perdure.model.topology import Pane, PaneDetails

#: How long the first process of a pane may take to be seen.
BEGINS_WITHIN = timedelta(seconds=3)
#: How long an agent may take to say in which conversation it is, where that may be one of before. Some do not say it
#: until they are told something.
SAYS_WITHIN = timedelta(seconds=10)
#: How long it is remembered when a pane was first seen.
FORGOTTEN_AFTER = timedelta(minutes=1)
#: What a pane's first process is called until it becomes the program it was begun for.
_COPY = "tmux: server"


class Batch(Struct, frozen=True, kw_only=True):
    """What is to be written down together."""

    runs: tuple[Run, ...]
    events: tuple[Event, ...]

    def __bool__(self) -> bool:
        return bool(self.runs or self.events)


class Left(NamedTuple):
    """How many new panes could not be taken in."""

    #: There was no id for them.
    without_id: int = 0
    #: It cannot be said yet who is in them.
    not_begun: int = 0
    #: An agent is in them that may be one of before, and has not said yet in which conversation it is.
    unsaid: int = 0

    def __bool__(self) -> bool:
        return any(self)


class Supervisor:
    """The runs of a machine. Whatever changes one is noted, and stays noted until it is recorded."""

    def __init__(self, runs: Iterable[Run] = ()) -> None:
        known = list(runs)
        self._tracks = {run.id: Track(run=remembered(run)) for run in known if not run.is_over}
        #: Runs whose panes are gone: they may come back.
        self._over = {run.id: run for run in known if run.is_over}
        self._panes: dict[tuple[str, str], str] = {}
        self._dirty: dict[str, None] = {}
        self._events: list[Event] = []
        #: When time alone may change a track, for as long as it is this very one.
        self._times: dict[str, tuple[Track, datetime | None]] = {}
        #: Panes of which it cannot be said yet who is in them, and since when that is known.
        self._beginning: dict[tuple[ServerProcess, str], datetime] = {}
        #: Panes of runs that nobody wants followed: server, its process, pane.
        self._let_go: set[tuple[str, ServerProcess | None, str]] = set()
        self._index()

    # What is known

    @property
    def runs(self) -> list[Run]:
        """The runs whose panes are there, or may be, in the order of their ids."""
        return [track.run for track in self._tracks.values()]

    def get(self, id: str) -> Run | None:
        """Return a run by its id, over or not."""
        track = self._tracks.get(id)
        return track.run if track is not None else self._over.get(id)

    def track(self, id: str) -> Track | None:
        """Return what is known of a run beyond the run."""
        return self._tracks.get(id)

    def in_pane(self, server: str, pane: str) -> Run | None:
        """Return the run in a pane of a server."""
        id = self._panes.get((server, pane))
        return self._tracks[id].run if id is not None else None

    def due(self) -> datetime | None:
        """Return when time alone may change something next."""
        return min(filter(None, map(self._due, self._tracks)), default=None)

    # What happens

    def discover(
        self,
        captures: Sequence[Capture],
        new_ids: Callable[[int], Sequence[str]],
        now: datetime,
        *,
        reason: str,
        missing: Ending = Ending.PANE,
        at_once: bool = False,
    ) -> Left:
        """Take in whole servers: new panes become runs, those that are not there any more have ended.

        Returns how many new panes were left for later. With `at_once` none is because of who may be in it: whoever cannot
        be told yet is somebody new.
        """
        contents = {
            (capture.server.key, pane.id): (capture, pane) for capture in captures for pane in capture.topology.panes
        }
        everything = [each for capture in captures for each in found_in(capture)]
        wanted = [each for each in everything if (each.server.key, each.process, each.pane) not in self._let_go]
        found = [
            each for each in wanted if at_once or self._has_begun(each, *contents[each.server.key, each.pane], now)
        ]
        servers = {capture.server.key for capture in captures}
        self._let_go_for_good(everything, servers, missing, now)
        everyone = [*self._over.values(), *self.runs]
        young = {
            run.id for run in self.runs if run.identity is None and timedelta() <= now - run.created_at < SAYS_WITHIN
        }
        result = recognise(found, everyone, servers, young=young)
        unsaid = () if at_once else {_key(each) for each in result.unsaid if self._may_still_say(each, now)}
        self._beginning = {key: at for key, at in self._beginning.items() if now - at < FORGOTTEN_AFTER}
        panes = [(each, run) for each, run in result.panes if _key(each) not in unsaid]
        fresh = [each for each, run in panes if run is None]
        ids = iter(new_ids(len(fresh)) if fresh else ())
        # First those that are gone: another pane may have what they had.
        for run in result.gone:
            self.observe(run.id, Ended(what=missing), now)
        without_id = 0
        for each, known in panes:
            id = next(ids, None) if known is None else known.id
            if id is None:
                without_id += 1
                continue
            self._take(each, known, id, now, reason)
            capture, pane = contents[each.server.key, each.pane]
            self._look_into(id, each, capture, pane, now)
        self._index()
        return Left(without_id=without_id, not_begun=len(wanted) - len(found), unsaid=len(unsaid))

    def _let_go_for_good(self, found: Sequence[Found], servers: Collection[str], what: Ending, now: datetime) -> None:
        """Take in which panes that were let go of are gone: of those nobody may say that they were left as they were."""
        there = {(each.server.key, each.process, each.pane) for each in found}
        for run in [run for run in self._over.values() if run.detached and run.server.key in servers]:
            key = (run.server.key, run.process, run.pane)
            if key not in there:
                self._let_go.discard(key)
                last = Track(run=structs.replace(run, ended_at=None, detached=False))
                gone, events = advance(last, Ended(what=what), now)
                self._over[run.id] = gone.run
                self._dirty[run.id] = None
                self._events += events

    def _has_begun(self, found: Found, capture: Capture, pane: Pane, now: datetime) -> bool:
        """Return whether it can be said who is in a pane: not while its first process is still a copy of tmux, or unseen.

        Whoever is brought back there would be taken for somebody new. A process that is never seen is hidden.
        """
        details = capture.details.panes.get(pane.id)
        first = details.processes[0] if details is not None and details.processes else None
        if pane.dead or (first is not None and first.comm != _COPY):
            return True
        known = self.in_pane(found.server.key, found.pane)
        if known is not None and known.process == found.process:
            return True
        return now - self._beginning.setdefault(_key(found), now) >= BEGINS_WITHIN

    def _may_still_say(self, found: Found, now: datetime) -> bool:
        """Return whether it is worth waiting for an agent to say in which conversation it is.

        The id of who was there before must not be given to it meanwhile, nor another where it is the same.
        """
        waited = now - self._beginning.setdefault(_key(found), now)
        # A clock that was set back would keep it waiting.
        return timedelta() <= waited < SAYS_WITHIN

    def observe(self, id: str, seen: Observation, now: datetime) -> None:
        """Take in one observation of a run; one that is unknown or over by now is nobody's."""
        track = self._tracks.get(id)
        if track is None:
            return
        after, events = advance(track, seen, now)
        if after.run != track.run:
            self._dirty[id] = None
        self._tracks[id] = after
        self._events += events
        if after.run.is_over:
            self._over[id] = self._tracks.pop(id).run
            if self._panes.get((after.run.server.key, after.run.pane)) == id:
                del self._panes[after.run.server.key, after.run.pane]

    def went_on(self, id: str, identity: Identity, now: datetime) -> None:
        """Take in that the agent of a run is in another conversation beyond doubt.

        Where another run is in it too, only a look at both tells whose it is, and nothing changes before that.
        """
        track, wanted = self._tracks.get(id), _whose(identity)
        if track is None or any(_whose(run.identity) == wanted for run in self.runs if run.id != id):
            return
        program, launchers = track.run.program, track.launchers
        self.observe(id, Identified(identity=identity, program=program, launchers=launchers), now)

    def detach(self, id: str, now: datetime) -> Run:
        """Follow a run no longer, and do not take up its pane again as long as that is there."""
        over, event = detached(self._tracks.pop(id).run, now)
        self._over[id] = over
        self._dirty[id] = None
        self._events.append(event)
        self._let_go.add((over.server.key, over.process, over.pane))
        self._index()
        return over

    def follow(self, id: str) -> None:
        """Take up the pane of a run that was let go of, as soon as it is looked at, where that is still there."""
        if run := self._over.get(id):
            self._let_go.discard((run.server.key, run.process, run.pane))

    def server_died(self, server: str, event: Event, now: datetime) -> None:
        """All runs of a server have ended with it."""
        self._events.append(event)
        for run in [run for run in self.runs if run.server.key == server]:
            self.observe(run.id, Ended(what=Ending.SERVER), now)
        self._let_go_for_good((), (server,), Ending.SERVER, now)

    def health(self, server: str, health: Health) -> None:
        """Say of all runs of a server whether what is said of them can be up to date."""
        for id, track in self._tracks.items():
            if track.run.server.key == server and track.run.health is not health:
                self._tracks[id] = structs.replace(track, run=structs.replace(track.run, health=health))
                self._dirty[id] = None

    def tick(self, now: datetime) -> None:
        """Let time pass for those who wait for nothing else."""
        for id in list(self._tracks):
            at = self._due(id)
            if at is not None and at <= now:
                self.observe(id, Passed(), now)

    def think(self, id: str, thought: Thought, event: Event | None) -> None:
        """Give a run its thought. A change of its state that is not recorded yet is told with these words."""
        track = self._tracks.get(id)
        if track is not None:
            self._tracks[id] = structs.replace(track, run=structs.replace(track.run, thought=thought))
            self._dirty[id] = None
            self._say_with_change(id, thought)
            if event is not None:
                self._events.append(event)

    def unthink(self, id: str, before: Thought | None) -> None:
        """Take a thought back that could not be recorded, as if it had never been."""
        track = self._tracks.get(id)
        if track is not None:
            self._tracks[id] = structs.replace(track, run=structs.replace(track.run, thought=before))
            self._say_with_change(id, before)
        self._events = [event for event in self._events if event.run != id or event.kind is not EventKind.THOUGHT]

    def _say_with_change(self, id: str, thought: Thought | None) -> None:
        """Have the last change of a run's state that is not recorded yet say what is said of the run since."""
        for at in range(len(self._events) - 1, -1, -1):
            event = self._events[at]
            if event.run == id and event.kind is EventKind.STATE_CHANGED:
                data = {**event.data, "thought": thought.text if thought is not None else None}
                self._events[at] = structs.replace(event, data=data)
                return

    def learn_skill(self, id: str, skill: str, now: datetime) -> None:
        """Say which skill was last used in a run's conversation."""
        track = self._tracks.get(id)
        if track is None or track.run.skill == skill:
            return
        run = structs.replace(track.run, skill=skill)
        self._tracks[id] = structs.replace(track, run=run)
        self._dirty[id] = None
        data = {"skill": skill}
        self._events.append(Event(kind=EventKind.SKILL_CHANGED, at=now, run=id, server=run.server.key, data=data))

    def paint(self, id: str, theme: str | None) -> None:
        """Say which directory's colours a run has."""
        track = self._tracks.get(id)
        if track is not None and track.run.theme != theme:
            self._tracks[id] = structs.replace(track, run=structs.replace(track.run, theme=theme))
            self._dirty[id] = None

    def note(self, event: Event) -> None:
        """Have something written down that is about no single run."""
        self._events.append(event)

    # What is to be recorded

    def batch(self) -> Batch:
        """Return everything that was not recorded yet, in its order."""
        runs = [run for id in self._dirty if (run := self.get(id)) is not None]
        return Batch(runs=tuple(runs), events=tuple(self._events))

    def recorded(self, batch: Batch) -> None:
        """Say that a batch is written down; what came since is the next one's."""
        for run in batch.runs:
            if self.get(run.id) == run:
                self._dirty.pop(run.id, None)
        del self._events[: len(batch.events)]

    def rewrite(self) -> None:
        """Have every run that goes on written down again: it may be another store that is written to."""
        self._dirty |= dict.fromkeys(self._tracks)

    def forget(self, before: datetime) -> None:
        """Let go of runs that ended so long ago that the store has let go of them too."""
        for id in [id for id, run in self._over.items() if run.ended_at and run.ended_at < before]:
            if id not in self._dirty:
                del self._over[id]

    def _take(self, found: Found, known: Run | None, id: str, now: datetime, reason: str) -> None:
        """See that a pane has its track."""
        if known is None:
            track, events = begun(id, found, now, reason)
        elif known.is_over or known.pane != found.pane or known.process != found.process:
            track, events = returned(known, found, now)
            self._over.pop(id, None)
        else:
            track, events = self._tracks[id], ()
            if track.run.first == found.first:
                return
            track = structs.replace(track, run=structs.replace(track.run, first=found.first))
        self._tracks[id] = track
        self._dirty[id] = None
        self._events += events

    def _look_into(self, id: str, found: Found, capture: Capture, pane: Pane, now: datetime) -> None:
        details = capture.details.panes.get(pane.id) or PaneDetails()
        attached = capture.details.sessions
        session = next((each for each in capture.topology.sessions if each.name == found.place.session), None)
        clients = attached[session.id].attached if session is not None and session.id in attached else 0
        self.observe(
            id,
            Sighted(place=found.place, title=details.title, command=pane.command, cwd=pane.cwd, attached=clients),
            now,
        )
        if pane.dead:
            self.observe(
                id, Ended(what=Ending.PROGRAM, exit_status=pane.exit_status, exit_signal=pane.exit_signal), now
            )
            return
        is_told = found.program is not None or (found.identity is not None and found.identity.is_kept)
        identity = found.identity if is_told else None
        identified = Identified(
            identity=identity, program=found.program, launchers=found.launchers, details=details.agent
        )
        self.observe(id, identified, now)

    def _due(self, id: str) -> datetime | None:
        # Of hundreds of tracks hardly one has changed since this was last asked.
        track, known = self._tracks[id], self._times.get(id)
        if known is None or known[0] is not track:
            known = self._times[id] = (track, due(track))
        return known[1]

    def _index(self) -> None:
        self._times = {id: known for id, known in self._times.items() if id in self._tracks}
        self._panes = {(track.run.server.key, track.run.pane): id for id, track in self._tracks.items()}


def _key(found: Found) -> tuple[ServerProcess, str]:
    return (found.process, found.pane)


def _whose(identity: Identity | None) -> tuple[str, str | None, str | None] | None:
    return None if identity is None else (identity.agent, identity.profile, identity.conversation)
