"""Which snapshots a restore is about, when nobody says which."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from perdure.model.plan import Restore
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import SnapshotSummary
from perdure.ports import RestoreJournal, SnapshotStore
from perdure.snapshots.drop import last_good

#: A server nobody has seen for longer was left, not lost.
_LATELY = timedelta(hours=48)
#: A restore that was interrupted longer ago is not what anybody waits for.
_FRESH = timedelta(hours=24)


class Choice(Struct, frozen=True, kw_only=True):
    """A snapshot to bring back, and what to say about the choice."""

    snapshot: str
    said: str = ""


def servers_of(store: SnapshotStore, *, host: str, uid: int, socket: str | None, now: datetime) -> Sequence[Server]:
    """Return the servers of a user that may be brought back: the one on a socket, else all that were seen lately."""
    since = now - _LATELY if socket is None else datetime.min.replace(tzinfo=now.tzinfo)
    found = store.servers(host=host, uid=uid, seen_since=since)
    return found if socket is None else [server for server in found if server.socket == socket]


def choose(lineage: Sequence[SnapshotSummary], *, panes: int, now: datetime) -> Choice | None:
    """Return the last good snapshot of a server, with a word where it is not the latest. `panes` are there now."""
    chosen = last_good(lineage, now)
    if chosen is None:
        return None
    snapshot = chosen.snapshot
    said = f"before the crash: {snapshot.panes} panes, now: {panes}" if chosen.instead_of is not None else ""
    return Choice(snapshot=snapshot.id, said=said)


def unfinished(journal: RestoreJournal, server: Server, process: ServerProcess | None, now: datetime) -> Restore | None:
    """Return a restore of this server to go on with: its server still runs, and nobody has ended it."""
    found = journal.open_restore(server)
    if found is None or process is None or now - found.began_at > _FRESH:
        return None
    return found if found.process in (None, process) else None
