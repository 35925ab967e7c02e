"""Which snapshot is brought back when nobody says which."""

from __future__ import annotations

from datetime import timedelta

from msgspec import structs

from perdure.model.plan import Restore
from perdure.model.server import ServerProcess
from perdure.model.snapshot import SnapshotSummary
from perdure.restore.choose import choose, unfinished
from tests.builders import a_server, at

PROCESS = ServerProcess(pid=300, started_at=at(0), version="3.3a")


def a_summary(id: str, seconds: float, panes: int) -> SnapshotSummary:
    return SnapshotSummary(
        id=id,
        server=a_server(),
        taken_at=at(seconds),
        last_seen_at=at(seconds),
        sessions=1,
        windows=panes,
        panes=panes,
        agents=0,
    )


class Journal:
    """One restore that has not ended, or none."""

    def __init__(self, found: Restore | None) -> None:
        self.found = found

    def open_restore(self, server: object) -> Restore | None:
        return self.found


def an_open_restore(**changes: object) -> Restore:
    restore = Restore(id="r1", snapshot="s1", server=a_server(), began_at=at(100), process=PROCESS)
    changed: Restore = structs.replace(restore, **changes)
    return changed


def test_the_last_one_without_a_word() -> None:
    found = choose([a_summary("new", 2, 9), a_summary("old", 1, 8)], now=at(3))
    assert found is not None
    assert (found.snapshot, found.dropped_from) == ("new", None)
    assert choose([], now=at(3)) is None


def test_the_big_one_before_a_crash_and_that_is_said() -> None:
    found = choose([a_summary("big", 1, 38), a_summary("small", 2, 1)], now=at(3))
    assert found is not None
    assert (found.snapshot, found.dropped_from) == ("big", 38)


def test_an_interrupted_restore_is_gone_on_with_while_its_server_runs() -> None:
    def found(restore: Restore | None, process: ServerProcess | None = PROCESS, seconds: float = 160) -> bool:
        return unfinished(Journal(restore), a_server(), process, at(seconds)) is not None  # type: ignore[arg-type]

    assert found(an_open_restore())
    assert found(an_open_restore(process=None))
    assert not found(None)
    assert not found(an_open_restore(), process=None)
    assert not found(an_open_restore(), process=structs.replace(PROCESS, pid=301))
    assert not found(an_open_restore(), seconds=timedelta(days=2).total_seconds())


def test_a_clock_that_was_set_back_does_not_hide_the_newest() -> None:
    # A save after such a step gives both the same times; the store still lists the newest first.
    found = choose([a_summary("new", 1, 8), a_summary("old", 1, 8)], now=at(3))
    assert found is not None
    assert found.snapshot == "new"
