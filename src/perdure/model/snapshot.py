"""A capture, identified, and the snapshot it becomes in the store."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.model.server import Server, ServerProcess
from perdure.model.topology import Details, Topology


class Miss(StrEnum):
    """Why a server gave no capture. None of these says anything about what was there before."""

    NO_SERVER = "no-server"
    UNREACHABLE = "unreachable"
    EMPTY = "empty"
    INCOMPLETE = "incomplete"
    REFUSED = "refused"


class Missed(Struct, frozen=True, kw_only=True):
    """A server that was asked and gave no complete capture."""

    server: Server
    reason: Miss
    #: One sentence for a person.
    message: str


class Capture(Struct, frozen=True, kw_only=True):
    """A complete reading of one server at one moment."""

    server: Server
    taken_at: datetime
    topology: Topology
    details: Details


#: Where a snapshot came from. Only captures count as the last good state of a server.
CAPTURED = "capture"


class Snapshot(Struct, frozen=True, kw_only=True):
    """A capture kept for good. Equal state keeps its id; `details` and `last_seen_at` are the latest known."""

    id: str
    server: Server
    origin: str = CAPTURED
    taken_at: datetime
    last_seen_at: datetime
    topology: Topology
    details: Details


class Whereabouts(Struct, frozen=True, kw_only=True):
    """Who was where in a snapshot, and nothing else: of this, hundreds are read in the time of a few whole ones."""

    id: str
    last_seen_at: datetime
    process: ServerProcess
    #: Agents, each with a conversation.
    conversations: frozenset[tuple[str, str]]
    #: Names of sessions, each with the index of a window.
    places: frozenset[tuple[str, int]]


def whereabouts_of(snapshot: Snapshot) -> Whereabouts:
    """Return who was where in a snapshot."""
    topology = snapshot.topology
    names = {session.id: session.name for session in topology.sessions}
    lodgers = (pane.identity for pane in topology.panes if pane.identity is not None)
    return Whereabouts(
        id=snapshot.id,
        last_seen_at=snapshot.last_seen_at,
        process=topology.process,
        conversations=frozenset((each.agent, each.conversation) for each in lodgers if each.conversation is not None),
        places=frozenset((names[link.session], link.index) for link in topology.links),
    )


class SnapshotSummary(Struct, frozen=True, kw_only=True):
    """A snapshot's line in the history."""

    id: str
    server: Server
    origin: str = CAPTURED
    taken_at: datetime
    last_seen_at: datetime
    sessions: int
    windows: int
    panes: int
    agents: int


class Saved(Struct, frozen=True, kw_only=True):
    """What saving a capture came to: a new snapshot, or the one that already said the same."""

    id: str
    new: bool


class Problem(Struct, frozen=True, kw_only=True):
    """Something `check` found: where, what, and whether `--repair` mends it."""

    where: str
    what: str
    repairable: bool
