"""Which snapshots may go. Pure: it decides, the store deletes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, tzinfo
from itertools import pairwise

from perdure.model.config import RetentionConfig
from perdure.model.snapshot import CAPTURED, SnapshotSummary

#: A fall to half the panes or less, from at least four, is a crash until somebody says otherwise.
SHARP_DROP = 0.5
_WORTH_NOTICING = 4


def doomed(snapshots: Iterable[SnapshotSummary], now: datetime, policy: RetentionConfig, zone: tzinfo) -> list[str]:
    """Return the ids that need not be kept any longer.

    Never: the last good snapshot of a server, and the last before a sharp drop: after a crash the small new
    state is the newest, and the big old one is what people want. Nor anything that was imported.
    """
    lineages: dict[tuple[str, str], list[SnapshotSummary]] = {}
    for each in snapshots:
        lineages.setdefault((each.server.key, each.origin), []).append(each)
    gone = []
    for (_, origin), lineage in lineages.items():
        lineage.sort(key=lambda each: (each.last_seen_at, each.taken_at))
        kept = _kept(lineage, now, policy, zone) if origin == CAPTURED else {each.id for each in lineage}
        gone += [each.id for each in lineage if each.id not in kept]
    return gone


def horizon(now: datetime, policy: RetentionConfig) -> datetime:
    """Return the moment before which nothing is kept for its age alone."""
    return now - max(
        timedelta(hours=policy.everything_hours), timedelta(days=max(policy.hourly_days, policy.daily_days))
    )


def before_drop(lineage: Sequence[SnapshotSummary]) -> list[SnapshotSummary]:
    """Return those of a server's snapshots, oldest first, after which most of the panes were gone."""
    return [earlier for earlier, _ in falls(lineage, lambda each: each.panes)]


_Fall = tuple[SnapshotSummary, SnapshotSummary]


def falls(lineage: Sequence[SnapshotSummary], count: Callable[[SnapshotSummary], int]) -> list[_Fall]:
    """Return the neighbours in a server's snapshots, oldest first, between which most of what is counted was lost."""
    return [
        (earlier, later)
        for earlier, later in pairwise(lineage)
        if count(earlier) >= _WORTH_NOTICING and count(later) <= count(earlier) * SHARP_DROP
    ]


def _kept(lineage: Sequence[SnapshotSummary], now: datetime, policy: RetentionConfig, zone: tzinfo) -> set[str]:
    kept = {lineage[-1].id} | _both_sides(falls(lineage, lambda each: each.panes))
    span = now - timedelta(days=policy.daily_days)
    # Agents that went while their panes stayed: an OOM kill looks like that, and so does the end of a working day.
    # These are kept as long as the last of a day would be, and not for ever.
    kept |= _both_sides(fall for fall in falls(lineage, lambda each: each.agents) if fall[0].last_seen_at >= span)
    kept |= {each.id for each in lineage if each.last_seen_at >= now - timedelta(hours=policy.everything_hours)}
    kept |= _last_of_each(lineage, now - timedelta(days=policy.hourly_days), lambda at: _hour(at, zone))
    kept |= _last_of_each(lineage, span, lambda at: at.astimezone(zone).date())
    return kept


def _both_sides(fallen: Iterable[_Fall]) -> set[str]:
    # The small state too: without it, the next time this is asked, the big one would not stand before a fall.
    return {each.id for fall in fallen for each in fall}


def _last_of_each(
    lineage: Sequence[SnapshotSummary], since: datetime, bucket: Callable[[datetime], object]
) -> set[str]:
    last = {bucket(each.last_seen_at): each.id for each in lineage if each.last_seen_at >= since}
    return set(last.values())


def _hour(at: datetime, zone: tzinfo) -> tuple[object, ...]:
    # With the offset: the hour that a change of clocks repeats is two hours.
    local = at.astimezone(zone)
    return (local.date(), local.hour, local.utcoffset())
