"""Restores that a daemon has promised, and what it did not live to do or to tell of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.plan import Restore
from perdure.model.server import Server

#: The events that are needed to know.
KINDS = frozenset({EventKind.SERVER_DIED, EventKind.RESTORED, EventKind.DAEMON_STARTED})
#: How long after a death a restore is begun that nobody asked for: several servers are brought back one after the other.
_SOON = timedelta(minutes=5)
_MESSAGE = "It came to its end while nobody watched."
_GIVEN_UP = "It was interrupted, and is not gone on with by itself any more; `perdure restore` goes on from there."


class Promise(Struct, frozen=True, kw_only=True):
    """A server of which was told that it is brought back, and not yet what came of that."""

    server: Server
    #: The event that told so.
    died: Event

    @property
    def agents(self) -> int:
        """How many agents are to come back."""
        agents = self.died.data.get("agents")
        return agents if isinstance(agents, int) else 0


def begun(events: Iterable[StoredEvent]) -> dict[str, Event]:
    """Return by server the death after which it was to be brought back, where nothing was told of that since."""
    found: dict[str, Event] = {}
    for each in events:
        event = each.event
        if event.server is None:
            continue
        if event.kind is EventKind.SERVER_DIED and event.data.get("restoring"):
            found[event.server] = event
        elif event.kind is EventKind.SERVER_DIED or _is_answer(event):
            found.pop(event.server, None)
    return found


def _is_answer(event: Event) -> bool:
    """Return whether an event tells what came of a promise, and not of a restore that somebody asked for over HTTP."""
    return event.kind is EventKind.RESTORED and event.data.get("restore") is None


def taken_up(events: Iterable[StoredEvent], key: str) -> int:
    """Return how many daemons went on with bringing back a server since that was promised.

    Where it fell again before it was told what came of that, since the first time.
    """
    count, is_promised = 0, False
    for each in events:
        event = each.event
        if event.kind is EventKind.DAEMON_STARTED:
            going_on = event.data.get("restoring")
            count += isinstance(going_on, list | tuple) and key in going_on
        elif event.server == key and event.kind is EventKind.SERVER_DIED:
            count = count if is_promised else 0
            is_promised = bool(event.data.get("restoring"))
        elif event.server == key and _is_answer(event):
            is_promised = False
    return count


def is_met(died: Event, restores: Iterable[Restore]) -> bool:
    """Return whether somebody has brought back a server since its death, and nothing of that is left to be gone on with."""
    since = [each for each in restores if each.server.key == died.server and each.began_at >= died.at]
    return bool(since) and all(each.ended_at is not None for each in since)


def given_up(promise: Promise, at: datetime) -> Event:
    """Return what is told of a restore that nobody goes on with."""
    data = {"socket": promise.server.socket, "exit_code": None, "message": _GIVEN_UP}
    return Event(kind=EventKind.RESTORED, at=at, server=promise.server.key, data=data)


def untold(deaths: Mapping[str, Event], restores: Sequence[Restore]) -> list[Event]:
    """Return what there is to tell of the restores that followed these deaths and have come to their end since.

    One that was interrupted is told of when somebody has gone on with it, and one of several parts when all of them have
    ended. `restores` come latest first.
    """
    events = []
    for key, died in deaths.items():
        after = [each for each in restores if each.server.key == key and died.at <= each.began_at < died.at + _SOON]
        ends = [each.ended_at for each in after if each.ended_at is not None]
        if not after or len(ends) < len(after):
            continue
        data = {"socket": after[-1].server.socket, "exit_code": None, "message": _MESSAGE}
        events.append(Event(kind=EventKind.RESTORED, at=max(ends), server=key, data=data))
    return events
