"""The numbers of runs and events are given once, whatever becomes of the database."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from perdure import errors
from perdure.store import sqlite_path
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.conftest import Place
from tests.contract.store.runs import a_run, an_event


def lose(store: Store) -> None:
    """Make the database one that never held anything; the state directory stays."""
    for (name,) in store.driver.fetch(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        if store.driver.dialect == "sqlite"
        else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
    ):
        if name == "snapshots":
            store.driver.execute("DROP TABLE snapshot_scrollbacks")
        if name == "restores":
            store.driver.execute("DROP TABLE restore_outcomes")
        if name == "chats":
            store.driver.execute("DROP TABLE IF EXISTS chat_grants")
        store.driver.execute(f"DROP TABLE IF EXISTS {name}")


def next_event(store: Store) -> int:
    return store.record([], [an_event()])[0].seq


def test_ids_are_given_once_whoever_asks_and_whatever_is_deleted(store: Store, opened: Callable[[], Store]) -> None:
    assert store.new_runs(3) == ("r1", "r2", "r3")
    other = opened()
    assert other.new_runs(1) == ("r4",)
    store.record([a_run("r4", ended_at=at(0))], [])
    assert store.forget_runs(at(1)) == 1
    assert (store.new_runs(1), other.new_runs(2)) == (("r5",), ("r6", "r7"))


def test_what_a_run_came_with_is_not_given_again(store: Store, place: Place) -> None:
    store.record([a_run("r40", ended_at=at(0)), a_run("r12")], [])
    store.forget_runs(at(1))
    assert store.new_runs(1) == ("r41",)
    os.unlink(os.path.join(place.state_dir, "numbers.json"))
    store.record([a_run("r50")], [])
    assert store.new_runs(1) == ("r51",)


def test_a_database_made_anew_goes_on_counting(store: Store, opened: Callable[[], Store]) -> None:
    store.new_runs(5)
    last = [next_event(store) for _ in range(3)][-1]
    lose(store)
    anew = opened()
    # Whoever has read up to a number reads on behind it.
    assert anew.last_event() >= last
    assert anew.new_runs(2) == ("r6", "r7")
    first = next_event(anew)
    assert first > last
    assert [stored.seq for stored in anew.read_events(after=last)] == [first]
    assert next_event(anew) == first + 1
    assert anew.check() == ()


def test_a_store_goes_on_behind_what_somebody_remembers(store: Store, opened: Callable[[], Store]) -> None:
    last = [next_event(store) for _ in range(3)][-1]
    # It is the store that they remember: nothing is left out.
    store.go_on_behind(last)
    assert next_event(store) == last + 1
    lose(store)
    os.unlink(store.numbers.path)
    anew = opened()
    # Also where another has begun to count before.
    next_event(anew)
    anew.go_on_behind(last + 1)
    first = next_event(anew)
    assert first > last + 1
    assert [stored.seq for stored in anew.read_events(after=last + 1)] == [first]
    # All of them are remembered by the next one, too.
    assert next_event(opened()) == first + 1
    assert anew.check() == ()


@pytest.mark.parametrize("spoilt", [None, b"", b'{"runs":', b'{"runs":-4,"events":1000000000000000000000}', b"[]"])
def test_without_a_copy_that_can_be_read_the_database_alone_counts(store: Store, spoilt: bytes | None) -> None:
    store.new_runs(5)
    next_event(store)
    if spoilt is None:
        os.unlink(store.numbers.path)
    else:
        with open(store.numbers.path, "wb") as file:
            file.write(spoilt)
    again = Store(store.driver, store.state_dir)
    assert again.new_runs(1) == ("r6",)
    assert next_event(again) == 2
    assert again.check() == ()


def test_an_older_database_that_was_put_back_does_not_give_ids_again(store: Store, opened: Callable[[], Store]) -> None:
    store.new_runs(9)
    store.driver.execute("UPDATE counters SET value = 3 WHERE name = 'runs'")
    assert opened().new_runs(1) == ("r10",)


def test_a_counter_that_is_lost_or_behind_is_put_right_by_the_rows(store: Store) -> None:
    store.record([a_run("r8")], [an_event(), an_event()])
    store.driver.execute("DELETE FROM counters")
    os.unlink(store.numbers.path)
    again = Store(store.driver, store.state_dir)
    assert again.last_event() == 2
    assert again.new_runs(1) == ("r9",)
    assert next_event(again) == 3


def test_ids_that_were_taken_and_not_kept_are_left_out(store: Store) -> None:
    def taken_in_vain() -> None:
        with store.driver.transaction("numbers"):
            store.numbers.take("runs", 2)
            raise errors.StoreUnusable

    with pytest.raises(errors.StoreUnusable):
        taken_in_vain()
    assert store.new_runs(1) == ("r3",)


def test_the_copy_is_written_seldom_and_for_nobody_else(store: Store) -> None:
    next_event(store)
    before = os.stat(store.numbers.path)
    assert before.st_mode & 0o777 == 0o600
    for _ in range(20):
        next_event(store)
    assert os.stat(store.numbers.path).st_ino == before.st_ino
    store.record([], [an_event() for _ in range(5000)])
    assert os.stat(store.numbers.path).st_ino != before.st_ino
    os.chmod(store.numbers.path, 0o644)
    assert [problem.where for problem in store.check()] == [store.numbers.path]


def test_where_the_copy_cannot_be_written_no_number_is_given(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(path: str, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("perdure.store.numbers.write_atomically", no_room)
        with pytest.raises(errors.StoreUnusable, match="No space left"):
            store.new_runs(1)
        with pytest.raises(errors.StoreUnusable, match="No space left"):
            store.record([a_run("r1")], [an_event()])
    assert (store.list_runs(), store.read_events()) == ((), ())
    assert store.new_runs(1)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_nothing_is_written_into_a_database_that_was_set_aside(
    store: Store, place: Place, opened: Callable[[], Store]
) -> None:
    store.record([a_run()], [an_event()])
    path = sqlite_path(place.url)
    assert path is not None
    for end in ("", "-wal", "-shm"):
        os.rename(path + end, path + ".aside" + end)
    for _ in range(2):
        with pytest.raises(errors.StoreUnusable, match="another was put in its place"):
            store.new_runs(1)
        opened()
    assert store.list_runs() == (a_run(),)
