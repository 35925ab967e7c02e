"""Events as programs get to see them, secrets aside. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from perdure.live.because import because
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.secrets import redact_text

#: Where events have the causes of what they tell.
_CAUSES = {EventKind.STATE_CHANGED: "cause", EventKind.RUN_CREATED: "reason", EventKind.RUN_DELETED: "reason"}


class EventRow(Struct, frozen=True, kw_only=True):
    """One event."""

    seq: int
    at: datetime
    kind: str
    run: str | None
    server: str | None
    data: dict[str, Any]


def event_row(stored: StoredEvent) -> EventRow:
    """Return an event for scripts, and for whoever follows over the network."""
    event = stored.event
    return EventRow(
        seq=stored.seq, at=event.at, kind=event.kind.value, run=event.run, server=event.server, data=shown_data(event)
    )


def shown_data(event: Event) -> dict[str, Any]:
    """Return what an event tells, as it may be shown; of a cause also what that means to people."""
    data = {name: _shown(value) for name, value in event.data.items()}
    cause = data.get(_CAUSES[event.kind]) if event.kind in _CAUSES else None
    return {**data, "because": because(cause)} if isinstance(cause, str) else data


def _shown(value: object) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {name: _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value
