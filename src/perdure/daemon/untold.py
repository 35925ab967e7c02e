"""Restores that a daemon began and did not live to tell of. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.plan import Restore

#: The events that are needed to know.
KINDS = frozenset({EventKind.SERVER_DIED, EventKind.RESTORED})
#: How long after a death a restore is begun that nobody asked for: several servers are brought back one after the other.
_SOON = timedelta(minutes=5)
_MESSAGE = "It came to its end while nobody watched."


def begun(events: Iterable[StoredEvent]) -> dict[str, Event]:
    """Return by server the death after which it was to be brought back, where nothing was told of that since."""
    found: dict[str, Event] = {}
    for each in events:
        event = each.event
        if event.server is None:
            continue
        if event.kind is EventKind.SERVER_DIED and event.data.get("restoring"):
            found[event.server] = event
        elif event.kind in KINDS:
            found.pop(event.server, None)
    return found


def untold(deaths: Mapping[str, Event], restores: Sequence[Restore]) -> list[Event]:
    """Return what there is to tell of the restores that followed these deaths and have come to their end since.

    One that was interrupted is told of when somebody has gone on with it. `restores` come latest first.
    """
    events = []
    for key, died in deaths.items():
        after = [each for each in restores if each.server.key == key and died.at <= each.began_at < died.at + _SOON]
        restore = after[-1] if after else None
        if restore is None or restore.ended_at is None:
            continue
        data = {"socket": restore.server.socket, "exit_code": None, "message": _MESSAGE}
        events.append(Event(kind=EventKind.RESTORED, at=restore.ended_at, server=key, data=data))
    return events
