"""Restores that were asked for over HTTP of a daemon that has ended: what the events still tell of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.model.decoding import converted
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.restore.shown import Summary
from perdure.store.store import Store

_KINDS = (EventKind.RESTORING, EventKind.RESTORED, EventKind.DAEMON_STARTED)
#: How many events are read at once, and how often, at most.
_AT_ONCE, _PAGES = 1000, 50


class Past(Struct, frozen=True, kw_only=True):
    """A restore as it was told of."""

    began_at: datetime
    #: Nothing of the journal that began later belongs to it; None: everything may.
    until: datetime | None
    #: The key of the server, where there was one only.
    server: str | None
    #: It came as far as a plan; else nothing of the journal is its.
    planned: bool
    #: None where its end was not told: the daemon had ended before.
    exit_code: int | None = None
    ended_at: datetime | None = None
    message: str = ""
    summary: Summary | None = None


def past_of(store: Store, id: str, sees: Callable[[Event], bool]) -> Past | None:
    """Return what was told of a restore to those who may see it, None when nothing was."""
    found: Past | None = None
    for stored in _told(store):
        event = stored.event
        is_it = event.data.get("restore") == id and sees(event)
        if found is None and is_it:
            began_at = _moment(event.data.get("began_at")) or event.at
            # What is planned is told before anything else.
            planned = event.kind is EventKind.RESTORING
            found = Past(began_at=began_at, until=None, server=event.server, planned=planned)
        if found is None:
            continue
        if is_it and event.kind is EventKind.RESTORED:
            return msgspec.structs.replace(found, until=event.at, ended_at=event.at, **_end(event))
        if event.kind is EventKind.DAEMON_STARTED:
            return msgspec.structs.replace(found, until=event.at)
    return found


def _told(store: Store) -> Iterator[StoredEvent]:
    after = 0
    for _ in range(_PAGES):
        page = store.read_events(after=after, limit=_AT_ONCE, kinds=_KINDS)
        yield from page
        if len(page) < _AT_ONCE:
            return
        after = page[-1].seq


def _end(event: Event) -> dict[str, object]:
    said: dict[str, object] = {"message": str(event.data.get("message") or "")}
    exit_code = event.data.get("exit_code")
    if isinstance(exit_code, int):
        said["exit_code"] = exit_code
    with suppress(msgspec.ValidationError):
        said["summary"] = converted(event.data.get("summary"), Summary | None)
    return said


def _moment(value: object) -> datetime | None:
    with suppress(msgspec.ValidationError):
        return converted(value, datetime | None)
    return None
