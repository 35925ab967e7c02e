"""Servers that a daemon has watched and the next one does not find: what is known of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.daemon.world import DaemonStore
from perdure.model.event import EventKind, StoredEvent
from perdure.model.run import Run
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Snapshot
from perdure.ports import SnapshotStore
from perdure.snapshots.former import former_in, readable


class Watched(Struct, frozen=True, kw_only=True):
    """A server as its runs tell of it."""

    server: Server
    process: ServerProcess
    #: How many agents were in it, or were to be.
    agents: int
    #: The snapshot it was made from, where nobody has seen it since it was brought back.
    made_from: str | None = None


def missed(runs: Iterable[Run], events: Iterable[StoredEvent]) -> list[Watched]:
    """Return the servers of runs that are not over, but for those of whose deaths these events tell. Pure."""
    agents: dict[tuple[str, ServerProcess], int] = {}
    servers = {}
    for run in runs:
        if run.process is not None:
            servers[run.server.key] = run.server
            key = (run.server.key, run.process)
            agents[key] = agents.get(key, 0) + (run.program is not None)
    deaths = [each.event for each in events if each.event.kind is EventKind.SERVER_DIED]

    def is_told(key: str, process: ServerProcess) -> bool:
        # Numbers are given again, at the latest by the next boot.
        return any(
            (each.server, each.data.get("pid")) == (key, process.pid) and each.at >= process.started_at
            for each in deaths
        )

    return [
        Watched(server=servers[key], process=process, agents=count)
        for (key, process), count in agents.items()
        if not is_told(key, process)
    ]


def made_since(store: DaemonStore, server: Server, since: datetime) -> Watched | None:
    """Return the server that the latest restore has made since then, with what was to be in it; None when it made none."""
    latest = next((each for each in store.list_restores() if each.server.key == server.key), None)
    # It may have gone on with one that was interrupted, on a server of long ago. tmux tells whole seconds.
    if latest is None or latest.process is None or latest.process.started_at < since - timedelta(seconds=1):
        return None
    composed = (latest.composed,) if latest.composed is not None else readable(store, [latest.snapshot])
    agents = sum(snapshot.topology.agents for snapshot in composed)
    return Watched(server=latest.server, process=latest.process, agents=agents, made_from=latest.snapshot)


def last_saved(store: SnapshotStore, watched: Watched, now: datetime) -> Snapshot | None:
    """Return what was last saved of a server before it went; None when nothing was, or cannot be read."""
    lineage = store.list_snapshots(server=watched.server)
    candidates = [*lineage[:1], *(each.last for each in former_in(store, lineage, now))]
    found = readable(store, (each.id for each in candidates))
    return next((each for each in found if each.topology.process == watched.process), None)
