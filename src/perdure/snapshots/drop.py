"""Which snapshot of a server a restore takes by default. Pure.

After a crash the small new state is the newest one, and the big one before it is what people want back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.model.snapshot import CAPTURED, SnapshotSummary
from perdure.snapshots.retention import SHARP_DROP, falls

#: After this long, what a fall has left is how people work now.
_FRESH = timedelta(hours=48)


class Chosen(Struct, frozen=True, kw_only=True):
    """The snapshot to restore."""

    snapshot: SnapshotSummary
    #: The latest one, when an earlier and bigger one is taken in its stead.
    instead_of: SnapshotSummary | None = None


def last_good(lineage: Sequence[SnapshotSummary], now: datetime) -> Chosen | None:
    """Return what a restore takes of one server's snapshots, in any order; None when none of them was captured.

    That is the latest, unless in the last two days most of the panes, or most of the agents, went from one snapshot to
    the next and have not come back to more than half since: then it is the biggest that stood before such a fall.
    What is chosen is never smaller than the latest, an agent counting as much as a pane.
    """
    captured = [each for each in lineage if each.origin == CAPTURED]
    if not captured:
        return None
    captured.sort(key=lambda each: (each.last_seen_at, each.taken_at))
    latest = captured[-1]
    # Agents count too: an OOM kill takes them and leaves their panes, with a shell in each.
    fallen = [*_fallen(captured, _panes, now), *_fallen(captured, _agents, now)]
    bigger = [each for each in fallen if _size(each) > _size(latest)]
    if not bigger:
        return Chosen(snapshot=latest)
    return Chosen(snapshot=max(bigger, key=lambda each: (_size(each), each.last_seen_at)), instead_of=latest)


def _fallen(
    captured: Sequence[SnapshotSummary], count: Callable[[SnapshotSummary], int], now: datetime
) -> Iterator[SnapshotSummary]:
    """Yield what stood before each fall that is fresh and was never made good."""
    for before, after in falls(captured, count):
        since = captured[captured.index(after) :]
        if now - after.taken_at <= _FRESH and all(count(each) <= count(before) * SHARP_DROP for each in since):
            yield before


def _panes(snapshot: SnapshotSummary) -> int:
    return snapshot.panes


def _agents(snapshot: SnapshotSummary) -> int:
    return snapshot.agents


def _size(snapshot: SnapshotSummary) -> int:
    return snapshot.panes + snapshot.agents
