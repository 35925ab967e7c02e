"""A store that fails loses nothing, is said to fail once, and is opened again."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.daemon.keeping import AGAIN_AT_MOST, CHECKPOINT, Keeping
from perdure.daemon.world import World
from perdure.errors import Refused, StoreUnusable
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Run
from perdure.model.user import User
from perdure.snapshots.save import SaveResult
from tests.builders import NOON


class Disk:
    """What every connection to the store of this test is to."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.is_full = False
        self.holder: str | None = None
        #: The last number that was given to a run.
        self.given = 0
        #: The number behind which those of events begin.
        self.behind = 0
        self.connections = 0
        #: The connection from which on everything works; those before fail for good.
        self.good_from = 0


class Connection:
    """As much of a store as the daemon writes to."""

    def __init__(self, disk: Disk) -> None:
        disk.connections += 1
        self._number = disk.connections
        self._disk = disk

    def _try(self) -> None:
        if self._disk.is_full or self._number < self._disk.good_from:
            raise StoreUnusable("The disk is full.")

    def record(self, runs: Sequence[Run], events: Sequence[Event]) -> tuple[StoredEvent, ...]:
        """Write down."""
        if not runs and not events:
            return ()
        self._try()
        first = self._disk.behind + len(self._disk.events) + 1
        self._disk.events += events
        return tuple(StoredEvent(seq=seq, event=event) for seq, event in enumerate(events, first))

    def new_runs(self, count: int) -> tuple[str, ...]:
        """Give ids."""
        self._try()
        first, self._disk.given = self._disk.given + 1, self._disk.given + count
        return tuple(f"r{number}" for number in range(first, first + count))

    def last_event(self) -> int:
        """The last number."""
        self._try()
        return self._disk.behind + len(self._disk.events) if self._disk.events else 0

    def go_on_behind(self, event: int) -> None:
        """Count on from there."""
        self._try()
        self._disk.behind = max(self._disk.behind, event - len(self._disk.events))

    def take_lease(self, name: str, holder: str, now: datetime, *, until: datetime) -> str | None:
        """Take the lease."""
        self._try()
        if self._disk.holder not in (None, holder):
            return self._disk.holder
        self._disk.holder = holder
        return None

    def drop_lease(self, name: str, holder: str) -> None:
        """Give it back."""
        self._try()
        self._disk.holder = None


def _world(disk: Disk) -> World:
    def reopen() -> World:
        if disk.is_full:
            raise StoreUnusable("The disk is full.")
        return _world(disk)

    nothing: Any = None
    return World(
        config=nothing,
        host="laptop",
        me=User("dev", 1000, 1000, "/home/dev"),
        state_dir="",
        store=cast(Any, Connection(disk)),
        jobs=nothing,
        around=nothing,
        sockets=nothing,
        socket_dirs=nothing,
        spools=nothing,
        keep=nothing,
        tidy_chats=nothing,
        restore_words=nothing,
        environ={},
        reload=nothing,
        reopen=reopen,
        now=lambda: NOON,
        ticking=lambda: 0.0,
        close=lambda: None,
    )


@pytest.fixture
def disk() -> Disk:
    """The test's own."""
    return Disk()


@pytest.fixture
def keeping(disk: Disk) -> Keeping:
    """With the lease taken."""
    found = Keeping(_world(disk))
    found.begin(0.0, NOON)
    return found


def _event(number: int) -> Event:
    return Event(kind=EventKind.SAVED, at=NOON, data={"number": number})


@pytest.mark.parametrize("begins_at", [0, 2, 6])
def test_a_store_in_the_place_of_another_gives_nobody_an_id_that_is_known(
    keeping: Keeping, disk: Disk, begins_at: int
) -> None:
    keeping.knows(["r3", "r5"])
    assert keeping.new_ids(2, 0.0) == ("r6", "r7")
    disk.given = begins_at
    given = [int(id[1:]) for id in (*keeping.new_ids(3, 0.0), *keeping.new_ids(1, 0.0))]
    assert given[0] > 7
    assert len(set(given)) == 4
    assert given == sorted(given)


def test_events_in_a_store_in_the_place_of_another_are_numbered_behind_all_that_were_known(
    keeping: Keeping, disk: Disk
) -> None:
    def written(at: float) -> int | None:
        supervisor.note(_event(1))
        stored = keeping.record(supervisor, at)
        return stored[0].seq if stored else None

    supervisor = Supervisor()
    assert [written(1.0), written(1.0)] == [1, 2]
    # Others write, too, and it is seen when the lease is prolonged.
    disk.events += [_event(2)] * 5
    keeping.hold(CHECKPOINT, NOON)
    disk.events.clear()
    disk.good_from = 2
    assert written(CHECKPOINT) is None
    assert keeping.mend(keeping.next(), NOON)
    assert written(keeping.next()) == 8


def test_what_cannot_be_written_is_written_later(
    keeping: Keeping, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    supervisor = Supervisor()
    disk.is_full = True
    for number in range(20):
        supervisor.note(_event(number))
        assert not keeping.mend(float(number), NOON)
        assert keeping.record(supervisor, float(number)) is None
        assert keeping.new_ids(2, float(number)) == ()
    assert len(caplog.records) == 1
    trouble = keeping.trouble
    assert trouble is not None
    assert (trouble.since, trouble.sentence.endswith("used again: The disk is full.")) == (NOON, True)
    disk.is_full = False
    at = keeping.next()
    assert keeping.mend(at, NOON)
    stored = keeping.record(supervisor, at)
    assert stored is not None
    assert [each.event.data["number"] for each in stored] == list(range(20))
    assert len(caplog.records) == 2
    assert keeping.record(supervisor, at) == ()
    assert keeping.new_ids(2, at) == ("r1", "r2")
    assert keeping.trouble is None


def test_a_connection_that_never_works_again_is_replaced(keeping: Keeping, disk: Disk) -> None:
    supervisor = Supervisor()
    supervisor.note(_event(1))
    disk.good_from = 2
    assert keeping.record(supervisor, 1.0) is None
    # It is not tried at every turn: each try may take its time.
    assert not keeping.mend(1.1, NOON)
    assert keeping.record(supervisor, 1.1) is None
    assert keeping.mend(keeping.next(), NOON)
    assert keeping.record(supervisor, keeping.next()) is not None
    assert len(disk.events) == 1


def test_in_the_end_it_is_tried_however_lately_it_failed(keeping: Keeping, disk: Disk) -> None:
    supervisor = Supervisor()
    supervisor.note(_event(1))
    disk.good_from = 2
    assert keeping.record(supervisor, 1.0) is None
    assert keeping.mend(1.1, NOON, at_once=True)
    assert keeping.record(supervisor, 1.1, at_once=True)
    keeping.end()
    assert disk.holder is None


def test_whether_the_lease_is_held_is_asked_of_the_store_as_it_is_now(keeping: Keeping, disk: Disk) -> None:
    assert keeping.has_lease(1.0, NOON)
    disk.good_from = 2
    assert not keeping.has_lease(2.0, NOON)
    assert keeping.mend(keeping.next(), NOON)
    supervisor = Supervisor()
    supervisor.note(_event(1))
    assert keeping.record(supervisor, 4.0)
    assert keeping.has_lease(4.0, NOON)
    disk.holder = "elsewhere:1:1"
    assert not keeping.has_lease(5.0, NOON)
    with pytest.raises(Refused):
        keeping.hold(5.0, NOON)


def test_the_lease_is_prolonged_and_whoever_lost_it_is_refused(keeping: Keeping, disk: Disk) -> None:
    keeping.hold(CHECKPOINT, NOON)
    disk.holder = "elsewhere:1:1"
    keeping.hold(CHECKPOINT + 1, NOON)
    with pytest.raises(Refused):
        keeping.hold(2 * CHECKPOINT, NOON)
    keeping.hold_now()
    with pytest.raises(Refused):
        keeping.hold(CHECKPOINT + 1, NOON)


def test_a_store_that_is_another_daemons_by_now_is_not_written_to(keeping: Keeping, disk: Disk) -> None:
    supervisor = Supervisor()
    supervisor.note(_event(1))
    disk.good_from = 2
    keeping.record(supervisor, 1.0)
    disk.holder = "elsewhere:1:1"
    with pytest.raises(Refused):
        keeping.mend(keeping.next(), NOON)
    assert disk.events == []


def test_a_save_that_fails_has_the_store_opened_again_and_keeps_nothing_from_being_written(
    keeping: Keeping, disk: Disk, caplog: pytest.LogCaptureFixture
) -> None:
    def result(reason: str | None) -> SaveResult:
        snapshot = None if reason else "abc"
        return SaveResult(
            user="dev", uid=1000, socket="/tmp/s", result="failed", reason=reason, message="no", snapshot=snapshot
        )

    supervisor = Supervisor()
    for number in range(3):
        keeping.saved([result("store")], float(number))
        supervisor.note(_event(number))
        assert keeping.record(supervisor, float(number))
    assert len(caplog.records) == 1
    assert keeping.mend(keeping.next(), NOON)
    keeping.saved([result(None)], keeping.next())
    assert len(caplog.records) == 2
    assert disk.connections == 2


def test_what_fails_meanwhile_does_not_put_it_off(keeping: Keeping, disk: Disk) -> None:
    disk.good_from = 2
    failed = SaveResult(user="dev", uid=1000, socket="/tmp/s", result="failed", reason="store", message="no")
    keeping.saved([failed], 1.0)
    again = keeping.next()
    for number in range(5):
        keeping.saved([failed], 1.0 + number / 10)
        keeping.record(Supervisor(), 1.0 + number / 10)
    assert keeping.next() == again
    assert keeping.mend(again, NOON)


@given(st.lists(st.booleans(), max_size=60))
def test_it_is_tried_again_and_again_but_never_late(fulls: list[bool]) -> None:
    logging.disable(logging.CRITICAL)
    try:
        disk, supervisor, at = Disk(), Supervisor(), 0.0
        keeping = Keeping(_world(disk))
        keeping.begin(at, NOON)
        for number, full in enumerate(fulls):
            disk.is_full = full
            supervisor.note(_event(number))
            at = max(at + 0.1, min(at + 5.0, keeping.next()))
            keeping.mend(at, NOON)
            keeping.record(supervisor, at)
            assert keeping.next() <= at + max(AGAIN_AT_MOST, CHECKPOINT)
            assert [*disk.events, *supervisor.batch().events] == [_event(each) for each in range(number + 1)]
        disk.is_full = False
        at = max(at, keeping.next())
        keeping.mend(at, NOON)
        keeping.record(supervisor, at)
        assert disk.events == [_event(each) for each in range(len(fulls))]
    finally:
        logging.disable(logging.NOTSET)
