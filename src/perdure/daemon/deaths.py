"""Servers that died: what is told of it, and which of them are brought back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from perdure.daemon.keeping import Keeping
from perdure.daemon.known_servers import Known
from perdure.daemon.stimuli import Gone
from perdure.daemon.untold import KINDS, begun, untold
from perdure.daemon.unwatched import Watched, last_saved, made_since, missed
from perdure.errors import StoreUnusable
from perdure.host.boot import booted_at
from perdure.host.demise import Demise, DemiseKind, cause, while_unwatched
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.run import Run
from perdure.model.server import Server, ServerProcess

#: More than there ever are of one kind.
_ALL = 1_000_000
#: What nobody has seen for longer is not brought back without being asked for.
_LATELY = timedelta(hours=48)
#: A server that dies takes its agents along, and their ends may be heard of before its own, by this many seconds at most.
ALONG = 1.0
#: So often in a row a server is brought back that falls before anybody has seen it.
MOST_UNSEEN = 3
#: How long it is remembered when an agent ended, in seconds.
_REMEMBERED = 60.0


class Deaths:
    """What comes of a server's death. `begin` first."""

    def __init__(self, keeping: Keeping, supervisor: Supervisor) -> None:
        self._keeping = keeping
        self.supervisor = supervisor
        #: Servers that died and are to be brought back.
        self.to_restore: list[Server] = []
        #: Servers that a daemon before this one was to bring back, by the events of their deaths.
        self._before: dict[str, Event] = {}
        #: Servers that one before this has watched, or that were brought back, and of which it is not known yet whether they
        #: are still there.
        self._missed: list[Watched] = []
        #: Agents that have ended not long ago: run, the server's process, and when that was heard.
        self._ended: dict[tuple[str, ServerProcess | None], float] = {}
        #: By server whose death was told last, and how often it fell since it was seen.
        self._told: dict[str, ServerProcess] = {}
        self._unseen: dict[str, int] = {}

    def begin(self) -> None:
        """See what the daemon before this one has not told."""
        events = self._keeping.world.store.read_events(limit=_ALL, kinds=KINDS)
        self._before = begun(events)
        self._missed = missed(self.supervisor.runs, events)
        self.tell_restored()

    def agent_ended(self, run: Run, at: float) -> None:
        """Remember when an agent ended: it may turn out that its server took it along."""
        self._ended = {key: when for key, when in self._ended.items() if at - when < _REMEMBERED}
        self._ended[run.id, run.process] = at

    def died(self, known: Known, now: datetime, gone: Gone | None = None) -> None:
        """Say that a server is dead, with `gone` where its end was told; it may have to be brought back."""
        if known.process is None:
            return
        # It may be the end of the one before that was told.
        gone = gone if gone is not None and gone.program == known.program else None
        world = self._keeping.world
        key = known.server.key
        demise = cause(known.vigil, gone.how if gone is not None else None) if known.vigil is not None else None
        agents = self._agents_of(known, gone.at if gone is not None else world.ticking())
        restoring = bool(world.config.live.restore and agents and not _was_told_to(demise))
        data = {
            "socket": known.server.socket,
            "pid": known.process.pid,
            "cause": demise.kind if demise else DemiseKind.UNKNOWN,
            "message": demise.sentence if demise else "The tmux server is gone; how it ended is not known.",
            "agents": agents,
            "snapshot": known.snapshot,
            "in_good_order": _was_told_to(demise),
            "restoring": restoring,
        }
        died = Event(kind=EventKind.SERVER_DIED, at=now, server=key, data=data)
        self.supervisor.server_died(key, died, now)
        self._told[key] = known.process
        self._unseen.pop(key, None)
        known.ended()
        # Another may be listening there already.
        known.look_by(world.ticking() + 0.2)
        if restoring:
            self.to_restore.append(known.server)

    def _agents_of(self, known: Known, at: float) -> int:
        """Return how many agents were in a server until it died: not those that had ended by themselves long before."""
        there = {
            run.id for run in self.supervisor.runs if run.server.key == known.server.key and run.program is not None
        }
        along = {id for (id, process), when in self._ended.items() if process == known.process and at - when <= ALONG}
        return len(there | along)

    def brought_back(self, server: Server, since: datetime) -> None:
        """Take in that a restore has ended which was begun then: `tell_missed` says so if what it has made is gone."""
        store = self._keeping.world.store
        try:
            made = made_since(store, server, since)
        except StoreUnusable:
            return  # whoever writes to it says so
        if made is not None and self._told.get(server.key) != made.process:
            self._missed.append(made)

    def tell_missed(self, there: Callable[[Server, ServerProcess], bool | None], now: datetime) -> None:
        """Say which servers died while nobody watched; `there` tells whether one is, None as long as that is not known."""
        waiting, self._missed = self._missed, []
        for each in waiting:
            is_there = there(each.server, each.process)
            if is_there is None:
                self._missed.append(each)
            elif not is_there:
                self._died_unwatched(each, now)

    def _died_unwatched(self, watched: Watched, now: datetime) -> None:
        # Its runs end as those do that are not there when a daemon begins.
        world = self._keeping.world
        saved = last_saved(world.store, watched, now)
        seen_at = saved.last_seen_at if saved is not None else watched.process.started_at
        demise = while_unwatched(seen_at, booted_at())
        self._told[watched.server.key] = watched.process
        is_fit = (
            self._may_be_tried_again(watched.server.key)
            if watched.made_from
            else bool(saved) and now - seen_at <= _LATELY
        )
        restoring = bool(world.config.live.restore and watched.agents and is_fit)
        data = {
            "socket": watched.server.socket,
            "pid": watched.process.pid,
            "cause": demise.kind,
            "message": demise.sentence,
            "agents": watched.agents,
            "snapshot": saved.id if saved is not None else watched.made_from,
            "in_good_order": False,
            "restoring": restoring,
        }
        self.supervisor.note(Event(kind=EventKind.SERVER_DIED, at=now, server=watched.server.key, data=data))
        if restoring:
            self.to_restore.append(watched.server)

    def _may_be_tried_again(self, key: str) -> bool:
        """Count that a server fell before anybody had seen it, and say whether it is worth bringing back again."""
        self._unseen[key] = self._unseen.get(key, 0) + 1
        return self._unseen[key] <= MOST_UNSEEN

    def tell_restored(self) -> None:
        """Tell of restores that the daemon before this one has begun, once they have ended."""
        try:
            told = untold(self._before, self._keeping.world.store.list_restores()) if self._before else ()
        except StoreUnusable:
            return  # whoever writes to it says so
        for event in told:
            del self._before[str(event.server)]
            self.supervisor.note(event)


def _was_told_to(demise: Demise | None) -> bool:
    """Return whether a server is known to have ended because somebody ended it, or its last session.

    Where the kernel does not tell it is taken for an accident: what comes back can be ended again, what does not is lost.
    """
    return demise is not None and demise.kind is DemiseKind.EXITED and demise.detail.get("exit_status") == 0
