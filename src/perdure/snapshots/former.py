"""The servers there were on a socket before the one that was saved last.

A server's process goes and another comes to its socket. What was last saved of the one that went is what ended with it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.errors import SnapshotDamaged, SnapshotNotFound
from perdure.model.server import ServerProcess
from perdure.model.snapshot import CAPTURED, Snapshot, SnapshotSummary, Whereabouts
from perdure.ports import SnapshotStore

#: After this long, what another server has made of it is how people work now.
_FRESH = timedelta(hours=48)


class Former(Struct, frozen=True, kw_only=True):
    """A server that another has followed on its socket."""

    #: What was last saved of it.
    last: SnapshotSummary
    #: What was saved of those that followed, oldest first.
    since: tuple[SnapshotSummary, ...]


class Past:
    """Who was where in the snapshots of a store: each is read when it is asked for, and once."""

    def __init__(self, store: SnapshotStore) -> None:
        self._store = store
        self._known: dict[str, Whereabouts] = {}

    def of(self, ids: Iterable[str]) -> Iterator[Whereabouts]:
        """Yield those of these that can be read, what is known already first."""
        ids = list(ids)
        unknown = [id for id in ids if id not in self._known]
        yield from [self._known[id] for id in ids if id in self._known]
        for each in self._store.whereabouts(unknown):
            self._known[each.id] = each
            yield each

    def former(self, lineage: Sequence[SnapshotSummary], now: datetime) -> list[Former]:
        """Return the same as `former`, of a server whose snapshots the store lists so."""
        return former(lineage, lambda id: next((each.process for each in self.of([id])), None), now)


def former_in(store: SnapshotStore, lineage: Sequence[SnapshotSummary], now: datetime) -> list[Former]:
    """Return the same as `former`, of a server whose snapshots the store lists so."""
    return Past(store).former(lineage, now)


def readable(store: SnapshotStore, ids: Iterable[str]) -> Iterator[Snapshot]:
    """Yield those of these snapshots that can be read, each when it is asked for."""
    for id in ids:
        with suppress(SnapshotNotFound, SnapshotDamaged):
            yield store.get_snapshot(id)


def former(
    lineage: Sequence[SnapshotSummary], process_of: Callable[[str], ServerProcess | None], now: datetime
) -> list[Former]:
    """Return the servers that others have followed in the last two days, the latest first.

    Pure. `lineage` is one server's, listed as the store does. `process_of` tells the process behind a snapshot, None of one
    that cannot be read; it is asked of a few only, since a process that is gone never comes back.
    """
    # Newest first: where a clock that was set back has made times equal, the order is all that tells.
    captured = [each for each in lineage if each.origin == CAPTURED]
    found, at = [], 0
    while at < len(captured):
        process = process_of(captured[at].id)
        if process is None:
            at += 1
            continue
        ended = at + _first_of_another(captured[at:], process, process_of)
        if ended == len(captured) or now - captured[ended - 1].taken_at > _FRESH:
            break
        found.append(Former(last=captured[ended], since=tuple(reversed(captured[:ended]))))
        at = ended
    return found


def _first_of_another(
    captured: Sequence[SnapshotSummary], process: ServerProcess, process_of: Callable[[str], ServerProcess | None]
) -> int:
    """Return the place of the first that is of another process, the end when there is none. The first of all is of this."""

    def is_of_another(place: int) -> bool:
        # One that cannot be read counts as what came after it.
        readable = (known for each in reversed(captured[: place + 1]) if (known := process_of(each.id)) is not None)
        return next(readable, process) != process

    found = bisect_left(range(len(captured)), True, key=is_of_another)
    while found < len(captured) and process_of(captured[found].id) is None:
        found += 1
    return found
