"""The store's verbs, written once over whichever database."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from perdure import errors
from perdure.model.event import EventKind, StoredEvent
from perdure.model.server import Server
from perdure.model.snapshot import (
    CAPTURED,
    Capture,
    Problem,
    Saved,
    Snapshot,
    SnapshotSummary,
    Whereabouts,
    whereabouts_of,
)
from perdure.store.driver import Driver
from perdure.store.inherit import known_scrollback, with_scrollback
from perdure.store.journal import Journal
from perdure.store.leases import LeaseBook
from perdure.store.manifest import Manifest, Shelf, read_manifests, read_scrollback
from perdure.store.numbers import GIVING
from perdure.store.placing import Placed, place
from perdure.store.records import NO_LIMIT, Records
from perdure.store.rows import UNREADABLE, Coming, coming_from, moment_of, stamp, summary_from
from perdure.store.runs import Runs

if TYPE_CHECKING:
    from perdure.store.followed import FollowedChats
    from perdure.store.jobs import JobBook

_ID = re.compile(r"[0-9a-f]{1,16}")
_PRUNED_AT = "pruned_at"


class Store(Journal, Runs, LeaseBook):
    """A `SnapshotStore`, `RestoreJournal`, `RunStore`, `EventLog` and `Leases`; `open_store` makes one."""

    #: What of the database could not be looked at, when there is such a part.
    unseen: Problem | None = None

    def __init__(self, driver: Driver, state_dir: str) -> None:
        Journal.__init__(self, driver)
        Runs.__init__(self, driver, state_dir)
        LeaseBook.__init__(self, driver)
        self.state_dir = state_dir
        self.records = Records(driver)
        self.shelf = Shelf(state_dir)

    def save_snapshot(
        self, capture: Capture, scrollback: Mapping[str, bytes] | None, *, origin: str = CAPTURED
    ) -> Saved:
        if origin != CAPTURED:
            with self.driver.transaction(capture.server.key):
                return _saved(place(self.records, coming_from(capture, origin), scrollback or {}))
        with self._capturing(capture):
            if scrollback is None:
                capture = self._inheriting(capture)
            placed = place(self.records, coming_from(capture, origin), scrollback or {})
            if placed.latest:
                # Inside the transaction: of two saves at once, the one that commits last wrote the manifest last.
                self.shelf.put(_manifest(capture, placed), self.packed_scrollback)
        return _saved(placed)

    def latest_snapshot(self, server: Server) -> Snapshot | None:
        readable, head = self.newest_readable(server.key), self._head(server)
        # A manifest is ahead of what can be read when a save was killed before its commit, and when the row of
        # the latest snapshot is damaged: either way it is the last good one.
        if head is not None and (readable is None or head[1] > readable.last_seen_at):
            return self._from_manifest(server) or readable
        return readable

    def servers(self, *, host: str, uid: int, seen_since: datetime) -> tuple[Server, ...]:
        rows = self.records.servers_of(CAPTURED, host, uid, stamp(seen_since))
        return tuple(Server(host=host, user=owner, uid=uid, socket=socket) for owner, socket in rows)

    def get_snapshot(self, id: str) -> Snapshot:
        found = self.records.ids_beginning(id) if _ID.fullmatch(id) else []
        if len(found) > 1:
            raise errors.AmbiguousSnapshot(f"More than one snapshot begins with {id}.")
        snapshot = self.records.snapshot(found[0]) if found else self._manifest_beginning(id)
        if snapshot is None:
            raise errors.SnapshotNotFound(f"There is no snapshot {id}.")
        return snapshot

    def whereabouts(self, ids: Iterable[str]) -> Iterator[Whereabouts]:
        for id in ids:
            with suppress(errors.SnapshotNotFound, errors.SnapshotDamaged):
                yield self.records.whereabouts(id) or whereabouts_of(self.get_snapshot(id))

    def list_snapshots(
        self, *, server: Server | None = None, before: datetime | None = None, limit: int | None = None
    ) -> tuple[SnapshotSummary, ...]:
        rows = self.records.summaries(
            server, None if before is None else stamp(before), NO_LIMIT if limit is None else limit
        )
        found = []
        for row in rows:
            # Even the line is unreadable: `check` says so, and the others are listed.
            with suppress(errors.SnapshotDamaged):
                found.append(summary_from(row))
        return tuple(found)

    def read_scrollback(self, digest: str) -> bytes:
        is_damaged = False
        try:
            text = self.records.scrollback(digest)
        except ValueError:
            text, is_damaged = None, True
        if text is None:
            text = read_scrollback(self.state_dir, digest)
        if text is None and is_damaged:
            raise errors.SnapshotDamaged(f"Scrollback {digest} cannot be read back; the rest is not affected.")
        if text is None:
            raise errors.ScrollbackNotFound(f"Scrollback {digest} was not kept.")
        return text

    def absent_scrollback(self, digests: Collection[str]) -> set[str]:
        return self.records.absent(digests)

    def prune_snapshots(
        self, doomed: Collection[str], now: datetime, *, restores_before: datetime | None = None
    ) -> int:
        with self.driver.transaction():
            kept = self._last_good() | self.in_use()
            count = sum(self.records.delete(id) for id in sorted(set(doomed) - kept))
            self.records.delete_unused_scrollbacks()
            self.forget_restores(restores_before)
            self.records.remember(_PRUNED_AT, stamp(now))
        return count

    def pruned_at(self) -> datetime | None:
        text = self.records.fact(_PRUNED_AT)
        # One that cannot be read is as good as none: the next prune writes it anew.
        with suppress(*UNREADABLE):
            return None if text is None else moment_of(text)
        return None

    def check(self) -> tuple[Problem, ...]:
        from perdure.store.check import problems

        return tuple(problems(self))

    def close(self) -> None:
        if "chats" in self.__dict__:
            self.chats.close()
        self.driver.close()

    @cached_property
    def chats(self) -> FollowedChats:
        """The chats in the same database: a `ChatStore`, for several threads at once when the store is."""
        # Only here: a save must not pay for it.
        from perdure.store.followed import FollowedChats

        return FollowedChats(self.driver, self.add_events)

    @cached_property
    def jobs(self) -> JobBook:
        """The jobs in the same database: a `JobStore`."""
        from perdure.store.jobs import JobBook

        return JobBook(self)

    def read_events(
        self, *, after: int = 0, limit: int = 500, run: str | None = None, kinds: Collection[EventKind] = ()
    ) -> tuple[StoredEvent, ...]:
        self.make_up_for_untold()
        return super().read_events(after=after, limit=limit, run=run, kinds=kinds)

    def last_event(self) -> int:
        self.make_up_for_untold()
        return super().last_event()

    def make_up_for_untold(self) -> None:
        """Tell what was said in chats and not told yet; where nothing can be written, somebody else will."""
        from perdure.store.untold import is_untold, tell_said

        with suppress(errors.StoreUnusable):
            if is_untold(self.driver):
                with self.driver.transaction(GIVING):
                    tell_said(self.driver, self.add_events)

    def begin(self) -> None:
        """Let a database that never held anything go on from what the state directory has."""
        self.load_manifests()
        with self.driver.transaction(GIVING):
            self.numbers.catch_up()

    def load_manifests(self) -> tuple[str, ...]:
        """Take every manifest the database does not know, or knows less of; return the ids of their snapshots."""
        manifests = [found for found in read_manifests(self.state_dir) if isinstance(found, Manifest)]
        taken = []
        for manifest in sorted(manifests, key=lambda manifest: manifest.snapshot.last_seen_at):
            with self.driver.transaction(manifest.snapshot.server.key):
                if self.adopt(manifest):
                    taken.append(manifest.snapshot.id)
        return tuple(taken)

    def adopt(self, manifest: Manifest) -> bool:
        """Make a manifest's snapshot one of ours, inside a transaction; False when it already is."""
        snapshot = manifest.snapshot
        if not self.is_ahead(snapshot.id, snapshot.last_seen_at):
            return False
        coming = coming_from(snapshot, snapshot.origin)
        texts = self.shelf.texts(manifest, self.records.absent(coming.digests))
        self._keep(snapshot.id, manifest.parent, stamp(snapshot.taken_at), coming, texts)
        return True

    def is_ahead(self, id: str, last_seen_at: datetime) -> bool:
        """Return whether a manifest's snapshot is missing here, or was seen later than we know of."""
        there = self.records.standing(id)
        return there is None or stamp(last_seen_at) > there.last_seen_at

    def newest_readable(self, server_key: str) -> Snapshot | None:
        """Return the latest captured snapshot of a server that the database can still read."""
        for id in self.records.ids_of(server_key, CAPTURED):
            with suppress(errors.SnapshotDamaged):
                return self.records.snapshot(id)
        return None

    def packed_scrollback(self, digests: set[str]) -> dict[str, bytes]:
        """Return those of the texts that are kept, as they are kept."""
        return {digest: data for digest, _, data in self.records.scrollbacks(digests)}

    def _keep(self, id: str, parent: str | None, taken_at: str, coming: Coming, texts: Mapping[str, bytes]) -> None:
        if not self.records.insert(id, parent, taken_at, coming, texts):
            self.records.see_again(id, coming, texts)

    @contextmanager
    def _capturing(self, capture: Capture) -> Iterator[None]:
        """One transaction that begins by taking in what was kept of this server while there was no database."""
        with self.driver.transaction(capture.server.key), self.shelf.held(capture.taken_at):
            waiting = self._adopt_ahead(capture.server)
            yield
        self.shelf.remove(waiting)

    def _inheriting(self, capture: Capture) -> Capture:
        latest = self.records.latest(capture.server, CAPTURED)
        row = self.records.row(latest.id) if latest else None
        return with_scrollback(capture, known_scrollback(row, capture.topology))

    def _adopt_ahead(self, server: Server) -> list[str]:
        taken = []
        for path in self.shelf.waiting(server):
            manifest = self.shelf.read(path)
            if manifest is not None:
                self.adopt(manifest)
                taken.append(path)
        head = self.shelf.head(server)
        if head is not None and self.is_ahead(*head):
            manifest = self.shelf.read(self.shelf.path(server))
            if manifest is not None:
                self.adopt(manifest)
        return taken

    def _head(self, server: Server) -> tuple[str, datetime] | None:
        try:
            return self.shelf.head(server)
        except errors.StoreTooNew:
            return None

    def _from_manifest(self, server: Server) -> Snapshot | None:
        manifest = self.shelf.read(self.shelf.path(server))
        return None if manifest is None else manifest.snapshot

    def _manifest_beginning(self, id: str) -> Snapshot | None:
        """A snapshot that so far only a manifest has."""
        found = [
            manifest.snapshot
            for manifest in (read_manifests(self.state_dir) if _ID.fullmatch(id) else ())
            if isinstance(manifest, Manifest) and manifest.snapshot.id.startswith(id)
        ]
        return found[0] if len(found) == 1 else None

    def _last_good(self) -> set[str]:
        """The latest captured snapshot of every server, and when it cannot be read the latest that can."""
        kept: set[str] = set()
        for server in self.records.servers(CAPTURED):
            for id in self.records.ids_of(server, CAPTURED):
                kept.add(id)
                with suppress(errors.SnapshotDamaged):
                    self.records.snapshot(id)
                    break
        return kept


def _saved(placed: Placed) -> Saved:
    return Saved(id=placed.id, new=placed.new)


def _manifest(capture: Capture, placed: Placed) -> Manifest:
    return Manifest(
        parent=placed.parent,
        snapshot=Snapshot(
            id=placed.id,
            server=capture.server,
            taken_at=moment_of(placed.taken_at),
            last_seen_at=capture.taken_at,
            topology=capture.topology,
            details=capture.details,
        ),
    )
