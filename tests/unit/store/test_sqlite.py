"""SQLite in bad circumstances: full disks, read-only places, files that are no databases, locks that stay."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing

import pytest

from perdure import errors
from perdure.store import open_store
from perdure.store.manifest import Manifest, read_manifests
from perdure.store.repair import repair
from perdure.store.salvage import Wreck
from perdure.store.store import Store
from tests.builders import a_capture, a_server, at
from tests.conftest import PrivateHome
from tests.contract.store.runs import a_run, an_event

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(__file__))))
NOBODY = 65534


class Place:
    """An SQLite store in a private home."""

    def __init__(self, state_dir: str) -> None:
        self.state_dir = state_dir
        self.path = os.path.join(state_dir, "p.db")
        self.url = f"sqlite://{self.path}"

    def open(self) -> Store:
        return open_store(self.url, state_dir=self.state_dir)


@pytest.fixture
def place(private_home: PrivateHome) -> Place:
    return Place(private_home.state)


def save(store: Store, name: str, seconds: float) -> str:
    capture = a_capture(session=name, seconds=seconds, scrollback={"%0": name})
    return store.save_snapshot(capture, {name: name.encode() * 50}).id


def filled(place: Place, count: int = 40) -> list[str]:
    store = place.open()
    ids = [save(store, f"state-{number}", number) for number in range(count)]
    store.close()
    return ids


def in_a_child(
    place: Place, program: str, prepare: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a program that has `store()` and `save(store, name, seconds)`, and prints the sentence of what it raises."""
    whole = f"""
import os, sys
from perdure import errors
from tests.builders import a_capture
from perdure.store import open_store
def store():
    return open_store({place.url!r}, state_dir={place.state_dir!r})
def save(store, name, seconds, text=b"x"):
    return store.save_snapshot(a_capture(session=name, seconds=seconds, scrollback={{"%0": name}}), {{name: text}})
try:
{"".join(f"    {line}{chr(10)}" for line in program.strip().splitlines())}
except errors.StoreUnusable as error:
    print(type(error).__name__, error.message)
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "src"), ROOT])}
    return subprocess.run(
        [sys.executable, "-c", whole], capture_output=True, text=True, check=False, env=env, preexec_fn=prepare
    )


def assert_one_sentence(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("Store")
    assert done.stdout.count("\n") == 1
    assert done.stdout.endswith(".\n")


def test_it_is_as_durable_as_it_says(place: Place) -> None:
    store = place.open()
    assert store.driver.fetch("PRAGMA journal_mode") == [("wal",)]
    assert store.driver.fetch("PRAGMA synchronous") == [(2,)]
    assert store.driver.fetch("PRAGMA foreign_keys") == [(1,)]
    store.close()


@pytest.mark.parametrize("content", [b"no database at all, only text\n" * 100, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_damage_and_repair_keeps_it(place: Place, content: bytes) -> None:
    os.mkdir(place.state_dir)
    with open(place.path, "wb") as file:
        file.write(content)
    with pytest.raises(errors.StoreDamaged, match=place.path):
        place.open().check()
    actions = repair(place.url, place.state_dir, at(0))
    aside = f"{place.path}.damaged-20261115T120000Z"
    assert aside in actions[0]
    with open(aside, "rb") as file:
        assert file.read() == content
    store = place.open()
    assert store.list_snapshots() == ()
    store.close()


def assert_nothing_to_repair(store: Store) -> None:
    """Whatever is said is that not everything could be read in what was set aside."""
    for problem in store.check():
        assert ".damaged-" in problem.where
        assert problem.what.startswith(("Not all ", "Nothing in "))
        assert not problem.repairable


def spoil_pages(path: str, *pages: int) -> None:
    with open(path, "r+b") as file:
        for page in pages:
            file.seek(page * 4096 + (100 if page == 0 else 0))
            file.write(b"\xa5" * 3000)


def leaf_with(path: str, text: bytes) -> int:
    """The number of the page of the snapshots' table that holds a text."""
    with open(path, "rb") as file:
        pages = iter(lambda: file.read(4096), b"")
        return next(
            number for number, page in enumerate(pages) if page[0] == 0x0D and text in page and b"laptop/1000" in page
        )


def test_repair_brings_back_every_snapshot_that_can_still_be_read(place: Place) -> None:
    ids = filled(place)
    spoil_pages(place.path, leaf_with(place.path, ids[10].encode()), leaf_with(place.path, ids[20].encode()))
    actions = repair(place.url, place.state_dir, at(100))
    assert "aside" in actions[0]
    store = place.open()
    back = {line.id for line in store.list_snapshots()}
    assert back <= set(ids)
    # Those on the two pages are lost, those around them are not.
    assert {ids[0], ids[15], ids[30], ids[-1]} <= back
    assert len(ids) - 10 <= len(back) < len(ids)
    for line in store.list_snapshots():
        name = store.get_snapshot(line.id).topology.sessions[0].name
        assert store.read_scrollback(name) == name.encode() * 50
    (problem,) = store.check()
    assert f"Not all snapshots in the damaged database could be read; what came back of it: {len(back)}" in problem.what
    store.close()
    # As long as the file is there, and no longer.
    os.rename(problem.where, f"{problem.where}.looked-into")
    store = place.open()
    assert store.check() == ()
    store.close()


@pytest.mark.parametrize("tenth", range(10))
def test_repair_never_loses_the_latest_wherever_the_damage_is(place: Place, tenth: int) -> None:
    ids = filled(place, 12)
    spoil_pages(place.path, os.path.getsize(place.path) // 4096 * tenth // 10)
    damaged_size = os.path.getsize(place.path)
    repair(place.url, place.state_dir, at(100))
    store = place.open()
    latest = store.latest_snapshot(a_server())
    assert latest is not None
    assert latest.id == ids[-1]
    assert store.get_snapshot(ids[-1]) == latest
    assert store.read_scrollback("state-11") == b"state-11" * 50
    assert_nothing_to_repair(store)
    store.close()
    aside = [
        name for name in os.listdir(place.state_dir) if ".damaged-" in name and not name.endswith(("-wal", "-shm"))
    ]
    assert [os.path.getsize(os.path.join(place.state_dir, name)) for name in aside] in ([], [damaged_size])


def roots_of(path: str, *tables: str) -> list[int]:
    """The numbers of the pages some tables begin on, from 1."""
    with closing(sqlite3.connect(path)) as connection:
        named = dict(connection.execute("SELECT name, rootpage FROM sqlite_master"))
    return [named[table] for table in tables]


def recorded(place: Place, count: int = 60) -> int:
    """Record runs r1, r2, … with an event each; return the number of the last event."""
    store = place.open()
    for number, id in enumerate(store.new_runs(count)):
        store.record([a_run(id, cwd=os.urandom(300).hex())], [an_event(run=id, data={"number": number})])
    last = store.last_event()
    store.close()
    return last


@pytest.mark.parametrize("tenth", range(10))
@pytest.mark.parametrize("has_copy", [True, False])
def test_repair_gives_no_number_again_wherever_the_damage_is(place: Place, tenth: int, *, has_copy: bool) -> None:
    last = recorded(place)
    if not has_copy:
        os.unlink(os.path.join(place.state_dir, "numbers.json"))
    page = os.path.getsize(place.path) // 4096 * tenth // 10
    beginnings = {0, *(root - 1 for root in roots_of(place.path, "runs", "events"))}
    spoil_pages(place.path, page)
    repair(place.url, place.state_dir, at(100))
    store = place.open()
    runs, events = store.list_runs(), store.read_events()
    if page not in beginnings:
        # Only what lay on the one page is gone; with the one a table begins on, or where they are named, all of it is.
        assert len(runs) >= 50
        assert len(events) >= 20
    if tenth or has_copy:
        assert store.last_event() >= last
        assert store.new_runs(1) == ("r61",)
        assert store.record([], [an_event()])[0].seq > last
    for stored in events:
        assert stored.event.run == f"r{stored.event.data['number'] + 1}"
    assert_nothing_to_repair(store)
    store.close()


def test_a_run_in_a_wreck_is_what_its_log_says(place: Place) -> None:
    recorded(place, 3)
    store = place.open()
    store.record([a_run("r2", title="newest")], [an_event(run="r2")])
    wreck = Wreck(place.path)
    assert wreck.runs() == store.list_runs()
    assert wreck.events() == store.read_events()
    assert wreck.highest() == {"runs": 3, "events": 4}
    store.close()


def test_what_was_set_aside_before_is_never_overwritten(place: Place) -> None:
    for _ in range(2):
        filled(place, 2)
        with open(place.path, "wb") as file:
            file.write(b"gone" * 5000)
        repair(place.url, place.state_dir, at(100))
    names = sorted(name for name in os.listdir(place.state_dir) if ".damaged-" in name)
    assert names == ["p.db.damaged-20261115T120140Z", "p.db.damaged-20261115T120140Z.2"]


def test_what_was_only_in_the_log_comes_back_too(place: Place) -> None:
    ids = filled(place, 3)
    store = place.open()
    newest = save(store, "newest", 50)
    ((root,),) = store.driver.fetch("SELECT rootpage FROM sqlite_master WHERE name = 'facts'")
    # As a power cut leaves it: the newest save is in the log alone.
    copies = {path: f"{path}.copy" for path in store.driver.files}
    for path, copy in copies.items():
        shutil.copy(path, copy)
    store.close()
    for path, copy in copies.items():
        os.replace(copy, path)
    shutil.rmtree(os.path.join(place.state_dir, "latest"))
    spoil_pages(place.path, root - 1)
    assert "aside" in repair(place.url, place.state_dir, at(100))[0]
    store = place.open()
    assert {line.id for line in store.list_snapshots()} == {*ids, newest}
    store.close()


def test_a_database_that_is_gone_is_rebuilt_from_the_manifests_with_scrollback(place: Place) -> None:
    ids = filled(place, 3)
    for name in os.listdir(place.state_dir):
        if name.startswith("p.db"):
            os.unlink(os.path.join(place.state_dir, name))
    store = place.open()
    assert [line.id for line in store.list_snapshots()] == [ids[-1]]
    assert store.records.scrollback("state-2") == b"state-2" * 50
    # And the history goes on where it was.
    assert save(store, "state-2", 60) == ids[-1]
    assert store.check() == ()
    store.close()


def test_a_lock_that_stays_is_one_sentence(place: Place) -> None:
    holder = place.open()
    first = save(holder, "a", 0)
    with holder.driver.transaction():
        program = "import perdure.store.sqlite as s; s.PATIENCE = 0.1\nsave(store(), 'b', 1)"
        done = in_a_child(place, program)
    assert_one_sentence(done)
    assert "locked" in done.stdout
    assert place.path in done.stdout
    assert [line.id for line in holder.list_snapshots()] == [first]
    holder.close()


def limited() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))


def test_no_room_to_write_leaves_what_was_there(place: Place) -> None:
    ids = filled(place, 3)
    done = in_a_child(place, "save(store(), 'big', 60, os.urandom(2_000_000))", limited)
    assert_one_sentence(done)
    store = place.open()
    assert [line.id for line in store.list_snapshots()] == ids[::-1]
    assert store.check() == ()
    assert not [name for name in os.listdir(store.shelf.directory) if name.endswith(".tmp")]
    assert save(store, "next", 61)
    store.close()


@pytest.fixture
def small_disk(private_home: PrivateHome) -> str:
    """A file system of a megabyte; where it cannot be mounted the test says so."""
    path = os.path.join(private_home.root, "disk")
    os.mkdir(path)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", path], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"no right to mount a small disk: {done.stderr.strip()}")
    return path


def test_a_full_disk_is_one_sentence_and_costs_nothing(small_disk: str) -> None:
    place = Place(os.path.join(small_disk, "state"))
    try:
        ids = filled(place, 3)
        done = in_a_child(place, "save(store(), 'big', 60, os.urandom(3_000_000))")
        assert_one_sentence(done)
        assert "full" in done.stdout or "No space" in done.stdout
        store = place.open()
        assert {line.id for line in store.list_snapshots()} >= set(ids)
        latest = store.latest_snapshot(a_server())
        assert latest is not None
        assert latest.id == ids[-1]
        assert [problem for problem in store.check() if not problem.repairable] == []
        assert save(store, "next", 61)
        store.close()
    finally:
        subprocess.run(["umount", small_disk], check=True)


#: Loads everything first: somebody without rights may not be able to read the interpreter's own files.
AS_NOBODY = f"""
import encodings.idna, perdure.store.repair
from perdure.store import migrations, queries, sqlite
queries.queries(), [queries.read_sql("migrations/" + name) for name in queries.names_below("migrations")]
os.setgid({NOBODY}), os.setuid({NOBODY})
"""


@pytest.fixture
def nobodys(private_home: PrivateHome, place: Place) -> Place:
    """A filled store that belongs to somebody without root's rights."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    filled(place, 2)
    os.chmod(private_home.root, 0o755)
    for folder, _, names in os.walk(place.state_dir):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, NOBODY, NOBODY)
    return place


def test_a_read_only_directory_is_one_sentence(nobodys: Place) -> None:
    os.chmod(nobodys.state_dir, 0o500)
    done = in_a_child(nobodys, AS_NOBODY + "save(store(), 'new', 60)")
    assert_one_sentence(done)
    assert nobodys.path in done.stdout


def test_a_read_only_database_is_one_sentence(nobodys: Place) -> None:
    os.chmod(nobodys.path, 0o400)
    done = in_a_child(nobodys, AS_NOBODY + "save(store(), 'new', 60)")
    assert_one_sentence(done)
    assert "read-only" in done.stdout


def test_read_only_manifests_fail_the_whole_save(nobodys: Place) -> None:
    os.chmod(os.path.join(nobodys.state_dir, "latest"), 0o500)
    done = in_a_child(nobodys, AS_NOBODY + "save(store(), 'new', 60)")
    assert_one_sentence(done)
    assert "Permission denied" in done.stdout
    done = in_a_child(nobodys, AS_NOBODY + "print(len(store().list_snapshots()))")
    assert done.stdout == "2\n"


def test_a_directory_that_cannot_be_made_is_one_sentence(nobodys: Place) -> None:
    os.chmod(nobodys.state_dir, 0o500)
    below = Place(os.path.join(nobodys.state_dir, "below"))
    done = in_a_child(below, AS_NOBODY + "store()")
    assert_one_sentence(done)


def test_a_directory_in_place_of_the_database_is_one_sentence(place: Place) -> None:
    os.makedirs(place.path)
    done = in_a_child(place, "store()")
    assert_one_sentence(done)


def test_somebody_elses_database_is_left_alone(place: Place) -> None:
    os.mkdir(place.state_dir)
    with sqlite3.connect(place.path) as connection:
        connection.execute("CREATE TABLE snapshots (theirs TEXT)")
    connection.close()
    with pytest.raises(errors.StoreUnusable, match="already exists"):
        place.open()
    with sqlite3.connect(place.path) as connection:
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("snapshots",)]
    connection.close()


def test_manifests_do_not_change_when_the_database_does_not(place: Place) -> None:
    filled(place, 2)
    (before,) = read_manifests(place.state_dir)
    store = place.open()
    store.close()
    (after,) = read_manifests(place.state_dir)
    assert isinstance(after, Manifest)
    assert before == after


def test_what_is_no_regular_file_is_neither_opened_nor_set_aside(place: Place) -> None:
    os.mkdir(place.state_dir, 0o700)
    os.mkfifo(place.path)
    with pytest.raises(errors.StoreUnusable, match="not a regular file"):
        place.open()
    with pytest.raises(errors.StoreUnusable, match="not a regular file"):
        repair(place.url, place.state_dir, at(0))
    assert stat.S_ISFIFO(os.lstat(place.path).st_mode)
