"""Bringing a database up to date."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from perdure import errors
from perdure.store import migrations, open_store
from perdure.store.store import Store
from tests.builders import a_capture
from tests.contract.store.conftest import Place
from tests.contract.store.restores import a_restore
from tests.contract.store.runs import a_run, an_event

NEWEST = max(migrations.known("sqlite"))


def test_a_new_store_is_at_the_newest_version(store: Store) -> None:
    assert migrations.version(store.driver) == NEWEST


def test_both_databases_have_the_same_steps() -> None:
    sqlite, postgres = migrations.known("sqlite"), migrations.known("postgres")
    assert [name.split(".")[0] for name in sqlite.values()] == [name.split(".")[0] for name in postgres.values()]
    assert list(sqlite) == list(range(1, len(sqlite) + 1))


def test_opening_again_changes_nothing(store: Store, opened: Callable[[], Store]) -> None:
    store.save_snapshot(a_capture(), {})
    assert opened().list_snapshots() == store.list_snapshots()
    assert migrations.bring_up_to_date(store.driver) is False


@pytest.mark.unmade
def test_a_store_from_before_the_journal_keeps_what_it_has(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        every = migrations.known
        earlier.setattr(migrations, "known", lambda dialect: {1: every(dialect)[1]})
        old = place.open()
        saved = old.save_snapshot(a_capture(), {})
        assert migrations.version(old.driver) == 1
        assert not old.driver.has_table("restores")
        old.close()
    store = place.open()
    assert migrations.version(store.driver) == NEWEST
    assert [line.id for line in store.list_snapshots()] == [saved.id]
    assert store.list_restores() == ()
    store.begin_restore(a_restore(snapshot=saved.id))
    assert store.check() == ()
    store.close()


@pytest.mark.unmade
def test_a_store_from_before_the_runs_keeps_what_it_has(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as earlier:
        every = migrations.known
        earlier.setattr(migrations, "known", lambda dialect: {step: every(dialect)[step] for step in (1, 2)})
        # Opening a store of these days wants to go on counting, which one of those days cannot.
        earlier.setattr(Store, "begin", Store.load_manifests)
        old = place.open()
        saved = old.save_snapshot(a_capture(), {})
        old.begin_restore(a_restore(snapshot=saved.id))
        assert migrations.version(old.driver) == 2
        assert not old.driver.has_table("runs")
        old.close()
    with pytest.raises(errors.StoreUnusable, match="brought up to date first"):
        open_store(place.url, state_dir=place.state_dir, read_only=True)
    store = place.open()
    assert migrations.version(store.driver) == NEWEST
    assert [line.id for line in store.list_snapshots()] == [saved.id]
    assert store.list_restores() == (a_restore(snapshot=saved.id),)
    assert (store.list_runs(), store.last_event()) == ((), 0)
    assert store.new_runs(1) == ("r1",)
    store.record([a_run()], [an_event()])
    assert store.check() == ()
    store.close()


def test_a_newer_schema_is_refused_and_left_alone(store: Store, place: Place) -> None:
    saved = store.save_snapshot(a_capture(), {})
    store.driver.execute("INSERT INTO schema_versions (version) VALUES (99)")
    with pytest.raises(errors.StoreTooNew, match="99"):
        place.open()
    assert store.driver.fetch("SELECT version FROM schema_versions ORDER BY version") == [
        *((number,) for number in range(1, NEWEST + 1)),
        (99,),
    ]
    assert store.get_snapshot(saved.id).id == saved.id


def test_a_step_that_fails_leaves_nothing_behind(store: Store) -> None:
    def half_a_step() -> None:
        with store.driver.transaction():
            store.driver.execute("CREATE TABLE half_done (a INTEGER)")
            store.driver.execute("CREATE TABLE snapshots (a INTEGER)")

    with pytest.raises(errors.StoreUnusable, match="already exists"):
        half_a_step()
    assert not store.driver.has_table("half_done")


def test_many_at_once_make_one_store(place: Place) -> None:
    def open_and_close(_: int) -> int:
        store = place.open()
        version = migrations.version(store.driver)
        store.close()
        return version

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(open_and_close, range(24))) == {NEWEST}
