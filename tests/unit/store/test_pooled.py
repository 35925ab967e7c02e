"""One database for several threads, and for a process that was forked off."""

from __future__ import annotations

import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure import errors
from perdure.store import open_store
from perdure.store.pooled import Pooled
from perdure.store.sqlite import SQLite
from perdure.store.store import Store
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_chat, a_turn


def opened(home: PrivateHome) -> Store:
    return open_store(f"sqlite://{home.state}/perdure.db", state_dir=home.state, threads=True)


def test_every_thread_at_work_has_a_connection_of_its_own_and_no_more_are_made(private_home: PrivateHome) -> None:
    made: list[SQLite] = []

    def make() -> SQLite:
        made.append(SQLite(f"{private_home.root}/some.db"))
        return made[-1]

    pool, together = Pooled(make), threading.Barrier(4)

    def work(_: int) -> None:
        with pool._borrowed():
            together.wait(60)
            assert pool.fetch("SELECT 1") == [(1,)]

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(work, range(4)))
        list(threads.map(work, range(4)))
    assert len(made) == 4
    pool.close()
    with pytest.raises(errors.StoreUnusable, match="closed"):
        pool.fetch("SELECT 1")


def test_no_connection_of_a_store_for_threads_keeps_much_of_the_database_in_memory(private_home: PrivateHome) -> None:
    store, together = opened(private_home), threading.Barrier(3)
    pool = store.driver
    assert isinstance(pool, Pooled)

    def kept(_: int) -> int:
        with pool._borrowed():
            together.wait(60)
            ((size,),) = pool.fetch("PRAGMA cache_size")
            return -int(size)

    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(kept, range(3)))
    # In KiB, of each of them.
    assert all(0 < each <= 512 for each in found)
    store.close()


def test_a_transaction_is_one_threads_and_comes_to_nothing_when_it_fails(private_home: PrivateHome) -> None:
    store = opened(private_home)
    store.chats.begin_chat(a_chat())

    def fail() -> None:
        with store.driver.transaction("chats"):
            store.driver.execute("UPDATE chats SET turns = 5")
            with ThreadPoolExecutor(1) as other:
                # What is not committed is not seen.
                assert other.submit(store.driver.fetch, "SELECT turns FROM chats").result() == [(0,)]
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert store.driver.fetch("SELECT turns FROM chats") == [(0,)]
    store.close()


def test_one_over_which_the_store_could_not_be_used_is_not_used_again(private_home: PrivateHome) -> None:
    made: list[SQLite] = []

    def make() -> SQLite:
        made.append(SQLite(f"{private_home.root}/some.db"))
        return made[-1]

    pool = Pooled(make)
    with pytest.raises(errors.StoreUnusable, match="no such table"):
        pool.fetch("SELECT * FROM nowhere")
    assert pool.fetch("SELECT 1") == [(1,)]
    assert len(made) == 2
    pool.close()


def test_a_process_that_was_forked_off_makes_its_own(private_home: PrivateHome) -> None:
    store = opened(private_home)
    store.chats.begin_chat(a_chat())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        code = 1
        try:
            store.chats.append_turns("c1", [a_turn("child")], at(0))
            store.chats.search_turns("child")
            store.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    store.chats.append_turns("c1", [a_turn("parent")], at(0))
    assert [turn.content for turn in store.chats.load_turns("c1").turns] == ["child", "parent"]
    assert store.check() == ()
    store.close()
