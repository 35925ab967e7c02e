"""Which snapshots a restore is about, when nobody says which."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import takewhile

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
    """A snapshot to bring back."""

    snapshot: str
    #: How many panes it has, when it is taken because the latest has so many less; None when it is the latest.
    dropped_from: int | None = None
    #: The latest one then: what came into it since is brought back after the other.
    latest: str | None = None


def servers_of(store: SnapshotStore, *, host: str, uid: int, socket: str | None, now: datetime) -> Sequence[Server]:
    """Return the servers of a user that may be brought back: the one on a socket, else all that were seen lately."""
    since = now - _LATELY if socket is None else datetime.min.replace(tzinfo=now.tzinfo)
    found = store.servers(host=host, uid=uid, seen_since=since)
    return found if socket is None else [server for server in found if server.socket == socket]


def saved_users(store: SnapshotStore, *, host: str, socket: str | None, now: datetime) -> Sequence[int]:
    """Return the uids of everybody a server of this machine is saved of: that on a socket, else any seen lately."""
    found = store.list_snapshots()
    if socket is None:
        found = tuple(takewhile(lambda each: each.last_seen_at >= now - _LATELY, found))
    uids = (each.server.uid for each in found if each.server.host == host and socket in (None, each.server.socket))
    return list(dict.fromkeys(uids))


def choose(lineage: Sequence[SnapshotSummary], *, now: datetime) -> Choice | None:
    """Return the last good snapshot of a server, None when there is none. `lineage` is listed as the store does."""
    # Newest first: where a clock that was set back has made times equal, the order is all that tells.
    chosen = last_good(list(reversed(lineage)), now)
    if chosen is None:
        return None
    snapshot = chosen.snapshot
    if chosen.instead_of is None:
        return Choice(snapshot=snapshot.id)
    return Choice(snapshot=snapshot.id, dropped_from=snapshot.panes, latest=chosen.instead_of.id)


def unfinished(journal: RestoreJournal, server: Server, process: ServerProcess | None, now: datetime) -> Restore | None:
    """Return a restore of this server to go on with: its server still runs, and nobody has ended it."""
    found = journal.open_restore(server)
    if found is None or process is None or now - found.began_at > _FRESH:
        return None
    return found if found.process in (None, process) else None


def abandoned(journal: RestoreJournal, server: Server, now: datetime) -> Restore | None:
    """Return a restore that was interrupted and whose server is gone, None when there is none.

    What was saved in between may hold only the half of it that had been made.
    """
    found = journal.open_restore(server)
    return None if found is None or now - found.began_at > _FRESH else found
