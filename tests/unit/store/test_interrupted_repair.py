"""A repair that is killed, wherever that is: it is seen, it is gone on with, and nothing is lost or there twice."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

import perdure.store.repair
from perdure import errors
from perdure.store import open_store, store_over
from perdure.store.mending import note_of
from perdure.store.repair import repair
from perdure.store.sqlite import SQLite
from perdure.store.store import Store
from tests.builders import a_capture, at
from tests.contract.store.chats import a_chat, a_turn
from tests.contract.store.jobs import a_job, begun, over
from tests.contract.store.runs import a_run, an_event

_CHATS = ("c1", "c2", "c3")
#: Everything a repair does for good: between two of these nothing is different for whoever comes after a kill.
_STEPS = ((os, "rename"), (os, "replace"), (os, "unlink"), (SQLite, "commit"))
_KILLED = 9
#: Into how many tests the steps are shared out.
_SHARES = 8


@pytest.fixture(scope="module")
def original() -> Iterator[str]:
    """A state directory with some of everything, the newest in the log alone, and an index that is damaged."""
    with tempfile.TemporaryDirectory() as work, tempfile.TemporaryDirectory() as directory:
        with closing(opened(work)) as store:
            store.save_snapshot(a_capture(session="first", seconds=1), {})
            store.save_snapshot(a_capture(session="second", seconds=2), {})
            for id in (*_CHATS, "gone"):
                store.chats.begin_chat(a_chat(id, title=id))
                store.chats.append_turns(id, [a_turn(f"{id} {text}") for text in "abc"], at(0))
            store.chats.grant_chat("c1", "carol")
            (run,) = store.new_runs(1)
            store.record([a_run(run)], [an_event(run=run)])
            store.jobs.add_job(a_job("j1", owner="c1"))
            store.jobs.change_job("j1", begun)
            store.jobs.change_job("j1", over)
            store.driver.execute("DELETE FROM chats WHERE id = 'gone'")
            store.driver.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            store.chats.append_turns("c2", [a_turn("c2 in the log")], at(1))
            ((root,),) = store.driver.fetch("SELECT rootpage FROM sqlite_master WHERE name = 'snapshots_by_time'")
            shutil.copytree(work, directory, dirs_exist_ok=True)
        assert os.path.getsize(f"{directory}/perdure.db-wal") > 0
        with open(f"{directory}/perdure.db", "r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(bytes(4096))
        yield directory


@pytest.fixture(scope="module")
def whole(original: str) -> dict[str, Any]:
    """What a repair makes of it that nobody interrupts."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        mend(directory)
        found = kept(directory)
    assert {id: len(turns) for id, turns in found["chats"].items()} == {"c1": 3, "c2": 4, "c3": 3}
    assert (len(found["snapshots"]), found["granted"], found["aside"]) == (2, ["c1"], 3)
    assert (found["runs"], found["jobs"], len(found["owed"])) == (["r1"], ["j1"], 1)
    assert found["problems"] == ()
    return found


def url_of(directory: str) -> str:
    return f"sqlite://{directory}/perdure.db"


def opened(directory: str) -> Store:
    return open_store(url_of(directory), state_dir=directory)


def mend(directory: str) -> tuple[str, ...]:
    return repair(url_of(directory), directory, at(100))


def kept(directory: str) -> dict[str, Any]:
    """Everything that a store has."""
    with closing(opened(directory)) as store:
        events = store.read_events()
        return {
            "chats": {id: [turn.content for turn in store.chats.load_turns(id).turns] for id in _CHATS},
            "titles": {chat.id: (chat.title, chat.is_open) for chat in store.chats.list_chats()},
            "granted": [id for id in _CHATS if store.chats.is_granted(id, "carol")],
            "snapshots": [line.id for line in store.list_snapshots()],
            "runs": [run.id for run in store.list_runs()],
            "events": [(stored.seq, stored.event.kind) for stored in events],
            "jobs": [job.id for job in store.jobs.list_jobs()],
            "owed": [stored.seq for stored in store.jobs.undelivered("c1")],
            "aside": store.driver.fetch("SELECT count(*) FROM damaged_turns")[0][0],
            "problems": store.check(),
        }


def is_said_to_be_whole(directory: str) -> bool:
    """Whether whoever looks after a kill is told that all is well."""
    try:
        with closing(opened(directory)) as store:
            return store.check() == ()
    except errors.StoreDamaged as error:
        return "check --repair" not in error.message


def is_killed(directory: str, step: int, steps: Sequence[tuple[Any, str]] = _STEPS) -> bool:
    """Begin a repair that is killed before one of some steps; False when it has not that many."""
    child = os.fork()
    if child == 0:
        try:
            die_before(step, steps)
            mend(directory)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, _KILLED)
    return code == _KILLED


def die_before(step: int, steps: Sequence[tuple[Any, str]]) -> None:
    left = iter(range(step - 1, -1, -1))

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **named: Any) -> Any:
            if not next(left):
                os._exit(_KILLED)
            return real(*args, **named)

        return call

    for where, name in steps:
        setattr(where, name, counted(getattr(where, name)))


@pytest.mark.parametrize("share", range(_SHARES))
def test_a_repair_that_is_killed_is_seen_and_gone_on_with(original: str, whole: dict[str, Any], share: int) -> None:
    step = share + 1
    while True:
        with tempfile.TemporaryDirectory() as directory:
            shutil.copytree(original, directory, dirs_exist_ok=True)
            if not is_killed(directory, step):
                break
            if is_said_to_be_whole(directory):
                assert kept(directory) == whole, step
            mend(directory)
            assert kept(directory) == whole, step
            assert not os.path.exists(note_of(f"{directory}/perdure.db"))
            assert mend(directory) == ()
        step += _SHARES
    assert step > _SHARES


def test_one_that_is_killed_again_and_again_comes_to_its_end(original: str, whole: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        step = 3
        while is_killed(directory, step):
            step += 2
        assert kept(directory) == whole


@pytest.fixture
def half_done(original: str) -> Iterator[str]:
    """A state directory in which a repair was killed when it had brought one chat over."""
    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        assert is_killed(directory, 2, steps=((perdure.store.repair, "adopt"),))
        with closing(sqlite3.connect(f"{directory}/perdure.db")) as connection:
            assert connection.execute("SELECT id FROM chats").fetchall() == [("c1",)]
        yield directory


def test_nobody_takes_half_of_what_was_kept_for_all_of_it(half_done: str, whole: dict[str, Any]) -> None:
    for read_only, threads in ((False, False), (False, True), (True, False)):
        with pytest.raises(errors.StoreDamaged, match=r"interrupted; `perdure check --repair`"):
            open_store(url_of(half_done), state_dir=half_done, read_only=read_only, threads=threads)
    assert mend(half_done)[0] == "Went on with a repair that was interrupted."
    assert kept(half_done) == whole


def test_what_was_written_into_the_new_database_meanwhile_is_kept(half_done: str, whole: dict[str, Any]) -> None:
    # By somebody who was about to open it when the repair began.
    with closing(store_over(SQLite(f"{half_done}/perdure.db"), half_done)) as store:
        store.chats.append_turns("c1", [a_turn("c1 meanwhile")], at(50))
        store.chats.begin_chat(a_chat("new", key="key-c3", title="c3"))
        store.chats.append_turns("new", [a_turn("new")], at(50))
    mend(half_done)
    found = kept(half_done)
    assert found["chats"] == whole["chats"] | {"c1": [*whole["chats"]["c1"], "c1 meanwhile"]}
    assert (found["titles"]["new"], found["titles"]["c3"]) == (("c3", True), (None, False))
    assert len({seq for seq, _ in found["events"]}) == len(found["events"]) > len(whole["events"])
    assert found["problems"] == ()


def test_a_new_database_that_is_damaged_meanwhile_is_set_aside_as_well(half_done: str, whole: dict[str, Any]) -> None:
    with open(f"{half_done}/perdure.db", "r+b") as file:
        file.write(b"no database")
    mend(half_done)
    found = kept(half_done)
    del found["problems"]
    assert found == {name: value for name, value in whole.items() if name != "problems"}
    aside = [name for name in os.listdir(half_done) if ".damaged-" in name and not name.endswith(("-wal", "-shm"))]
    assert len(aside) == 2


def test_a_note_that_cannot_be_read_is_no_reason_to_guess(half_done: str) -> None:
    with open(note_of(f"{half_done}/perdure.db"), "wb") as file:
        file.write(b"{")
    for verb in (opened, mend):
        with pytest.raises(errors.StoreUnusable, match="mending cannot be read"):
            verb(half_done)


def test_nobody_writes_to_a_database_while_it_is_moved(original: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[str] = []
    rename = os.rename

    def watched(old: str, new: str) -> None:
        if ".damaged-" in new:
            try:
                gateway.execute("BEGIN IMMEDIATE")
                gateway.execute("ROLLBACK")
                answers.append("may write")
            except sqlite3.OperationalError as error:
                answers.append(str(error))
        rename(old, new)

    with tempfile.TemporaryDirectory() as directory:
        shutil.copytree(original, directory, dirs_exist_ok=True)
        path = f"{directory}/perdure.db"
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as gateway:
            gateway.execute("SELECT count(*) FROM chats").fetchall()
            monkeypatch.setattr(os, "rename", watched)
            mend(directory)
    # The index of the log, the log and the database.
    assert answers == ["database is locked"] * 3
