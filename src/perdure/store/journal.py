"""The journal of restores: what each was going to make, and what came of it so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure import errors
from perdure.model.plan import Outcome, Restore
from perdure.model.server import Server
from perdure.store.driver import Driver, Row
from perdure.store.queries import queries
from perdure.store.records import NO_LIMIT
from perdure.store.rows import UNREADABLE, canonical, decoded, moment_of, packed, stamp


class Damage(Struct, frozen=True, kw_only=True):
    """Something in the journal that cannot be read back: a restore, or what came of one of its panes."""

    restore: str
    pane: str | None = None


class Journal:
    """A `RestoreJournal`. What cannot be read costs only itself: such a restore is not there, such an outcome unknown."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._sql = queries()

    def begin_restore(self, restore: Restore) -> None:
        began_at = stamp(restore.began_at)
        with self.driver.transaction(restore.server.key):
            self.driver.execute(self._sql["delete_restore"], id=restore.id)
            # At most one is open: were this one forgotten some day, nobody must go on with an earlier one.
            self.driver.execute(self._sql["end_restores_of"], server=restore.server.key, at=began_at)
            self.driver.execute(
                self._sql["insert_restore"],
                id=restore.id,
                server=restore.server.key,
                snapshot=restore.snapshot,
                began_at=began_at,
                ended_at=None if restore.ended_at is None else stamp(restore.ended_at),
                body=packed(canonical(msgspec.structs.replace(restore, outcomes={}, ended_at=None))),
            )
            self._put(restore.id, restore.outcomes)

    def note_outcomes(self, id: str, outcomes: Mapping[str, Outcome]) -> None:
        with self._changing(id):
            self._put(id, outcomes)

    def end_restore(self, id: str, now: datetime, outcomes: Mapping[str, Outcome]) -> None:
        with self._changing(id):
            self._put(id, outcomes)
            self.driver.execute(self._sql["end_restore"], id=id, at=stamp(now))

    def open_restore(self, server: Server) -> Restore | None:
        rows = self.driver.fetch_as_is(self._sql["open_restore"], server=server.key)
        return self._read(rows[0]) if rows else None

    def list_restores(self, *, limit: int | None = None) -> tuple[Restore, ...]:
        rows = self.driver.fetch_as_is(self._sql["list_restores"], limit=NO_LIMIT if limit is None else limit)
        return tuple(restore for restore in map(self._read, rows) if restore is not None)

    def in_use(self) -> set[str]:
        """Return the snapshots of restores that have not ended, whether or not those can be read."""
        return {row[0] for row in self.driver.fetch(self._sql["snapshots_in_use"])}

    def forget_restores(self, before: datetime | None) -> None:
        """Forget the restores that have ended and began before then, or whose snapshot is gone."""
        self.driver.execute(self._sql["delete_old_restores"], before=None if before is None else stamp(before))

    def damage(self) -> Iterator[Damage]:
        """Read the journal back and yield what cannot be read."""
        for (id,) in self.driver.fetch_as_is(self._sql["restore_ids"]):
            for row in self.driver.fetch_as_is(self._sql["get_restore"], id=id):
                if _restore_from(row) is None:
                    yield Damage(restore=id)
                else:
                    outcomes = self._outcomes(id).items()
                    yield from (Damage(restore=id, pane=pane) for pane, outcome in outcomes if outcome is None)

    def set_aside(self, damage: Damage, now: datetime) -> None:
        """Move what is damaged to where it does no harm; a restore takes along what came of it."""
        id, pane = damage.restore, damage.pane
        with self.driver.transaction():
            self.driver.execute(self._sql["set_outcomes_aside"], at=stamp(now), restore=id, pane=pane)
            if pane is not None:
                self.driver.execute(self._sql["delete_outcome"], restore=id, pane=pane)
                return
            self.driver.execute(self._sql["set_restore_aside"], at=stamp(now), id=id)
            self.driver.execute(self._sql["delete_restore"], id=id)

    @contextmanager
    def _changing(self, id: str) -> Iterator[None]:
        """One transaction about a restore that is there when it begins and stays there until it ends."""
        for (server,) in self.driver.fetch(self._sql["server_of_restore"], id=id):
            with self.driver.transaction(server):
                if self.driver.fetch(self._sql["server_of_restore"], id=id):
                    yield
                    return
        raise errors.NotFound(f"There is no restore {id} in the journal.")

    def _put(self, id: str, outcomes: Mapping[str, Outcome]) -> None:
        for pane, outcome in sorted(outcomes.items()):
            self.driver.execute(self._sql["put_outcome"], restore=id, pane=pane, body=packed(canonical(outcome)))

    def _read(self, row: Row) -> Restore | None:
        restore = _restore_from(row)
        if restore is None:
            return None
        known = {pane: outcome for pane, outcome in self._outcomes(restore.id).items() if outcome is not None}
        return msgspec.structs.replace(restore, outcomes=known)

    def _outcomes(self, id: str) -> dict[str, Outcome | None]:
        """What came of a restore by pane; None for what cannot be read."""
        return {
            pane: _outcome_from(body) for pane, body in self.driver.fetch_as_is(self._sql["outcomes_of"], restore=id)
        }


def _restore_from(row: Row) -> Restore | None:
    id, server, snapshot, began_at, ended_at, body = row
    try:
        restore = decoded(Restore, body)
        if (restore.id, restore.server.key, restore.snapshot) != (id, server, snapshot):
            return None
        if restore.began_at != moment_of(began_at):
            return None
        return msgspec.structs.replace(restore, ended_at=None if ended_at is None else moment_of(ended_at))
    except UNREADABLE:
        return None


def _outcome_from(body: bytes) -> Outcome | None:
    try:
        return decoded(Outcome, body)
    except UNREADABLE:
        return None
