"""A store that is only read: for disks that are full or read-only, and for whoever must not write."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING

from perdure import errors
from perdure.model.event import Event, StoredEvent
from perdure.model.plan import Outcome, Restore
from perdure.model.run import Run
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
from perdure.store import connect, migrations
from perdure.store.driver import Driver
from perdure.store.manifest import Manifest, read_manifests
from perdure.store.read_only_sqlite import NoDatabase, ReadOnlySQLite
from perdure.store.rows import counts_of
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.store.followed import FollowedChats
    from perdure.store.jobs import JobBook


def open_read_only(url: str, state_dir: str) -> Store:
    """Return the store at `url` as it stands. What `open_store` says of `read_only` holds."""
    driver = connect(url, read_only=True)
    try:
        if migrations.is_in_use(driver):
            return ReadOnlyStore(driver, state_dir, unseen=_unread_log(driver))
    except BaseException:
        driver.close()
        raise
    driver.close()
    empty = NoDatabase()
    migrations.bring_up_to_date(empty)
    return ReadOnlyStore(empty, state_dir, unseen=_NO_DATABASE)


class ReadOnlyStore(Store):
    """A `Store` that refuses to save, to prune, to begin a restore, and to record, forget or lease anything.

    Nobody can take manifests into its database, so what they are ahead by is laid over what the database says.
    """

    def __init__(self, driver: Driver, state_dir: str, *, unseen: Problem | None) -> None:
        super().__init__(driver, state_dir)
        self.unseen = unseen

    def save_snapshot(
        self, capture: Capture, scrollback: Mapping[str, bytes] | None, *, origin: str = CAPTURED
    ) -> Saved:
        raise _nothing_saved()

    def prune_snapshots(
        self, doomed: Collection[str], now: datetime, *, restores_before: datetime | None = None
    ) -> int:
        raise _nothing_removed()

    def begin_restore(self, restore: Restore) -> None:
        raise _nothing_saved()

    def note_outcomes(self, id: str, outcomes: Mapping[str, Outcome]) -> None:
        raise _nothing_saved()

    def end_restore(self, id: str, now: datetime, outcomes: Mapping[str, Outcome]) -> None:
        raise _nothing_saved()

    def new_runs(self, count: int) -> tuple[str, ...]:
        raise _nothing_saved()

    def record(self, runs: Sequence[Run], events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        raise _nothing_saved()

    def go_on_behind(self, event: int) -> None:
        """Not here."""
        raise _nothing_saved()

    def make_up_for_untold(self) -> None:
        """Nothing: whoever may write tells it."""

    def forget_runs(self, before: datetime) -> int:
        raise _nothing_removed()

    def forget_events(self, before: datetime) -> int:
        raise _nothing_removed()

    def take_lease(self, name: str, holder: str, now: datetime, *, until: datetime) -> str | None:
        raise _nothing_saved()

    def drop_lease(self, name: str, holder: str) -> None:
        raise _nothing_removed()

    @cached_property
    def chats(self) -> FollowedChats:
        """The chats as they stand."""
        from perdure.store.followed import FollowedChats

        return FollowedChats(self.driver, self.add_events, read_only=True)

    @cached_property
    def jobs(self) -> JobBook:
        """The jobs as they stand."""
        from perdure.store.jobs import JobBook

        return JobBook(self, read_only=True)

    def get_snapshot(self, id: str) -> Snapshot:
        found = super().get_snapshot(id)
        return self._ahead().get(found.id, found)

    def whereabouts(self, ids: Iterable[str]) -> Iterator[Whereabouts]:
        ahead = self._ahead()
        for id in ids:
            if id in ahead:
                yield whereabouts_of(ahead[id])
            else:
                yield from super().whereabouts([id])

    def list_snapshots(
        self, *, server: Server | None = None, before: datetime | None = None, limit: int | None = None
    ) -> tuple[SnapshotSummary, ...]:
        kept = super().list_snapshots(server=server, before=before, limit=limit)
        ahead = self._ahead()
        lines = [line for line in kept if line.id not in ahead]
        lines += [
            _summary(each)
            for each in ahead.values()
            if (server is None or each.server.key == server.key) and (before is None or each.last_seen_at < before)
        ]
        lines.sort(key=lambda line: (line.last_seen_at, line.taken_at), reverse=True)
        return tuple(lines[:limit])

    def _ahead(self) -> dict[str, Snapshot]:
        """By id what the manifests have and the database has not, or not as late."""
        found = [each.snapshot for each in read_manifests(self.state_dir) if isinstance(each, Manifest)]
        found.sort(key=lambda snapshot: snapshot.last_seen_at)
        return {each.id: each for each in found if self.is_ahead(each.id, each.last_seen_at)}


def _nothing_saved() -> errors.StoreUnusable:
    return errors.StoreUnusable("The store is only read here: nothing can be saved in it.")


def _nothing_removed() -> errors.StoreUnusable:
    return errors.StoreUnusable("The store is only read here: nothing can be removed from it.")


_NO_DATABASE = Problem(
    where="database", what="There is none that was ever used; the manifests alone were read.", repairable=False
)


def _unread_log(driver: Driver) -> Problem | None:
    if not isinstance(driver, ReadOnlySQLite) or driver.unread_log is None:
        return None
    what = "This log of the database cannot be read here; what only the log holds was not looked at."
    return Problem(where=driver.unread_log, what=what, repairable=False)


def _summary(snapshot: Snapshot) -> SnapshotSummary:
    return SnapshotSummary(
        id=snapshot.id,
        server=snapshot.server,
        origin=snapshot.origin,
        taken_at=snapshot.taken_at,
        last_seen_at=snapshot.last_seen_at,
        **counts_of(snapshot.topology),
    )
