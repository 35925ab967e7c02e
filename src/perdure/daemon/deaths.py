"""Servers that died: what is told of it, and which of them are brought back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from perdure.daemon.keeping import Keeping
from perdure.daemon.known_servers import Known
from perdure.daemon.stimuli import Gone
from perdure.daemon.untold import KINDS, Promise, begun, given_up, is_met, taken_up, untold
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
#: So often in a row a server is brought back that falls while it is, or before anybody has seen it.
MOST_UNSEEN = 3
#: So many daemons go on with a restore that one before them has promised: it may be what ends them.
MOST_DAEMONS = 3
#: How long it is remembered when an agent ended, in seconds.
_REMEMBERED = 60.0

log = logging.getLogger(__name__)


class Deaths:
    """What comes of a server's death. `begin` first."""

    def __init__(self, keeping: Keeping, supervisor: Supervisor) -> None:
        self._keeping = keeping
        self.supervisor = supervisor
        #: Servers that died and are to be brought back.
        self.to_restore: list[Server] = []
        #: Servers that a daemon before this one was to bring back, by the events of their deaths.
        self._before: dict[str, Event] = {}
        #: All that are to be brought back, by server, until it is told what came of it.
        self._promised: dict[str, Promise] = {}
        #: Those with which nobody goes on, until that is told.
        self._given_up: list[Promise] = []
        #: Servers that one before this has watched, or that were brought back, and of which it is not known yet whether they
        #: are still there.
        self._missed: list[Watched] = []
        #: Agents that have ended not long ago: run, the server's process, and when that was heard.
        self._ended: dict[tuple[str, ServerProcess | None], float] = {}
        #: By server what was last brought back there, and when that was: it is not seen whole before the next look.
        self._made: dict[str, tuple[Watched, float]] = {}
        #: By server whose death was told last, and how often it fell since it was seen.
        self._told: dict[str, ServerProcess] = {}
        self._unseen: dict[str, int] = {}

    def begin(self, runs: Iterable[Run]) -> list[str]:
        """See what the daemon before this one has not told, or not done; return the servers it was to bring back.

        `runs` are all of this machine, over or not: what another machine, or another user, is to bring back is left to
        them. `tell_restored` is next.
        """
        world = self._keeping.world
        events = world.store.read_events(limit=_ALL, kinds=KINDS)
        self._before = begun(events)
        self._missed = missed(self.supervisor.runs, events)
        restores = world.store.list_restores() if self._before else ()
        ended = {event.server for event in untold(self._before, restores)}
        servers = {run.server.key: run.server for run in runs if world.me.uid in (0, run.server.uid)}
        for key, died in self._before.items():
            is_lately = world.now() - died.at <= _LATELY
            if key not in servers or not world.config.live.restore:
                continue
            if not is_met(died, restores):
                # What it had made may have fallen with the daemon, which is one more fall and not the first.
                self._unseen[key] = taken_up(events, key)
                is_fit = is_lately and self._unseen[key] < MOST_DAEMONS
                self._take_up(Promise(server=servers[key], died=died), is_fit)
            elif is_lately and key in ended:
                self._brought_back(servers[key], died.at)
        return list(self._promised)

    def _take_up(self, promise: Promise, is_fit: bool) -> None:
        """Go on with what a daemon before this one has promised, where it is fit for that."""
        if is_fit:
            self._promised[promise.server.key] = promise
            self.to_restore.append(promise.server)
        else:
            self._given_up.append(promise)

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
        # With a restore that is interrupted ends the session it speaks through, and with that a server that has no other:
        # in good order, and yet nobody wanted that.
        on_purpose = _was_told_to(demise) and (known.is_peopled or key not in self._promised)
        restoring = bool(world.config.live.restore and agents and not on_purpose and self._is_worth_it(known))
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
        self._promise(known.server, died)
        known.ended()
        # Another may be listening there already.
        known.look_by(world.ticking() + 0.2)

    def _promise(self, server: Server, died: Event) -> None:
        """Remember that a server is to be brought back, where that is told of its death, or is not any more."""
        self._before.pop(server.key, None)
        if died.data["restoring"]:
            self._promised[server.key] = Promise(server=server, died=died)
            self.to_restore.append(server)
        else:
            self._promised.pop(server.key, None)

    def _is_worth_it(self, known: Known) -> bool:
        """Return whether a server is worth bringing back; one that falls while it is, or just after, is a few times."""
        key = known.server.key
        if key in self._promised or self._just_made(known):
            return self._may_be_tried_again(key)
        self._unseen.pop(key, None)
        return True

    def _to_come(self, key: str) -> int:
        """Return how many agents are to come back to a server: those of one that falls meanwhile are not found in it yet."""
        return self._promised[key].agents if key in self._promised else 0

    def _agents_of(self, known: Known, at: float) -> int:
        """Return how many agents were in a server until it died: not those that had ended by themselves long before.

        While it is brought back, and until it is looked at after that, those count that were to be in it.
        """
        key = known.server.key
        there = {run.id for run in self.supervisor.runs if run.server.key == key and run.program is not None}
        along = {id for (id, process), when in self._ended.items() if process == known.process and at - when <= ALONG}
        return max(len(there | along), self._to_come(key), self._just_made(known))

    def _just_made(self, known: Known) -> int:
        """Return how many agents a restore has brought to a server that was not looked at since."""
        if known.server.key not in self._made:
            return 0
        made, at = self._made[known.server.key]
        return made.agents if made.process == known.process and known.looked_at <= at else 0

    def promised(self, server: Server) -> Promise | None:
        """Return why a server is to be brought back now; None when it is not, or not any more.

        Whoever asks does so from here on: what others have brought back until now is told before.
        """
        self.tell_restored()
        self._before.pop(server.key, None)
        return self._promised.get(server.key)

    def restored(self, promise: Promise, began_at: datetime, told: Event) -> None:
        """Take in that a restore has ended which was begun then, with the event that tells so.

        It is not told where the server has fallen again by then and is brought back once more: what comes of that will be.
        """
        key = promise.server.key
        if self._promised.get(key, promise) != promise:
            return
        self._promised.pop(key, None)
        self.supervisor.note(told)
        self._brought_back(promise.server, began_at)

    def _brought_back(self, server: Server, since: datetime) -> None:
        """Take in that a restore has ended which was begun then: `tell_missed` says so if what it has made is gone."""
        store = self._keeping.world.store
        try:
            made = made_since(store, server, since)
        except StoreUnusable:
            return  # whoever writes to it says so
        if made is not None and self._told.get(server.key) != made.process:
            # What was seen of it is the less: it was not done yet.
            self._missed = [each for each in self._missed if (each.server.key, each.process) != _which(made)]
            self._missed.append(made)
            self._made[server.key] = made, self._keeping.world.ticking()

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
        key = watched.server.key
        self._told[key] = watched.process
        agents = max(watched.agents, self._to_come(key))
        is_fit = (
            self._may_be_tried_again(key)
            if watched.made_from or key in self._promised or key in self._unseen
            else bool(saved) and now - seen_at <= _LATELY
        )
        restoring = bool(world.config.live.restore and agents and is_fit)
        data = {
            "socket": watched.server.socket,
            "pid": watched.process.pid,
            "cause": demise.kind,
            "message": demise.sentence,
            "agents": agents,
            "snapshot": saved.id if saved is not None else watched.made_from,
            "in_good_order": False,
            "restoring": restoring,
        }
        died = Event(kind=EventKind.SERVER_DIED, at=now, server=key, data=data)
        self.supervisor.note(died)
        self._promise(watched.server, died)

    def _may_be_tried_again(self, key: str) -> bool:
        """Count that a server fell before anybody had seen it, and say whether it is worth bringing back again."""
        self._unseen[key] = self._unseen.get(key, 0) + 1
        return self._unseen[key] <= MOST_UNSEEN

    def tell_restored(self) -> None:
        """Tell of restores that the daemon before this one has begun, once they have ended or nobody goes on with them."""
        while self._given_up:
            left = self._given_up.pop()
            self._before.pop(left.server.key, None)
            event = given_up(left, self._keeping.world.now())
            log.warning("%s is not brought back: %s", left.server.socket, event.data["message"])
            self.supervisor.note(event)
        try:
            told = untold(self._before, self._keeping.world.store.list_restores()) if self._before else ()
        except StoreUnusable:
            return  # whoever writes to it says so
        for event in told:
            key = str(event.server)
            died = self._before.pop(key)
            self.supervisor.note(event)
            if (promise := self._promised.pop(key, None)) is not None:
                self._brought_back(promise.server, died.at)


def _which(watched: Watched) -> tuple[str, ServerProcess]:
    return watched.server.key, watched.process


def _was_told_to(demise: Demise | None) -> bool:
    """Return whether a server is known to have ended because somebody ended it, or its last session.

    Where the kernel does not tell it is taken for an accident: what comes back can be ended again, what does not is lost.
    """
    return demise is not None and demise.kind is DemiseKind.EXITED and demise.detail.get("exit_status") == 0
