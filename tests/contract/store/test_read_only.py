"""A store that is only read: nothing is made, brought up to date or written, and all that is kept can be had."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from perdure import errors
from perdure.store import open_store
from perdure.store.manifest import write_manifest
from perdure.store.store import Store
from tests.builders import a_capture, a_server, at
from tests.contract.store.conftest import Place


def save(store: Store, name: str, seconds: float) -> str:
    return store.save_snapshot(
        a_capture(session=name, seconds=seconds, scrollback={"%0": name}), {name: name.encode()}
    ).id


def kept_without_a_database(place: Place, name: str, seconds: float) -> str:
    capture = a_capture(session=name, seconds=seconds, scrollback={"%0": name})
    return write_manifest(place.state_dir, capture, {name: name.encode()}).id


def files(place: Place) -> dict[str, tuple[int, int]]:
    """Every file of the store, with its size and when it was last written."""
    found = {}
    for folder, _, names in os.walk(place.state_dir):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            found[path] = (os.stat(path).st_size, os.stat(path).st_mtime_ns)
    return found


def read_only(place: Place) -> Store:
    return open_store(place.url, state_dir=place.state_dir, read_only=True)


def ids(store: Store) -> list[str]:
    return [line.id for line in store.list_snapshots()]


def test_everything_can_be_read_and_nothing_is_touched(place: Place) -> None:
    writer = place.open()
    first, second = save(writer, "a", 0), save(writer, "b", 1)
    writer.close()
    before = files(place)
    store = read_only(place)
    assert ids(store) == [second, first]
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.id == second
    assert store.get_snapshot(first[:10]).topology.sessions[0].name == "a"
    assert store.read_scrollback("a") == b"a"
    assert store.absent_scrollback({"a", "none"}) == {"none"}
    assert store.pruned_at() is None
    assert store.check() == ()
    store.close()
    assert files(place) == before


def test_it_reads_beside_a_writer(place: Place, store: Store) -> None:
    first = save(store, "a", 0)
    reader = read_only(place)
    assert ids(reader) == [first]
    second = save(store, "b", 1)
    assert ids(reader) == [second, first]
    assert reader.check() == ()
    reader.close()
    assert save(store, "c", 2)


def test_saving_and_pruning_are_refused(place: Place, store: Store) -> None:
    first = save(store, "a", 0)
    save(store, "b", 1)
    reader = read_only(place)
    for origin in ("captured", "resurrect"):
        with pytest.raises(errors.StoreUnusable, match="only read"):
            reader.save_snapshot(a_capture(session="c", seconds=2), {}, origin=origin)
    with pytest.raises(errors.StoreUnusable, match="only read"):
        reader.prune_snapshots([first], at(9))
    # Nor does any other way around them write.
    with pytest.raises(errors.StoreUnusable):
        reader.driver.execute("DELETE FROM snapshots")
    reader.close()
    assert len(ids(store)) == 2


@pytest.mark.unmade
def test_without_a_database_the_manifests_answer(place: Place) -> None:
    older, latest = kept_without_a_database(place, "a", 0), kept_without_a_database(place, "b", 1)
    before = files(place)
    store = read_only(place)
    assert ids(store) == [latest, older]
    assert [(line.sessions, line.panes, line.last_seen_at) for line in store.list_snapshots(limit=1)] == [(1, 1, at(1))]
    assert store.get_snapshot(older).topology.sessions[0].name == "a"
    found = store.latest_snapshot(a_server())
    assert found is not None
    assert found.id == latest
    assert store.read_scrollback("b") == b"b"
    (problem,) = store.check()
    assert problem.where == "database"
    assert not problem.repairable
    store.close()
    assert files(place) == before


def test_where_nothing_is_kept_there_is_nothing(place: Place) -> None:
    store = read_only(place)
    assert ids(store) == []
    assert store.latest_snapshot(a_server()) is None
    with pytest.raises(errors.SnapshotNotFound):
        store.get_snapshot("abc")
    store.close()
    assert not os.path.exists(place.state_dir)


def test_what_only_manifests_have_is_listed_in_its_place(place: Place, opened: Callable[[], Store]) -> None:
    writer = opened()
    first, second = save(writer, "a", 0), save(writer, "b", 5)
    kept_without_a_database(place, "b", 10)
    late = kept_without_a_database(place, "late", 7)
    other = write_manifest(place.state_dir, a_capture(server=a_server("other"), seconds=8), {}).id
    store = read_only(place)
    assert ids(store) == [second, other, late, first]
    assert [line.id for line in store.list_snapshots(limit=2)] == [second, other]
    assert [line.id for line in store.list_snapshots(server=a_server("other"))] == [other]
    # Seen again at 10, as only the manifest knows: it is no longer what was last seen before 9.
    assert [line.id for line in store.list_snapshots(before=at(9))] == [other, late, first]
    assert store.get_snapshot(second).last_seen_at == at(10)
    assert store.get_snapshot(late).topology.sessions[0].name == "late"
    store.close()


def test_an_older_schema_is_one_sentence_and_stays_what_it_is(place: Place, store: Store) -> None:
    save(store, "a", 0)
    store.driver.execute("DELETE FROM schema_versions")
    with pytest.raises(errors.StoreUnusable, match="brought up to date first") as caught:
        read_only(place)
    assert type(caught.value) is errors.StoreUnusable
    assert store.driver.fetch("SELECT count(*) FROM schema_versions") == [(0,)]


def test_a_newer_schema_is_refused(place: Place, store: Store) -> None:
    store.driver.execute("INSERT INTO schema_versions (version) VALUES (99)")
    with pytest.raises(errors.StoreTooNew):
        read_only(place)
