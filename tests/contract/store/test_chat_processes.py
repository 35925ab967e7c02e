"""Eight processes appending at once, some of them killed, and a disk that fills up. Every process is a real one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from perdure import errors
from perdure.model.event import EventKind
from perdure.store.store import Store
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_chat, a_turn
from tests.contract.store.conftest import Place
from tests.contract.store.test_processes import a_process_running, until_alone

WRITERS, EACH = 8, 1000
#: Where every append is several questions to a server, a thousand would only take longer.
EACH_OF_A_SERVER = 250

#: Appends in turn to the common chat and to its own, and says what is kept once it is.
WRITER = """
import sys
from perdure import errors
from perdure.store import open_store
from tests.builders import at
from tests.contract.store.chats import a_turn
url, state_dir, name, count, size = sys.argv[1:]
store = open_store(url, state_dir=state_dir, threads=True)
for number in range(int(count)):
    chat = ("common", name)[number % 2]
    try:
        position = store.chats.append_turns(chat, [a_turn([name, number, "x" * int(size)])], at(number))
    except errors.StoreUnusable as error:
        print("full", error.message, flush=True)
        sys.exit(5)
    print(chat, position, name, number, flush=True)
"""


def writer(place: Place, name: str, count: int, size: int = 10) -> subprocess.Popen[str]:
    return a_process_running(WRITER, place.url, place.state_dir, name, str(count), str(size))


def begin(place: Place) -> Store:
    store = place.open()
    for name in ("common", *(f"w{number}" for number in range(WRITERS))):
        store.chats.begin_chat(a_chat(name))
    return store


def acknowledged(lines: list[str]) -> set[tuple[str, int, str, int]]:
    # The last line of one that was killed may have been cut short.
    split = [line.split() for line in lines if line.endswith("\n") and not line.startswith("full")]
    return {(chat, int(position), name, int(number)) for chat, position, name, number in split}


def assert_nothing_is_lost(store: Store, kept: set[tuple[str, int, str, int]], slack: int) -> None:
    """Everything acknowledged is there once, where it was said to be; whatever else is there was being written."""
    found: list[tuple[str, int, str, int]] = []
    for chat in ("common", *(f"w{number}" for number in range(WRITERS))):
        turns = store.chats.load_turns(chat).turns
        assert [turn.position for turn in turns] == list(range(1, len(turns) + 1))
        found += [(chat, turn.position, turn.content[0], turn.content[1]) for turn in turns]
        for writer in range(WRITERS):
            mine = [turn.content[1] for turn in turns if turn.content[0] == f"w{writer}"]
            # In the order they were said, none twice and none left out.
            assert mine == list(range(mine[0], mine[0] + 2 * len(mine), 2)) if mine else True
    assert len({(name, number) for _, _, name, number in found}) == len(found)
    assert kept <= set(found)
    assert len(found) - len(kept) <= slack
    assert store.check() == ()


def assert_all_is_told(store: Store) -> None:
    """Nothing was told that is not there, nor left untold that is, nor told twice."""
    told = [stored.event.data for stored in store.read_events(limit=1_000_000, kinds=[EventKind.CHAT_SAID])]
    for chat in store.chats.list_chats():
        assert [
            position for data in told if data["chat"] == chat.id for position in range(data["first"], data["last"] + 1)
        ] == list(range(1, chat.turns + 1))


def test_eight_processes_append_a_thousand_each_and_three_are_killed(place: Place) -> None:
    store = begin(place)
    each = EACH if store.driver.dialect == "sqlite" else EACH_OF_A_SERVER
    # Those to be killed would never come to an end.
    processes = [writer(place, f"w{number}", each if number > 2 else 1_000_000) for number in range(WRITERS)]
    lines: list[str] = []
    for victim in processes[:3]:
        assert victim.stdout is not None
        lines += [victim.stdout.readline() for _ in range(100)]
        victim.send_signal(signal.SIGKILL)
    for process in processes:
        lines += process.communicate()[0].splitlines(keepends=True)
    assert [process.returncode for process in processes] == [-signal.SIGKILL] * 3 + [0] * 5
    until_alone(store)
    kept = acknowledged(lines)
    assert len(kept) >= 5 * each + 3 * 100
    assert_nothing_is_lost(store, kept, slack=3)
    assert_all_is_told(store)
    store.close()


@pytest.fixture
def small(private_home: PrivateHome) -> Iterator[Place]:
    """A store on a file system of four megabytes; where it cannot be mounted the test says so."""
    path = os.path.join(private_home.root, "disk")
    os.mkdir(path)
    options = ["-t", "tmpfs", "-o", "size=4m,mode=700", "tmpfs"]
    done = subprocess.run(["mount", *options, path], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount a small disk: {done.stderr.strip()}")
    yield Place(f"sqlite://{path}/perdure.db", path)
    subprocess.run(["umount", "-l", path], check=True)


def test_a_disk_that_fills_up_half_way_loses_nothing_acknowledged(small: Place) -> None:
    store = begin(small)
    # More than the disk holds, whoever of them begins late.
    processes = [writer(small, f"w{number}", 1_000_000, size=1000) for number in range(WRITERS)]
    lines: list[str] = []
    for process in processes:
        lines += process.communicate()[0].splitlines(keepends=True)
    full = [line for line in lines if line.startswith("full")]
    assert len(full) == WRITERS
    assert all("full" in line or "No space" in line for line in full)
    kept = acknowledged(lines)
    assert kept
    assert_nothing_is_lost(store, kept, slack=0)
    store.close()
    # With some room made, it goes on where it was.
    subprocess.run(["mount", "-o", "remount,size=16m", small.state_dir], check=True)
    store = small.open()
    before = store.chats.load_turns("common").next
    assert store.chats.append_turns("common", [a_turn("after")], at(0), expect=before) == before
    assert len(store.chats.search_turns("after")) == 1
    assert_all_is_told(store)
    store.close()


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_one_who_cannot_get_in_is_told_and_gets_in_later(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("perdure.store.sqlite.PATIENCE", 0.1)
    store, other = begin(place), place.open()
    with other.driver.transaction(), pytest.raises(errors.StoreUnusable, match="locked"):
        store.chats.append_turns("common", [a_turn("a")], at(0))
    assert store.chats.append_turns("common", [a_turn("a")], at(0)) == 1
    store.close()
    other.close()


#: Rewrites everything that was said, over and over: always all of one number.
REWRITER = """
import sys
from perdure.store import open_store
from tests.builders import at
from tests.contract.store.chats import a_turn
url, state_dir = sys.argv[1:]
store = open_store(url, state_dir=state_dir)
for number in range(100_000):
    store.chats.rewrite_turns("common", 1, [a_turn(number) for _ in range(20)], at(number))
    print(number, flush=True)
"""


def test_a_rewrite_killed_at_any_moment_leaves_the_old_or_the_new(place: Place) -> None:
    store = begin(place)
    for turn in range(4):
        process = a_process_running(REWRITER, place.url, place.state_dir)
        assert process.stdout is not None
        for _ in range(3 + turn):
            process.stdout.readline()
        process.send_signal(signal.SIGKILL)
        process.communicate()
        until_alone(store)
        contents = [turn.content for turn in store.chats.load_turns("common").turns]
        assert len(contents) == 20
        assert len(set(contents)) == 1
    assert store.check() == ()
    store.close()


#: In the midst of a transaction, forks off a child that says its number and lives on, and is killed.
KILLED_PARENT = """
import os, signal, sys
from perdure.store import open_store
url, state_dir = sys.argv[1:]
store = open_store(url, state_dir=state_dir, threads=True)
with store.driver.transaction():
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    print(os.getpid(), flush=True)
    signal.pause()
"""


def test_what_a_killed_process_held_is_not_held_by_its_children(place: Place) -> None:
    store = begin(place)
    with a_process_running(KILLED_PARENT, place.url, place.state_dir) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        try:
            assert parent.wait(60) == -signal.SIGKILL
            store.chats.append_turns("common", [a_turn("on")], at(0))
        finally:
            os.kill(child, signal.SIGKILL)
            # The output of both ends with the child.
            assert parent.stdout.read() == ""
    assert [turn.content for turn in store.chats.load_turns("common").turns] == ["on"]
    store.close()
