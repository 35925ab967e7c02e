"""Where a capture goes in a server's history. Order is by when things were seen, not by when they were saved."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from msgspec import Struct

from perdure.store.records import Records
from perdure.store.rows import Coming, Standing, moment_of, snapshot_id

#: How much older than the latest a capture may be and still only be late.
_LATEST_ARRIVAL = timedelta(minutes=10)


class Placed(Struct, frozen=True, kw_only=True):
    """What became of a capture."""

    id: str
    parent: str | None
    #: When the snapshot was first seen, as a stamp.
    taken_at: str
    new: bool
    #: Whether this capture is now the last thing known of its server.
    latest: bool


def place(records: Records, coming: Coming, texts: Mapping[str, bytes]) -> Placed:
    """Keep a capture: as what was there seen again, as the new latest, or, when it comes late, in its own time."""
    latest = records.latest(coming.server, coming.origin)
    if latest is not None and moment_of(latest.last_seen_at) - moment_of(coming.at) > _LATEST_ARRIVAL:
        # No save takes that long: the clock was ahead when the other one was taken, and has been put right.
        # Were its time believed, nothing would be the latest again until the clock gets there.
        records.bring_back(coming)
        latest = records.latest(coming.server, coming.origin)
    if latest is None or coming.at >= latest.last_seen_at:
        return _follow(records, latest, coming, texts)
    if coming.content == latest.content:
        return _seen(latest, latest=False)
    return _file_late(records, coming, texts)


def _follow(records: Records, latest: Standing | None, coming: Coming, texts: Mapping[str, bytes]) -> Placed:
    if latest is not None and coming.content == latest.content:
        records.see_again(latest.id, coming, texts)
        return _seen(latest, latest=True)
    parent = None if latest is None else latest.id
    id = snapshot_id(coming.server, coming.origin, coming.content, parent)
    return _insert(records, id, parent, coming, texts, latest=True)


def _file_late(records: Records, coming: Coming, texts: Mapping[str, bytes]) -> Placed:
    before = records.current_at(coming.server, coming.origin, coming.at)
    if before is not None and coming.content == before.content:
        records.see_again(before.id, coming, texts)
        return _seen(before, latest=False)
    parent = None if before is None else before.id
    id = snapshot_id(coming.server, coming.origin, coming.content, parent, late=coming.at)
    return _insert(records, id, parent, coming, texts, latest=False)


def _insert(
    records: Records, id: str, parent: str | None, coming: Coming, texts: Mapping[str, bytes], *, latest: bool
) -> Placed:
    if records.insert(id, parent, coming.at, coming, texts):
        return Placed(id=id, parent=parent, taken_at=coming.at, new=True, latest=latest)
    # The same words after the same snapshot: it is that one, seen again.
    records.see_again(id, coming, texts)
    there = records.standing(id)
    assert there is not None
    return _seen(there, latest=latest)


def _seen(standing: Standing, *, latest: bool) -> Placed:
    return Placed(id=standing.id, parent=standing.parent, taken_at=standing.taken_at, new=False, latest=latest)
