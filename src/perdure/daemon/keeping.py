"""Writing down, by a store that may fail: nothing is lost while it does, and it is said once."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.daemon.leasing import Lease
from perdure.daemon.world import World
from perdure.errors import Refused, StoreUnusable
from perdure.live.supervise import Supervisor
from perdure.model.event import StoredEvent
from perdure.snapshots.save import SaveResult

#: How long after it failed the store is tried again: the longer it fails, the later.
AGAIN, AGAIN_AT_MOST = 1.0, 30.0
#: How often the lease is prolonged, in seconds.
CHECKPOINT = 30.0

log = logging.getLogger(__name__)


class Work(StrEnum):
    """What the store is needed for."""

    RECORDING = "recording"
    SAVING = "saving"


class Trouble(Struct, frozen=True):
    """The store cannot be written."""

    why: str
    since: datetime

    @property
    def sentence(self) -> str:
        """Say it to a person."""
        kept = "What happens is kept in memory, and panes that are opened get no id, until the store can be used again"
        return f"{kept}: {self.why}"


class Keeping:
    """The store of the daemon, and the lease in it. One that failed is opened again before it is used again."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._lease = Lease(world.store, world.host, world.me.uid)
        self._lease_at = 0.0
        #: What it last failed at and has not done since.
        self._fails: set[Work] = set()
        self._failures = 0
        self._again_at = 0.0
        #: Only ever replaced as a whole: others look at it from their own threads.
        self._trouble: Trouble | None = None
        #: The highest number that a run has, or had, as far as is known here.
        self._last_id = 0
        #: The highest number that an event has, or had, as far as is known here.
        self._last_event = 0

    @property
    def trouble(self) -> Trouble | None:
        """Why what happens is not written down at present, and since when; None when it is."""
        return self._trouble

    def next(self) -> float:
        """When there is something to do for the store even if nothing happens."""
        return self._again_at if self._fails else self._lease_at

    # The lease

    def begin(self, at: float, now: datetime) -> None:
        """Take the lease. Raises `Refused`, and what is wrong with the store."""
        self._lease.take(now)
        # Others write events, too.
        self._last_event = max(self._last_event, self.world.store.last_event())
        self._lease_at = at + CHECKPOINT

    def hold(self, at: float, now: datetime) -> None:
        """Prolong the lease when it is time. Raises `Refused` when another has it: there is nothing left to do here then."""
        if at < self._lease_at or self._fails:
            return
        try:
            self.begin(at, now)
        except StoreUnusable as error:
            self._failed(Work.RECORDING, error.message, at)

    def has_lease(self, at: float, now: datetime) -> bool:
        """Prolong the lease now, and return whether it is held; not while the store cannot be written.

        Where another has it, the next `hold` raises `Refused`, whenever it is.
        """
        self.hold_now()
        try:
            self.hold(at, now)
        except Refused:
            return False
        return not self._fails

    def hold_now(self) -> None:
        """Have the lease prolonged as soon as may be."""
        self._lease_at = 0.0

    def end(self) -> None:
        """Give the lease back; where that fails it runs out."""
        try:
            self._lease.drop()
        except StoreUnusable as error:
            log.warning("the lease was not given back: %s", error.message)

    # The store

    def mend(self, at: float, now: datetime, *, at_once: bool = False) -> bool:
        """Open a store that failed again when it is time, or at once; return whether it is another connection from here on.

        It may be another database: one that was put in the place of the one before. No event in it gets a number that
        was known here: who has read up to one would never hear of it. Raises `Refused` as `hold` does.
        """
        if not self._fails or (at < self._again_at and not at_once):
            return False
        try:
            self.world = self.world.reopen()
            self._lease = Lease(self.world.store, self.world.host, self.world.me.uid)
            self.begin(at, now)
            self.world.store.go_on_behind(self._last_event)
        except StoreUnusable as error:
            self._failed(Work.RECORDING, error.message, at)
            return False
        return True

    def record(self, supervisor: Supervisor, at: float, *, at_once: bool = False) -> Sequence[StoredEvent] | None:
        """Write down everything that was not yet; None when that cannot be: it is kept, and tried again.

        With `at_once` it is tried however lately it failed: there is no other time.
        """
        if not (at_once or self._is_usable(at)):
            return None
        batch = supervisor.batch()
        try:
            stored = self.world.store.record(batch.runs, batch.events)
        except StoreUnusable as error:
            self._failed(Work.RECORDING, error.message, at)
            return None
        supervisor.recorded(batch)
        self._last_event = max(self._last_event, *(each.seq for each in stored), 0)
        if batch:
            self._succeeded(Work.RECORDING)
        return stored

    def new_ids(self, count: int, at: float) -> Sequence[str]:
        """Return as many new ids as asked, or none while the store cannot give any.

        None that was ever known here: a store that was put in the place of the one before begins to count anew.
        """
        if not self._is_usable(at):
            return ()
        try:
            ids = self.world.store.new_runs(count)
            if ids and _number(ids[0]) <= self._last_id:
                ids = self.world.store.new_runs(max(0, self._last_id - _number(ids[-1])) + count)[-count:]
        except StoreUnusable as error:
            self._failed(Work.RECORDING, error.message, at)
            return ()
        self.knows(ids)
        return ids

    def knows(self, ids: Iterable[str]) -> None:
        """Take in which ids runs have: no other gets one of them."""
        self._last_id = max(self._last_id, *map(_number, ids), 0)

    def saved(self, results: Iterable[SaveResult], at: float) -> None:
        """Take note of what came of saving."""
        results = list(results)
        failed = next((each for each in results if each.reason == "store"), None)
        if failed is not None:
            self._failed(Work.SAVING, failed.message or "", at)
        elif any(each.snapshot is not None for each in results):
            self._succeeded(Work.SAVING)

    def _is_usable(self, at: float) -> bool:
        return Work.RECORDING not in self._fails or at >= self._again_at

    def _failed(self, work: Work, why: str, at: float) -> None:
        """Said once, until everything can be done again."""
        since = self.world.now() if self._trouble is None else self._trouble.since
        self._trouble = Trouble(why, since)
        if not self._fails:
            log.warning("what happens is kept in memory until the store can be used again: %s", why)
        is_waited_for = bool(self._fails) and at < self._again_at
        self._fails.add(work)
        if not is_waited_for:
            # Not at every failure: what fails again and again meanwhile would put it off for ever.
            self._failures += 1
            self._again_at = at + min(AGAIN * 2 ** min(self._failures - 1, 10), AGAIN_AT_MOST)

    def _succeeded(self, work: Work) -> None:
        if work in self._fails:
            self._fails.discard(work)
            if not self._fails:
                self._failures = 0
                self._trouble = None
                log.warning("the store can be used again; what happened meanwhile is written down")


def _number(id: str) -> int:
    """Return the number in a run's id."""
    return int(id.removeprefix("r"))
