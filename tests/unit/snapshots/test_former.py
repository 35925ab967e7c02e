"""The servers there were on a socket before the one that is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from perdure.model.server import ServerProcess
from perdure.model.snapshot import Whereabouts
from perdure.ports import SnapshotStore
from perdure.snapshots.former import Past, former
from tests.builders import NOON, at
from tests.unit.snapshots.test_retention import a_summary


def a_process(number: int) -> ServerProcess:
    return ServerProcess(pid=number, started_at=at(number), version="3.4")


def found(sizes: list[int], damaged: frozenset[int] = frozenset(), age: float = 1) -> list[tuple[str, tuple[str, ...]]]:
    """What is found of servers of which so many snapshots each were taken, named 0, 1, … and a minute apart."""
    owners = [server for server, size in enumerate(sizes) for _ in range(size)]
    last = len(owners) - 1
    lineage = [a_summary(str(place), age + (last - place) / 60) for place in range(len(owners))]

    def process_of(id: str) -> ServerProcess | None:
        return None if int(id) in damaged else a_process(owners[int(id)])

    gone = former(lineage[::-1], process_of, NOON)
    return [(each.last.id, tuple(one.id for one in each.since)) for each in gone]


def test_the_last_of_each_and_what_came_since() -> None:
    assert found([]) == []
    assert found([5]) == []
    assert found([2, 1]) == [("1", ("2",))]
    assert found([1, 2, 1]) == [("2", ("3",)), ("0", ("1", "2", "3"))]


def test_what_cannot_be_read_is_passed_over() -> None:
    assert found([2, 2], frozenset({1})) == [("0", ("1", "2", "3"))]
    assert found([2, 2], frozenset({2, 3})) == []
    assert found([2, 2], frozenset({3})) == [("1", ("2", "3"))]


def test_after_two_days_it_is_how_people_work_now() -> None:
    assert found([1, 1], age=47.9) == [("0", ("1",))]
    assert found([1, 1], age=48.1) == []


def test_each_snapshot_is_read_once_and_none_whole() -> None:
    """However many there are: a restore waits for it."""
    lineage = [a_summary(str(number), 1 + number / 60) for number in range(1000)]
    read: list[str] = []

    class Kept:
        def whereabouts(self, ids: Iterable[str]) -> Iterator[Whereabouts]:
            for id in ids:
                read.append(id)
                yield Whereabouts(
                    id=id,
                    last_seen_at=NOON,
                    process=a_process(int(id) // 400),
                    conversations=frozenset(),
                    places=frozenset(),
                )

    past = Past(cast(SnapshotStore, Kept()))
    gone = past.former(lineage, NOON)
    assert [(each.last.id, len(each.since)) for each in gone] == [("400", 400), ("800", 800)]
    assert len(read) < 40
    # What comes of it is read as far as somebody asks for it.
    first = next(past.of(["1", "2", "3"]))
    assert first.id == "1"
    for each in gone:
        assert len(list(past.of(one.id for one in each.since))) == len(each.since)
    assert len(read) == len(set(read))


def test_imports_never_count() -> None:
    lineage = [a_summary("now", 1), a_summary("import", 2, origin="import")]
    assert former(lineage, lambda id: a_process(len(id)), NOON + timedelta()) == []


@given(st.lists(st.integers(1, 6), min_size=1, max_size=6), st.frozensets(st.integers(0, 40)))
def test_each_former_server_once_and_never_the_present_one(sizes: list[int], damaged: frozenset[int]) -> None:
    owners = [server for server, size in enumerate(sizes) for _ in range(size)]
    readable = [place for place in range(len(owners)) if place not in damaged]
    seen = [int(last) for last, _ in found(sizes, damaged)]
    last_of = {owners[place]: place for place in readable}
    present = owners[readable[-1]] if readable else None
    assert seen == sorted((place for owner, place in last_of.items() if owner != present), reverse=True)
