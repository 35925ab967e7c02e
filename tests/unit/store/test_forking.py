"""What a child has of its parent's store: all of the chats, and nothing that is the parent's own."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from perdure import errors
from perdure.host.clock import pause
from perdure.store import forking, open_store
from perdure.store.appends import Append
from perdure.store.chat_rows import ready
from perdure.store.files import locked
from perdure.store.store import Store
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_chat, a_turn

LONG = 60


@pytest.fixture
def store(private_home: PrivateHome) -> Store:
    """A store for several threads, with one chat."""
    store = opened(private_home)
    store.chats.begin_chat(a_chat())
    return store


def opened(home: PrivateHome) -> Store:
    return open_store(f"sqlite://{home.state}/perdure.db", state_dir=home.state, threads=True)


def forked(work: Callable[[], object]) -> int:
    """Do something in a child, which ends afterwards, at the latest when it has hung for long."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        code = 1
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(LONG // 3)
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def code_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def say(store: Store, text: str) -> None:
    store.chats.append_turns("c1", [a_turn(text)], at(0))


def said(store: Store) -> list[object]:
    return [turn.content for turn in store.chats.load_turns("c1").turns]


def refused(work: Callable[[], object]) -> None:
    with pytest.raises(errors.StoreUnusable, match="forked off"):
        work()


@pytest.mark.parametrize("name", ["_writing", "_indexing", "_waking"])
def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_holds(store: Store, name: str) -> None:
    def work() -> None:
        say(store, "child")
        assert len(store.chats.search_turns("child")) == 1
        store.close()

    with getattr(store.chats, name):
        assert code_of(forked(work)) == 0
    say(store, "parent")
    assert said(store) == ["child", "parent"]
    store.close()


def test_a_child_neither_waits_for_those_who_append_in_its_parent_nor_writes_for_them(store: Store) -> None:
    appends = store.chats._appends
    waiting = Append("c1", [ready(a_turn("parent"))], None, at(0))
    with appends._guard:
        appends._waiting.append(waiting)
        appends._leader = waiting
        assert code_of(forked(lambda: say(store, "child"))) == 0
    assert said(store) == ["child"]
    store.close()


def test_what_a_child_said_stays_when_its_parent_lets_go_of_the_database(
    store: Store, private_home: PrivateHome
) -> None:
    """Whoever is the last to close a database takes its log away: a child that is not counted would write to that."""
    (begun, begins), (closed, closes) = os.pipe(), os.pipe()

    def work() -> None:
        say(store, "before")
        os.write(begins, b".")
        os.read(closed, 1)
        say(store, "after")

    child = forked(work)
    os.read(begun, 1)
    store.close()
    os.write(closes, b".")
    assert code_of(child) == 0
    store = opened(private_home)
    assert said(store) == ["before", "after"]
    assert store.check() == ()
    store.close()


def test_a_child_does_not_end_its_parents_transaction(store: Store, private_home: PrivateHome) -> None:
    """Neither well nor badly: what it does in the midst of it is refused, and what it does later, too."""

    def work() -> None:
        refused(lambda: store.driver.execute("UPDATE chats SET turns = 7"))
        refused(lambda: transaction.__exit__(None, None, None))
        refused(lambda: say(store, "child"))
        refused(lambda: opened(private_home))

    transaction = store.driver.transaction("chats")
    transaction.__enter__()
    store.driver.execute("UPDATE chats SET turns = 5")
    assert code_of(forked(work)) == 0
    assert store.driver.fetch("SELECT turns FROM chats") == [(5,)]
    store.driver.execute("UPDATE chats SET turns = 0")
    transaction.__exit__(None, None, None)
    assert code_of(forked(lambda: say(store, "child"))) == 0
    say(store, "parent")
    assert said(store) == ["child", "parent"]
    assert store.check() == ()
    store.close()


def test_no_child_is_begun_while_another_thread_is_inside_a_transaction(store: Store) -> None:
    inside = threading.Event()

    def write() -> None:
        with store.driver.transaction("chats"):
            inside.set()
            while not forking._GATE.is_shut:
                pause(0.001)
            store.driver.execute("UPDATE chats SET reach = 'x'")

    writing = threading.Thread(target=write)
    writing.start()
    assert inside.wait(LONG)
    # Were it begun, it would not know whose the transaction is.
    assert code_of(forked(lambda: say(store, "child"))) == 0
    writing.join(LONG)
    assert store.driver.fetch("SELECT reach FROM chats") == [("x",)]
    assert said(store) == ["child"]
    store.close()


def test_a_store_for_one_thread_is_its_own_process_alone(private_home: PrivateHome) -> None:
    url = f"sqlite://{private_home.state}/perdure.db"
    store = open_store(url, state_dir=private_home.state)
    store.chats.begin_chat(a_chat())

    def work() -> None:
        refused(lambda: say(store, "no"))
        store.close()
        say(open_store(url, state_dir=private_home.state), "child")

    assert code_of(forked(work)) == 0
    say(store, "parent")
    assert said(store) == ["child", "parent"]
    store.close()


def test_a_directory_is_not_held_by_a_child(tmp_path: Path) -> None:
    """It would be for as long as the child lives, were the parent killed meanwhile."""

    def work() -> None:
        handles = [os.path.join("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
        assert str(tmp_path) not in [os.readlink(handle) for handle in handles if os.path.lexists(handle)]

    with locked(str(tmp_path)):
        assert code_of(forked(work)) == 0
    with locked(str(tmp_path)):
        pass
