"""Rows that cannot be read, manifests that know more, and mending both."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest

from perdure import errors
from perdure.model.snapshot import Problem
from perdure.store.manifest import Manifest, read_manifests, write_manifest
from perdure.store.postgres import Postgres
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import a_capture, a_server, at
from tests.contract.store.conftest import Place


def save(store: Store, name: str, seconds: float) -> str:
    return store.save_snapshot(
        a_capture(session=name, seconds=seconds, scrollback={"%0": name}), {name: name.encode()}
    ).id


def spoil(store: Store, id: str, column: str = "body") -> None:
    store.driver.execute(f"UPDATE snapshots SET {column} = :data WHERE id = :id", id=id, data=b"spoilt")


def latest(store: Store) -> str | None:
    found = store.latest_snapshot(a_server())
    return None if found is None else found.id


@pytest.mark.parametrize("column", ["body", "details"])
def test_a_damaged_snapshot_costs_only_itself(store: Store, column: str) -> None:
    first, second = save(store, "a", 0), save(store, "b", 1)
    spoil(store, first, column)
    with pytest.raises(errors.SnapshotDamaged, match=first):
        store.get_snapshot(first)
    assert store.get_snapshot(second).id == second
    assert [line.id for line in store.list_snapshots()] == [second, first]
    assert [problem.where for problem in store.check()] == [f"snapshot {first}"]


def test_a_body_that_is_not_what_was_saved_is_damage(store: Store) -> None:
    first, second = save(store, "a", 0), save(store, "b", 1)
    store.driver.execute(
        "UPDATE snapshots SET body = (SELECT body FROM snapshots WHERE id = :b) WHERE id = :a", a=first, b=second
    )
    with pytest.raises(errors.SnapshotDamaged):
        store.get_snapshot(first)


def test_the_manifest_stands_in_for_a_damaged_latest_row(store: Store) -> None:
    save(store, "a", 0)
    second = save(store, "b", 1)
    spoil(store, second)
    assert latest(store) == second


def test_without_a_manifest_the_newest_readable_snapshot_is_the_latest(store: Store) -> None:
    first, second = save(store, "a", 0), save(store, "b", 1)
    spoil(store, second)
    os.unlink(store.shelf.path(a_server()))
    assert latest(store) == first
    # And with the latest out of reach, that one is not pruned either.
    assert store.prune_snapshots([first, second], at(9)) == 0


def test_saving_does_not_need_to_read_what_is_damaged(store: Store) -> None:
    id = save(store, "a", 0)
    spoil(store, id)
    assert save(store, "a", 1) == id
    assert save(store, "b", 2) == latest(store)


def test_a_manifest_ahead_of_the_database_is_the_latest_and_is_taken_in_by_the_next_save(
    store: Store, place: Place
) -> None:
    first = save(store, "a", 0)
    ahead = write_manifest(place.state_dir, a_capture(session="b", seconds=1, scrollback={"%0": "b"}), {"b": b"b"}).id
    assert latest(store) == ahead
    assert store.get_snapshot(ahead).topology.sessions[0].name == "b"
    assert store.read_scrollback("b") == b"b"
    assert {problem.repairable for problem in store.check()} == {True}
    third = save(store, "c", 2)
    assert [line.id for line in store.list_snapshots()] == [third, ahead, first]
    assert store.driver.fetch("SELECT parent FROM snapshots WHERE id = :id", id=third) == [(ahead,)]
    assert store.absent_scrollback({"a", "b", "c"}) == set()
    assert store.check() == ()


def test_everything_kept_without_a_database_is_taken_in_by_the_next_save(store: Store, place: Place) -> None:
    save(store, "a", 0)
    kept = [
        write_manifest(place.state_dir, a_capture(session=name, seconds=s, scrollback={"%0": name}), {name: b"x"}).id
        for name, s in (("b", 1.0), ("c", 3.0), ("late", 2.0), ("b", 4.0))
    ]
    assert len(set(kept)) == 4
    save(store, "d", 5)
    names = [store.get_snapshot(line.id).topology.sessions[0].name for line in store.list_snapshots()]
    assert names == ["d", "b", "c", "late", "b", "a"]
    assert len(os.listdir(store.shelf.directory)) == 2
    assert store.absent_scrollback({"b", "c", "late"}) == set()
    assert store.check() == ()


def test_a_manifest_newer_than_the_capture_is_not_replaced(store: Store, place: Place) -> None:
    ahead = write_manifest(place.state_dir, a_capture(session="b", seconds=9), {}).id
    save(store, "a", 5)
    (manifest,) = read_manifests(place.state_dir)
    assert isinstance(manifest, Manifest)
    assert manifest.snapshot.id == ahead == latest(store)


@pytest.mark.unmade
def test_a_new_database_is_filled_from_the_manifests(place: Place, opened: Callable[[], Store]) -> None:
    for name in ("one", "two"):
        capture = a_capture(server=a_server(name), scrollback={"%0": name})
        write_manifest(place.state_dir, capture, {name: name.encode()})
    store = opened()
    for name in ("one", "two"):
        assert store.latest_snapshot(a_server(name)) is not None
        assert store.records.scrollback(name) == name.encode()
    assert len(store.list_snapshots()) == 2
    assert store.check() == ()


def test_repair_moves_damaged_rows_away_and_takes_the_manifest_instead(store: Store, place: Place) -> None:
    first, second = save(store, "a", 0), save(store, "b", 1)
    spoil(store, first)
    spoil(store, second)
    store.driver.execute("UPDATE scrollbacks SET data = :data", data=b"spoilt")
    actions = repair(place.url, place.state_dir, at(60))
    assert any(second in action and "manifests" in action for action in actions)
    assert store.get_snapshot(second).topology.sessions[0].name == "b"
    assert store.records.scrollback("b") == b"b"
    assert [line.id for line in store.list_snapshots()] == [second]
    assert sorted(store.driver.fetch("SELECT id, body FROM damaged_snapshots")) == sorted(
        [(first, b"spoilt"), (second, b"spoilt")]
    )
    assert store.check() == ()
    assert repair(place.url, place.state_dir, at(61)) == ()


def test_repair_loads_manifests_that_are_ahead(store: Store, place: Place) -> None:
    ahead = write_manifest(place.state_dir, a_capture(session="b", scrollback={"%0": "b"}), {"b": b"b"}).id
    assert repair(place.url, place.state_dir, at(60)) == (f"Loaded 1 snapshot from the manifests: {ahead}.",)
    assert store.get_snapshot(ahead).id == ahead
    assert store.records.scrollback("b") == b"b"


def test_a_truncated_manifest_costs_only_itself_and_is_written_anew(store: Store, place: Place) -> None:
    id = save(store, "a", 0)
    other = store.save_snapshot(a_capture(server=a_server("other")), {}).id
    path = store.shelf.path(a_server())
    os.truncate(path, 100)
    found = list(read_manifests(place.state_dir))
    assert [item.where for item in found if isinstance(item, Problem)] == [path]
    assert [item.snapshot.id for item in found if isinstance(item, Manifest)] == [other]
    assert latest(store) == id
    assert [problem.where for problem in store.check()] == [path]
    repair(place.url, place.state_dir, at(60))
    assert store.check() == ()
    assert [name for name in os.listdir(store.shelf.directory) if ".damaged-" in name]
    head = store.shelf.head(a_server())
    assert head is not None
    assert head[0] == id


@pytest.mark.parametrize("spoilt", [b"", b'{"version":1,"snap', b'{"version":1,"snapshot":{"id":3}}'])
def test_a_save_sets_a_manifest_that_cannot_be_read_aside(store: Store, spoilt: bytes) -> None:
    save(store, "a", 0)
    path = store.shelf.path(a_server())
    for name, second in (("a", 1), ("b", 1), ("b", 2)):
        with open(path, "wb") as file:
            file.write(spoilt)
        save(store, name, second)
    # Stamped with when something took its place; none of the same second is overwritten.
    asides = [f"{path}.damaged-20261115T12000{end}" for end in ("1Z", "1Z.2", "2Z")]
    for aside in asides:
        with open(aside, "rb") as file:
            assert file.read() == spoilt
    assert sorted(os.listdir(store.shelf.directory)) == sorted(
        os.path.basename(each) for each in (path, store.shelf.scrollback_path(a_server()), *asides)
    )
    assert store.check() == ()


def test_a_manifest_ahead_whose_contents_cannot_be_read_is_set_aside(store: Store, place: Place) -> None:
    save(store, "a", 0)
    write_manifest(place.state_dir, a_capture(session="b", seconds=5), {})
    path = store.shelf.path(a_server())
    with open(path, "rb") as file:
        raw = file.read().replace(b'"topology":{', b'"topologie":{')
    with open(path, "wb") as file:
        file.write(raw)
    save(store, "c", 6)
    with open(f"{path}.damaged-20261115T120006Z", "rb") as file:
        assert file.read() == raw
    assert store.check() == ()


def test_a_manifest_that_cannot_be_read_stays_when_nothing_can_take_its_place(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(store, "a", 0)
    path = store.shelf.path(a_server())
    os.truncate(path, 100)

    def no_room(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("os.fsync", no_room)
        with pytest.raises(errors.StoreUnusable, match="No space left"):
            save(store, "a", 1)
    assert os.path.getsize(path) == 100
    assert not [name for name in os.listdir(store.shelf.directory) if ".damaged-" in name]


def test_lost_scrollback_comes_back_from_beside_the_manifest(store: Store, place: Place) -> None:
    save(store, "a", 0)
    store.driver.execute("DELETE FROM scrollbacks")
    assert [problem.where for problem in store.check()] == ["scrollback a"]
    assert store.read_scrollback("a") == b"a"
    repair(place.url, place.state_dir, at(60))
    assert store.records.scrollback("a") == b"a"
    assert store.check() == ()


def test_files_open_to_others_are_found_and_closed(store: Store, place: Place) -> None:
    save(store, "a", 0)
    paths = [place.state_dir, store.shelf.path(a_server()), *store.driver.files]
    for path in paths:
        os.chmod(path, 0o755)
    assert {problem.where for problem in store.check()} == set(paths)
    repair(place.url, place.state_dir, at(60))
    assert store.check() == ()
    assert os.stat(place.state_dir).st_mode & 0o777 == 0o700


def test_a_manifest_of_a_newer_perdure_is_left_alone(store: Store, place: Place) -> None:
    save(store, "a", 0)
    path = store.shelf.path(a_server())
    with open(path, "rb") as file:
        raw = file.read().replace(b'"version":1', b'"version":9')
    with open(path, "wb") as file:
        file.write(raw)
    with pytest.raises(errors.StoreTooNew):
        save(store, "b", 1)
    assert latest(store) is not None
    assert [problem.repairable for problem in store.check()] == [False]
    repair(place.url, place.state_dir, at(60))
    with open(path, "rb") as file:
        assert file.read() == raw


def test_scrollback_that_is_nowhere_is_given_up(store: Store, place: Place) -> None:
    first = save(store, "a", 0)
    save(store, "b", 1)
    store.driver.execute("UPDATE scrollbacks SET data = :data WHERE digest = 'a'", data=b"spoilt")
    with pytest.raises(errors.SnapshotDamaged):
        store.read_scrollback("a")
    repair(place.url, place.state_dir, at(60))
    assert store.check() == ()
    assert store.get_snapshot(first).details.panes["%0"].scrollback == "a"
    with pytest.raises(errors.ScrollbackNotFound):
        store.read_scrollback("a")
    assert store.driver.fetch("SELECT digest, data FROM damaged_scrollbacks") == [("a", b"spoilt")]


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_a_connection_that_breaks_is_one_sentence_and_costs_nothing(place: Place) -> None:
    store, other = place.open(), place.open()
    first = save(store, "a", 0)
    ((pid,),) = store.driver.fetch("SELECT pg_backend_pid()")
    other.driver.fetch("SELECT pg_terminate_backend(CAST(:pid AS INTEGER))", pid=pid)
    with pytest.raises(errors.StoreUnusable, match="PostgreSQL store") as caught:
        save(store, "b", 1)
    assert "\n" not in caught.value.message
    store.close()
    assert [line.id for line in other.list_snapshots()] == [first]
    other.close()


@pytest.mark.parametrize("place", ["postgres"], indirect=True)
def test_of_a_connection_that_ends_without_a_word_is_said_that_it_has_ended(place: Place) -> None:
    store = place.open()
    assert isinstance(store.driver, Postgres)
    with socket.socket(fileno=os.dup(store.driver._connection.fileno())) as line:
        line.shutdown(socket.SHUT_RDWR)
    # Not the end of what libpq guesses of it, line by line.
    with pytest.raises(errors.StoreUnusable, match=r"cannot be used: .*the connection unexpectedly\.$"):
        save(store, "a", 0)
    store.close()
