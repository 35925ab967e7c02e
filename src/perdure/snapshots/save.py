"""The verb: keep what was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Protocol

from msgspec import Struct

from perdure.errors import StoreUnusable
from perdure.model.config import Config
from perdure.model.server import Server
from perdure.model.snapshot import CAPTURED, Miss, Missed, SnapshotSummary
from perdure.ports import EventLog, RunStore, SnapshotStore
from perdure.snapshots.former import former_in
from perdure.snapshots.look import Looked
from perdure.snapshots.passing import without_temporary
from perdure.snapshots.retention import doomed, horizon

_PRUNE_EVERY = timedelta(hours=1)
_LEAP = timedelta(days=2)


class SaveResult(Struct, frozen=True, kw_only=True):
    """What a save came to for one server. The numbers are those of the snapshot named."""

    user: str
    uid: int
    socket: str
    #: saved, unchanged, kept (nothing to save; the last good snapshot stands) or failed.
    result: str
    reason: str | None = None
    message: str | None = None
    snapshot: str | None = None
    sessions: int = 0
    windows: int = 0
    panes: int = 0
    agents: int = 0


def save(looked: Sequence[Looked | Missed], store: SnapshotStore) -> list[SaveResult]:
    """Keep every capture, and say for each server what became of it. A server that was missed loses nothing."""
    results = []
    for each in looked:
        try:
            results.append(_kept(each, store) if isinstance(each, Missed) else _saved(each, store))
        except StoreUnusable as error:
            results += unsaved([each], error)
    return results


def _saved(looked: Looked, store: SnapshotStore) -> SaveResult:
    capture = without_temporary(looked.capture)
    if not capture.topology.sessions:
        message = f"The server on {capture.server.socket} has nothing but a restore at work."
        return _kept(Missed(server=capture.server, reason=Miss.EMPTY, message=message), store)
    saved = store.save_snapshot(capture, looked.scrollback)
    topology = capture.topology
    counts = (len(topology.sessions), len(topology.windows), len(topology.panes), topology.agents)
    return _result(capture.server, "saved" if saved.new else "unchanged", snapshot=saved.id, counts=counts)


def _kept(missed: Missed, store: SnapshotStore) -> SaveResult:
    last = next(iter(store.list_snapshots(server=missed.server, limit=1)), None)
    return _result(
        missed.server,
        "kept" if missed.reason in (Miss.NO_SERVER, Miss.EMPTY) else "failed",
        reason=missed.reason.value,
        message=missed.message,
        snapshot=last.id if last else None,
        counts=(last.sessions, last.windows, last.panes, last.agents) if last else _NOTHING,
    )


def unsaved(looked: Sequence[Looked | Missed], error: StoreUnusable) -> list[SaveResult]:
    """Say for each server that the store could not take it."""
    servers = [each.server if isinstance(each, Missed) else each.capture.server for each in looked]
    return [_result(server, "failed", reason="store", message=error.message) for server in servers]


_NOTHING = (0, 0, 0, 0)


def _result(
    server: Server,
    result: str,
    *,
    reason: str | None = None,
    message: str | None = None,
    snapshot: str | None = None,
    counts: tuple[int, int, int, int] = _NOTHING,
) -> SaveResult:
    sessions, windows, panes, agents = counts
    return SaveResult(
        user=server.user,
        uid=server.uid,
        socket=server.socket,
        result=result,
        reason=reason,
        message=message,
        snapshot=snapshot,
        sessions=sessions,
        windows=windows,
        panes=panes,
        agents=agents,
    )


class Prunable(SnapshotStore, RunStore, EventLog, Protocol):
    """Where snapshots, runs and events are kept."""


def prune(store: Prunable, config: Config, now: datetime) -> int:
    """Let go of what the policy no longer keeps, at most once an hour; return how many snapshots went.

    What goes is gone for good, so the clock has to be believed first: after a leap, forward or back, the time is only
    noted, and only when it has gone on from there for an hour does anything go.
    """
    last = store.pruned_at()
    if last is not None and timedelta() <= now - last < _PRUNE_EVERY:
        return 0
    if last is None or not timedelta() <= now - last <= _LEAP:
        return store.prune_snapshots((), now)
    store.forget_events(now - timedelta(days=config.retention.events_days))
    store.forget_runs(now - timedelta(days=config.retention.runs_days))
    listed = store.list_snapshots()
    gone = set(doomed(listed, now, config.retention, _zone(config.zone)))
    gone -= _needed(store, [each for each in listed if each.origin == CAPTURED], gone, now)
    return store.prune_snapshots(gone, now, restores_before=horizon(now, config.retention))


def _needed(store: SnapshotStore, listed: Iterable[SnapshotSummary], gone: set[str], now: datetime) -> set[str]:
    """Return what tells what ended with servers that others have followed lately, and what of that has come back since."""
    lineages: dict[str, list[SnapshotSummary]] = {}
    for each in listed:
        lineages.setdefault(each.server.key, []).append(each)
    needed: set[str] = set()
    for lineage in lineages.values():
        if not gone.isdisjoint(each.id for each in lineage):
            needed |= {each.id for one in former_in(store, lineage, now) for each in (one.last, *one.since)}
    return needed


def _zone(name: str) -> tzinfo:
    if name == "UTC":
        return UTC
    from zoneinfo import ZoneInfo  # dear to import, and needed once an hour at most

    return ZoneInfo(name)
