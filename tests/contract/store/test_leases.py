"""Leases: one holder at a time, as long as it says so."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.conftest import Place


def test_a_lease_is_held_until_it_runs_out(store: Store, opened: Callable[[], Store]) -> None:
    other = opened()
    assert store.take_lease("daemon", "a", at(0), until=at(10)) is None
    assert other.take_lease("daemon", "b", at(9.999), until=at(20)) == "a"
    assert other.take_lease("daemon", "b", at(10), until=at(20)) is None
    assert store.take_lease("daemon", "a", at(11), until=at(21)) == "b"


def test_its_holder_may_prolong_it_or_cut_it_short(store: Store) -> None:
    store.take_lease("daemon", "a", at(0), until=at(10))
    assert store.take_lease("daemon", "a", at(5), until=at(15)) is None
    assert store.take_lease("daemon", "b", at(12), until=at(20)) == "a"
    assert store.take_lease("daemon", "a", at(12), until=at(13)) is None
    assert store.take_lease("daemon", "b", at(13), until=at(20)) is None


def test_one_that_was_given_back_is_anybodys(store: Store) -> None:
    store.take_lease("daemon", "a", at(0), until=at(10))
    store.drop_lease("daemon", "b")
    assert store.take_lease("daemon", "b", at(1), until=at(10)) == "a"
    store.drop_lease("daemon", "a")
    store.drop_lease("daemon", "a")
    assert store.take_lease("daemon", "b", at(1), until=at(10)) is None


def test_names_are_apart(store: Store) -> None:
    assert store.take_lease("daemon laptop", "a", at(0), until=at(10)) is None
    assert store.take_lease("daemon desktop", "b", at(0), until=at(10)) is None
    store.drop_lease("daemon laptop", "b")
    assert store.take_lease("daemon laptop", "b", at(0), until=at(10)) == "a"


def test_one_that_cannot_be_read_has_run_out(store: Store) -> None:
    store.take_lease("daemon", "a", at(0), until=at(10))
    store.driver.execute("UPDATE leases SET held_until = 'some day'")
    assert store.take_lease("daemon", "b", at(1), until=at(10)) is None
    assert store.take_lease("daemon", "a", at(2), until=at(10)) == "b"


def test_of_many_who_ask_at_once_one_gets_it(place: Place) -> None:
    place.open().close()

    def ask(holder: str) -> list[str | None]:
        store = place.open()
        try:
            return [store.take_lease(f"lease {number}", holder, at(0), until=at(10)) for number in range(10)]
        finally:
            store.close()

    with ThreadPoolExecutor(6) as pool:
        answers = dict(zip("abcdef", pool.map(ask, "abcdef"), strict=True))
    for number in range(10):
        (winner,) = [holder for holder, answer in answers.items() if answer[number] is None]
        assert {answer[number] for answer in answers.values()} == {None, winner}
