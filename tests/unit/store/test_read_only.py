"""SQLite read where nothing can be written: what lies beside the file decides how, and causes are named."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator

import pytest

from perdure import errors
from perdure.store import open_store
from perdure.store.files import obstacle
from perdure.store.store import Store
from tests.builders import a_capture, a_server
from tests.conftest import PrivateHome


class Place:
    """An SQLite store on a disk of a megabyte that can be filled and made read-only."""

    def __init__(self, disk: str) -> None:
        self.disk = disk
        self.state_dir = os.path.join(disk, "state")
        self.path = os.path.join(self.state_dir, "p.db")

    def open(self, *, read_only: bool = False) -> Store:
        return open_store(f"sqlite://{self.path}", state_dir=self.state_dir, read_only=read_only)

    def remount(self, how: str) -> None:
        subprocess.run(["mount", "-o", f"remount,{how}", self.disk], check=True)

    def fill(self) -> None:
        with open(os.path.join(self.disk, "ballast"), "wb", buffering=0) as file:
            for size in (65536, 4096, 1):
                try:
                    while True:
                        file.write(b"x" * size)
                except OSError:
                    continue


@pytest.fixture
def place(private_home: PrivateHome) -> Iterator[Place]:
    """The disk, empty; where it cannot be mounted the test says so."""
    path = os.path.join(private_home.root, "disk")
    os.mkdir(path)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no right to mount a small disk: {done.stderr.strip()}")
    yield Place(path)
    subprocess.run(["umount", "-l", path], check=True)


def save(store: Store, name: str, seconds: float) -> str:
    return store.save_snapshot(a_capture(session=name, seconds=seconds), {}).id


def filled(place: Place) -> list[str]:
    store = place.open()
    ids = [save(store, name, second) for second, name in enumerate("abc")]
    store.close()
    return ids[::-1]


def leave_log(place: Place, *suffixes: str) -> str:
    """Save once more, and leave the files as a power cut would: the newest snapshot is in the log alone."""
    store = place.open()
    newest = save(store, "newest", 50)
    for suffix in ("", *suffixes):
        shutil.copy(place.path + suffix, f"{place.disk}/copy{suffix}")
    store.close()
    for suffix in ("", *suffixes):
        shutil.move(f"{place.disk}/copy{suffix}", place.path + suffix)
    return newest


def ids(store: Store) -> list[str]:
    return [line.id for line in store.list_snapshots()]


def test_a_read_only_file_system_is_the_cause_that_is_named_and_can_be_read(place: Place) -> None:
    kept = filled(place)
    place.remount("ro")
    with pytest.raises(errors.StoreUnusable, match="the file system is read-only") as caught:
        place.open()
    assert caught.value.data == {"path": place.path, "cause": "the file system is read-only"}
    store = place.open(read_only=True)
    assert ids(store) == kept
    assert store.check() == ()
    store.close()


def test_a_full_disk_is_the_cause_that_is_named_and_can_be_read(place: Place) -> None:
    kept = filled(place)
    place.fill()
    with pytest.raises(errors.StoreUnusable, match="the disk is full"):
        place.open()
    # Twice: the attempt to open it for writing has left an empty log and the stump of its index.
    for _ in range(2):
        store = place.open(read_only=True)
        assert ids(store) == kept
        assert store.check() == ()
        store.close()
    os.unlink(os.path.join(place.disk, "ballast"))
    store = place.open()
    assert ids(store) == kept
    store.close()


def test_a_log_that_was_left_is_read_with_its_index(place: Place) -> None:
    kept = filled(place)
    newest = leave_log(place, "-wal", "-shm")
    shutil.rmtree(os.path.join(place.state_dir, "latest"))
    place.remount("ro")
    store = place.open(read_only=True)
    assert ids(store) == [newest, *kept]
    assert store.check() == ()
    store.close()


def test_a_log_that_cannot_be_read_is_said_and_the_manifest_supplies_the_latest(place: Place) -> None:
    kept = filled(place)
    newest = leave_log(place, "-wal")
    place.remount("ro")
    store = place.open(read_only=True)
    assert ids(store) == [newest, *kept]
    assert store.get_snapshot(newest).topology.sessions[0].name == "newest"
    found = store.latest_snapshot(a_server())
    assert found is not None
    assert found.id == newest
    (problem,) = store.check()
    assert problem.where == f"{place.path}-wal"
    store.close()


def test_a_new_store_on_a_full_disk_is_read_from_its_manifests(place: Place) -> None:
    kept = filled(place)
    os.unlink(place.path)
    place.fill()
    with pytest.raises(errors.StoreUnusable):
        place.open()
    store = place.open(read_only=True)
    assert ids(store) == kept[:1]
    store.close()


def test_a_damaged_database_is_damage_here_too(place: Place) -> None:
    filled(place)
    with open(place.path, "wb") as file:
        file.write(b"no database at all, only text\n" * 100)
    place.remount("ro")
    with pytest.raises(errors.StoreDamaged):
        place.open(read_only=True)


def test_a_directory_in_place_of_the_database_is_one_sentence(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.state, "p.db")
    os.makedirs(path)
    with pytest.raises(errors.StoreUnusable, match="cannot be used"):
        open_store(f"sqlite://{path}", state_dir=private_home.state, read_only=True)


def test_where_all_is_well_there_is_no_obstacle(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.root, "file")
    assert obstacle(path) is None
    with open(path, "wb"):
        pass
    assert obstacle(path) is None
    assert obstacle(os.path.join(private_home.root, "missing", "file")) is None


def test_an_obstacle_is_named(place: Place) -> None:
    path = os.path.join(place.disk, "file")
    assert obstacle(path) is None
    place.fill()
    assert obstacle(path) == "the disk is full"
    place.remount("ro")
    assert obstacle(path) == "the file system is read-only"
