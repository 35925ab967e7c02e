from __future__ import annotations

from datetime import timedelta

from perdure.model.server import ServerProcess
from perdure.snapshots.capture import Memory
from tests.builders import NOON, at

PROCESS = ServerProcess(pid=300, started_at=NOON, version="3.4")
ANOTHER = ServerProcess(pid=300, started_at=at(1), version="3.4")


def test_a_reading_is_good_for_a_while() -> None:
    memory = Memory(timedelta(seconds=60))
    assert not memory.is_fresh("/s", NOON)
    memory.keep("/s", PROCESS, {"$0": b"x"}, NOON)
    assert memory.is_fresh("/s", at(59))
    assert not memory.is_fresh("/s", at(60))
    assert not memory.is_fresh("/other", NOON)


def test_it_is_of_that_server_alone() -> None:
    memory = Memory()
    memory.keep("/s", PROCESS, {"$0": b"x"}, NOON)
    assert memory.recall("/s", PROCESS) == {"$0": b"x"}
    assert memory.recall("/s", ANOTHER) == {}
    assert memory.recall("/other", PROCESS) == {}


def test_what_is_added_makes_nothing_fresher() -> None:
    memory = Memory(timedelta(seconds=60))
    memory.add("/s", {"$1": b"lost"})
    assert memory.recall("/s", PROCESS) == {}
    memory.keep("/s", PROCESS, {"$0": b"x"}, NOON)
    memory.add("/s", {"$1": b"y"})
    assert memory.recall("/s", PROCESS) == {"$0": b"x", "$1": b"y"}
    assert not memory.is_fresh("/s", at(60))
