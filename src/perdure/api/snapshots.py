"""Snapshots: what is kept, one of them, what a pane showed, and what differs between two."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, TypeAlias

from litestar import Response, get
from litestar.params import QueryParameter
from msgspec import Struct

from perdure.agents import environment_names
from perdure.api.asking import Asked, Cursor, Id, Limit, Who, World
from perdure.api.caller import Caller
from perdure.api.commands import answered
from perdure.api.failures import UNCHANGED, failures
from perdure.api.replies import PAGE, Page, cursor_of, unless_known, value_in
from perdure.api.world import ApiWorld
from perdure.errors import ScrollbackNotFound, SnapshotNotFound
from perdure.model.server import Server
from perdure.model.snapshot import Snapshot, SnapshotSummary
from perdure.snapshots.diff import Change
from perdure.snapshots.redact import Discretion, redacted
from perdure.snapshots.shown import SnapshotRow, shown_changes, snapshot_row
from perdure.store.store import Store

#: Stands for what runs now, in place of a snapshot's id.
NOW = "now"
#: How many lines of a pane are given at most.
_MOST_LINES = 10_000

Socket: TypeAlias = Annotated[
    str | None, QueryParameter(name="socket", max_length=4096, description="Only of the server on this socket.")
]
PaneId: TypeAlias = Annotated[str, QueryParameter(pattern=r"^%[0-9]{1,9}$", description="The pane's id, such as %3.")]
Lines: TypeAlias = Annotated[int, QueryParameter(ge=1, le=_MOST_LINES, description="The last so many lines.")]


class SnapshotDiff(Struct, frozen=True, kw_only=True):
    """What changed from one snapshot to another, or to now."""

    a: str
    #: null: what runs now.
    b: str | None
    changes: list[Change]


class Scrollback(Struct, frozen=True, kw_only=True):
    """What a pane showed, with its colours as a terminal reads them."""

    snapshot: str
    pane_id: str
    scrollback: str
    #: Lines before these were kept, and not asked for.
    truncated: bool


class _Place(Struct, frozen=True, array_like=True):
    """Where in the history a page ended."""

    seen_at: datetime
    id: str


@get("/api/snapshots", responses={**failures(), **UNCHANGED})
async def list_snapshots(
    world: World, caller: Who, request: Asked, limit: Limit = PAGE, cursor: Cursor = None, of: Socket = None
) -> Response[Page[SnapshotRow]]:
    """What is kept, the snapshot that was seen last first."""
    place = value_in(cursor, _Place)

    def wanted(each: SnapshotSummary) -> bool:
        return of in (None, each.server.socket) and may_see(world, caller, each.server)

    def work(store: Store) -> Page[SnapshotRow]:
        found: list[SnapshotSummary] = []
        at = place
        while len(found) <= limit:
            batch = _behind(store, at, limit + 1)
            found += filter(wanted, batch)
            if len(batch) <= limit:
                break
            at = _place_of(batch[-1])
        more = len(found) > limit
        return Page(
            items=[snapshot_row(each) for each in found[:limit]],
            next=cursor_of(_place_of(found[limit - 1])) if more else None,
        )

    return unless_known(request, await world.read(work))


@get("/api/snapshots/{id:str}", responses=failures(404))
async def one_snapshot(world: World, caller: Who, id: Id) -> Snapshot:
    """One snapshot, by its id or the beginning of it, as it was kept; secrets aside."""
    config = world.config

    def work(store: Store) -> Snapshot:
        harmless, private = environment_names(config.agents), frozenset(config.restore.environment)
        # Here, too: of many panes there is much to look through.
        return redacted(find(world, caller, store, id), Discretion(harmless=harmless, private=private))

    return await world.read(work)


@get("/api/snapshots/{id:str}/scrollback", responses=failures(404))
async def scrollback(world: World, caller: Who, id: Id, pane: PaneId, lines: Lines = 500) -> Scrollback:
    """What a pane of a snapshot showed when it was kept. It holds whatever was on the screen."""

    def work(store: Store) -> Scrollback:
        snapshot = find(world, caller, store, id)
        details = snapshot.details.panes.get(pane)
        if details is None or details.scrollback is None:
            raise ScrollbackNotFound(f"No scrollback was kept of pane {pane} in snapshot {snapshot.id}.")
        text = store.read_scrollback(details.scrollback).decode(errors="replace").removesuffix("\n").split("\n")
        return Scrollback(
            snapshot=snapshot.id, pane_id=pane, scrollback="\n".join(text[-lines:]), truncated=len(text) > lines
        )

    return await world.read(work)


@get("/api/snapshots/{id:str}/diff/{other:str}", responses=failures(404, 504))
async def diff(world: World, caller: Who, id: Id, other: Id) -> SnapshotDiff:
    """What changed from one snapshot to another, or to what runs now (`now`)."""
    if other == NOW:
        before = await world.read(lambda store: find(world, caller, store, id))
        # A look at the server, which is the daemon's thread's alone to take in this process.
        return await answered(world, SnapshotDiff, "diff", "--json", before.id)

    def work(store: Store) -> SnapshotDiff:
        before, after = find(world, caller, store, id), find(world, caller, store, other)
        private = world.config.restore.environment
        return SnapshotDiff(a=before.id, b=after.id, changes=shown_changes(before.topology, after.topology, private))

    return await world.read(work)


def may_see(world: ApiWorld, caller: Caller, server: Server) -> bool:
    """Return whether what is kept of a server may be shown to the caller."""
    return world.owners_only(caller) or caller.uid == server.uid


def find(world: ApiWorld, caller: Caller, store: Store, id: str) -> Snapshot:
    """Return a snapshot of the caller's by its id, or the beginning of it. Raises `SnapshotNotFound`."""
    snapshot = store.get_snapshot(id)
    if not may_see(world, caller, snapshot.server):
        raise SnapshotNotFound(f"There is no snapshot {id}.")
    return snapshot


def _behind(store: Store, place: _Place | None, limit: int) -> list[SnapshotSummary]:
    """Return the first summaries behind a place. One that was seen again meanwhile stands before it, and is not repeated."""
    if place is None:
        return list(store.list_snapshots(limit=limit))
    before = place.seen_at + timedelta(microseconds=1)
    extra = 1
    while True:
        found = list(store.list_snapshots(before=before, limit=limit + extra))
        ids = [each.id for each in found]
        # Several may have been seen at the same moment: those up to the one that was given last are through.
        rest = found[ids.index(place.id) + 1 :] if place.id in ids else found
        if len(rest) >= limit or len(found) < limit + extra:
            return rest[:limit]
        extra *= 4


def _place_of(summary: SnapshotSummary) -> _Place:
    return _Place(summary.last_seen_at, summary.id)


ROUTES = (list_snapshots, one_snapshot, scrollback, diff)
