"""Servers that died: what is told of it, and which of them are brought back."""

from __future__ import annotations

from datetime import datetime

from perdure.daemon.keeping import Keeping
from perdure.daemon.known_servers import Known
from perdure.daemon.untold import KINDS, begun, untold
from perdure.errors import StoreUnusable
from perdure.host.demise import Demise, DemiseKind, cause
from perdure.host.exits import Exit
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.server import Server

#: More than there ever are of one kind.
_ALL = 1_000_000


class Deaths:
    """What comes of a server's death. `begin` first."""

    def __init__(self, keeping: Keeping, supervisor: Supervisor) -> None:
        self._keeping = keeping
        self.supervisor = supervisor
        #: Servers that died and are to be brought back.
        self.to_restore: list[Server] = []
        #: Servers that a daemon before this one was to bring back, by the events of their deaths.
        self._before: dict[str, Event] = {}

    def begin(self) -> None:
        """See what the daemon before this one has not told."""
        self._before = begun(self._keeping.world.store.read_events(limit=_ALL, kinds=KINDS))
        self.tell_restored()

    def died(self, known: Known, now: datetime, how: Exit | None = None) -> None:
        """Say that a server is dead, `how` where the kernel tells; it may have to be brought back."""
        if known.process is None:
            return
        world = self._keeping.world
        key = known.server.key
        demise = cause(known.vigil, how) if known.vigil is not None else None
        agents = sum(1 for run in self.supervisor.runs if run.server.key == key and run.program is not None)
        restoring = bool(world.config.live.restore and agents and not _was_told_to(demise))
        data = {
            "socket": known.server.socket,
            "pid": known.process.pid,
            "cause": demise.kind if demise else DemiseKind.UNKNOWN,
            "message": demise.sentence if demise else "The tmux server is gone; how it ended is not known.",
            "agents": agents,
            "snapshot": known.snapshot,
            "restoring": restoring,
        }
        died = Event(kind=EventKind.SERVER_DIED, at=now, server=key, data=data)
        self.supervisor.server_died(key, died, now)
        known.ended()
        # Another may be listening there already.
        known.look_by(world.ticking() + 0.2)
        if restoring:
            self.to_restore.append(known.server)

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
