"""Events as programs get to see them, secrets aside. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct

from perdure.model.event import Event, StoredEvent
from perdure.model.secrets import redact_text


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
    """Return what an event tells, as it may be shown."""
    return {name: _shown(value) for name, value in event.data.items()}


def _shown(value: object) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {name: _shown(each) for name, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list | tuple) else value
