"""Snapshots and what differs between two, as programs get to see them, secrets aside. Pure."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.model.secrets import redact_argv, redact_text
from perdure.model.snapshot import SnapshotSummary
from perdure.model.topology import Topology
from perdure.snapshots.diff import Change, diff
from perdure.snapshots.redact import redact_options


class SnapshotRow(Struct, frozen=True, kw_only=True):
    """A snapshot's line in the history."""

    id: str
    host: str
    user: str
    socket: str
    taken_at: datetime
    last_seen_at: datetime
    sessions: int
    windows: int
    panes: int
    agents: int
    origin: str


def snapshot_row(each: SnapshotSummary) -> SnapshotRow:
    """Return a snapshot for scripts."""
    return SnapshotRow(
        id=each.id,
        host=each.server.host,
        user=each.server.user,
        socket=each.server.socket,
        taken_at=each.taken_at,
        last_seen_at=each.last_seen_at,
        sessions=each.sessions,
        windows=each.windows,
        panes=each.panes,
        agents=each.agents,
        origin=each.origin,
    )


def shown_changes(before: Topology, after: Topology, private: Collection[str]) -> list[Change]:
    """Return what changed between two states of a server; the values of `private` variables are never shown."""
    return [
        msgspec.structs.replace(change, before=_clean(change.before, private), after=_clean(change.after, private))
        for change in diff(before, after)
    ]


def _clean(value: object, private: Collection[str]) -> object:
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, dict):
        return redact_options(value, private)
    return list(redact_argv(value)) if isinstance(value, list) else value
