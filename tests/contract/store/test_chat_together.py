"""Processes that append at once are written by one of them; whoever is killed, and whenever, nothing is lost or doubled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count

import pytest

from perdure import errors
from perdure.store.appends import Append
from perdure.store.chat_rows import ready
from perdure.store.desk import Desk
from perdure.store.sqlite import SQLite
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.chats import a_chat, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.test_processes import a_process_running

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="there is no desk elsewhere"),
    pytest.mark.parametrize("place", ["sqlite"], indirect=True),
]

#: Appends one turn. Inside the door it waits until another process has handed something over; then does what it is told.
LEADER = """
import os, signal, sys, time
from perdure import errors
from perdure.store import open_store, together
from tests.builders import at
from tests.contract.store.chats import a_turn
url, state_dir, moment = sys.argv[1:]
def end(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def fail(*_):
    raise errors.StoreUnusable("no room")
def gather(self, desk):
    print("inside", flush=True)
    while not desk.count():
        time.sleep(0.001)
    while moment == "waits" and not os.path.exists(os.path.join(state_dir, "go")):
        time.sleep(0.001)
together.Together._gather = gather
if moment == "killed before the commit":
    together.note = end
if moment == "killed after the commit":
    together.Desk.answer = end
if moment == "killed before anybody is woken":
    together.Desk.wake = end
if moment == "cannot write for others":
    together.note = fail
store = open_store(url, state_dir=state_dir, threads=True)
print(store.chats.append_turns("common", [a_turn("leader")], at(1)), flush=True)
store.close()
"""


@contextmanager
def leading(place: Place, moment: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that is inside the door."""
    with a_process_running(LEADER, place.url, place.state_dir, moment) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "inside\n"
            yield process
        finally:
            process.kill()


def let_go(place: Place, leader: subprocess.Popen[str]) -> None:
    """Let one who waits go on, to its end."""
    with open(os.path.join(place.state_dir, "go"), "wb"):
        pass
    assert leader.wait() == 0


@pytest.fixture
def begun(threaded: Store) -> Store:
    threaded.chats.begin_chat(a_chat("common"))
    return threaded


def contents(store: Store) -> list[object]:
    return [turn.content for turn in store.chats.load_turns("common").turns]


def handed_over(store: Store) -> int:
    """How many were ever written for another."""
    return int(store.driver.fetch("SELECT count(*) FROM handed_over")[0][0])


@pytest.mark.parametrize("moment", ["goes on", "killed after the commit", "killed before anybody is woken"])
def test_what_is_handed_over_is_written_with_what_the_other_has(place: Place, begun: Store, moment: str) -> None:
    with leading(place, moment) as leader:
        assert begun.chats.append_turns("common", [a_turn("a"), a_turn("b")], at(2)) == 3
        assert leader.wait() == (0 if moment == "goes on" else -signal.SIGKILL)
    assert contents(begun) == ["leader", "a", "b"]
    assert handed_over(begun) == 1
    # Everybody goes on.
    assert begun.chats.append_turns("common", [a_turn("c")], at(3), expect=4) == 4
    assert begun.check() == ()


@pytest.mark.parametrize("moment", ["killed before the commit", "cannot write for others"])
def test_what_the_other_could_not_write_is_written_here(place: Place, begun: Store, moment: str) -> None:
    with leading(place, moment) as leader:
        position = begun.chats.append_turns("common", [a_turn("a")], at(2))
        leader.wait()
    there = ["a"] if leader.returncode else contents(begun)
    assert contents(begun) == there
    assert sorted(map(str, there)) == (["a"] if leader.returncode else ["a", "leader"])
    assert there[position - 1] == "a"
    assert handed_over(begun) == 0
    assert begun.check() == ()


def test_one_that_comes_to_nothing_says_why_and_costs_nobody_else_anything(place: Place, begun: Store) -> None:
    with leading(place, "goes on") as leader:
        with pytest.raises(errors.Conflict) as caught:
            begun.chats.append_turns("common", [a_turn("a")], at(2), expect=1)
        assert leader.wait() == 0
    assert caught.value.data["position"] == 2
    assert contents(begun) == ["leader"]
    with leading(place, "goes on") as leader:
        with pytest.raises(errors.ChatNotFound):
            begun.chats.append_turns("nowhere", [a_turn("a")], at(2))
        assert leader.wait() == 0
    assert contents(begun) == ["leader", "leader"]


#: Appends one turn, and says where.
FOLLOWER = """
import sys
from perdure.store import open_store
from tests.builders import at
from tests.contract.store.chats import a_turn
url, state_dir = sys.argv[1:]
store = open_store(url, state_dir=state_dir, threads=True)
print(store.chats.append_turns("common", [a_turn("follower")], at(2)), flush=True)
"""


def until(is_so: Callable[[], bool]) -> None:
    for _ in range(6000):
        if is_so():
            return
        time.sleep(0.01)
    raise AssertionError("it never was so")


def test_what_one_who_was_killed_has_handed_over_is_not_written_later(place: Place, begun: Store) -> None:
    desk = Desk(f"{begun.driver.files[0]}-desk")
    with leading(place, "waits") as leader:
        follower = a_process_running(FOLLOWER, place.url, place.state_dir)
        until(lambda: desk.count() == 1)
        follower.kill()
        follower.communicate()
        let_go(place, leader)
    assert contents(begun) == ["leader"]
    assert begun.chats.append_turns("common", [a_turn("a")], at(3)) == 2
    desk.close()


def test_one_who_gives_up_is_told_that_it_may_still_be_written(
    place: Place, begun: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.store.sqlite.PATIENCE", 0.1)
    other = place.open()
    with leading(place, "waits") as leader:
        # The transaction itself is another's, for as long as this takes.
        assert isinstance(other.driver, SQLite)
        other.driver.door = None
        with other.driver.transaction(), pytest.raises(errors.StoreUnusable, match=r"locked.*look what is there"):
            begun.chats.append_turns("common", [a_turn("a")], at(2))
        # What was given up is off the desk: the other finds nothing there.
        let_go(place, leader)
    assert contents(begun) == ["leader"]
    other.close()


def test_many_at_once_are_written_in_few_commits_and_each_once(place: Place, begun: Store) -> None:
    with leading(place, "waits") as leader:
        followers = [a_process_running(FOLLOWER, place.url, place.state_dir) for _ in range(5)]
        desk = Desk(f"{begun.driver.files[0]}-desk")
        until(lambda: desk.count() == len(followers))
        desk.close()
        let_go(place, leader)
        places = sorted(int(follower.communicate()[0]) for follower in followers)
    assert places == [2, 3, 4, 5, 6]
    assert contents(begun) == ["leader", *["follower"] * 5]
    assert handed_over(begun) == 5


def test_whoever_forgets_a_chat_wakes_those_who_wait_between_any_two_steps_though_it_never_appends(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chats = store.chats
    chats.begin_chat(a_chat("long", key="k"), turns=[a_turn("tiles")] * 450)
    chats.begin_chat(a_chat("c2", key="k"), instead_of=chats.open_chat("k"))
    waiting = Desk(f"{store.driver.files[0]}-desk")
    assert waiting.put([Append("c2", [ready(a_turn("a"))], None, at(1))]) is not None
    changing, steps, woken = chats.changing, count(), []

    def step() -> AbstractContextManager[None]:
        if next(steps):
            woken.append(waiting.wait())
        return changing()

    monkeypatch.setattr(chats, "changing", step)
    chats.forget_chat("long")
    woken.append(waiting.wait())
    assert len(woken) > 2
    assert all(woken)
    waiting.close()
