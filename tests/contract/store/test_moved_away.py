"""A database that is not where its log is: nobody makes another in its place, and the log outlives whoever looks."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable

import pytest

from perdure import errors
from perdure.store import open_store
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import at
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_chat, a_turn
from tests.perdure_cli import Perdure


class Moving:
    """An SQLite store that can be moved away."""

    def __init__(self, state: str) -> None:
        self.state = state
        self.path = os.path.join(state, "perdure.db")
        self.log, self.away = f"{self.path}-wal", os.path.join(state, "away.db")

    def open(self, *, threads: bool = False, read_only: bool = False) -> Store:
        return open_store(f"sqlite://{self.path}", state_dir=self.state, threads=threads, read_only=read_only)

    def fill(self, store: Store, count: int = 30) -> None:
        """Say something in a new chat."""
        store.chats.begin_chat(a_chat())
        for number in range(count):
            store.chats.append_turns("c1", [a_turn(f"t{number}")], at(number))

    def lose(self) -> bytes:
        """Leave nothing of a filled database but its log, as a kill leaves it; return what that holds."""
        store = self.open()
        self.fill(store)
        shutil.copy(self.log, f"{self.log}.kept")
        shutil.copy(self.path, self.away)
        store.close()
        os.unlink(self.path)
        os.rename(f"{self.log}.kept", self.log)
        return self.written()

    def written(self, aside: str = "perdure.db") -> bytes:
        """What a log holds."""
        with open(os.path.join(self.state, f"{aside}-wal"), "rb") as file:
            return file.read()


@pytest.fixture
def moving(private_home: PrivateHome) -> Moving:
    return Moving(private_home.state)


def said(store: Store) -> list[object]:
    return [turn.content for turn in store.chats.load_turns("c1").turns]


EVERYTHING = [f"t{number}" for number in range(30)]


@pytest.mark.parametrize("threads", [False, True])
def test_a_database_that_was_moved_away_and_back_has_all_that_was_said(moving: Moving, threads: bool) -> None:
    store = moving.open(threads=threads)
    moving.fill(store)
    os.rename(moving.path, moving.away)
    verbs: list[Callable[[], object]] = [
        lambda: store.chats.append_turns("c1", [a_turn("lost")], at(60)),
        lambda: store.chats.begin_chat(a_chat("c2")),
        lambda: store.new_runs(1),
    ]
    for _ in range(2):
        for verb in verbs:
            with pytest.raises(errors.StoreUnusable, match="has to be opened again"):
                verb()
            assert not os.path.exists(moving.path)
    store.close()
    os.rename(moving.away, moving.path)
    store = moving.open()
    assert said(store) == EVERYTHING
    store.close()


def test_a_pool_goes_on_once_the_database_is_back(moving: Moving) -> None:
    store = moving.open(threads=True)
    moving.fill(store)
    os.rename(moving.path, moving.away)
    with pytest.raises(errors.StoreUnusable, match="has to be opened again"):
        store.chats.append_turns("c1", [a_turn("lost")], at(60))
    os.rename(moving.away, moving.path)
    assert store.chats.append_turns("c1", [a_turn("t30")], at(61)) == 31
    store.close()
    store = moving.open()
    assert said(store) == [*EVERYTHING, "t30"]
    store.close()


def test_a_pool_makes_no_store_where_its_directory_was(moving: Moving) -> None:
    store = moving.open(threads=True)
    moving.fill(store)
    os.rename(moving.state, f"{moving.state}.away")
    for _ in range(3):
        with pytest.raises(errors.StoreUnusable, match="has to be opened again"):
            store.chats.append_turns("c1", [a_turn("lost")], at(60))
    assert not os.path.exists(moving.state)
    store.close()
    os.rename(f"{moving.state}.away", moving.state)
    store = moving.open()
    assert said(store) == EVERYTHING
    store.close()


def test_a_pool_takes_no_other_database_for_the_one_it_was_opened_at(moving: Moving) -> None:
    store = moving.open(threads=True)
    moving.fill(store)
    for name in ("", "-wal", "-shm"):
        os.rename(moving.path + name, moving.away + name)
    moving.open().close()
    for _ in range(3):
        with pytest.raises(errors.StoreUnusable, match=r"another was put in its place.*opened again"):
            store.chats.begin_chat(a_chat("c2"))
    store.close()


def emptied(moving: Moving) -> None:
    os.close(os.open(moving.path, os.O_WRONLY | os.O_CREAT, 0o600))


@pytest.mark.parametrize("is_there", [False, True])
@pytest.mark.parametrize("how", [{}, {"threads": True}, {"read_only": True}], ids=["alone", "threads", "read-only"])
def test_a_log_without_its_database_is_left_as_it_is(moving: Moving, how: dict[str, bool], is_there: bool) -> None:
    log = moving.lose()
    if is_there:
        emptied(moving)
    with pytest.raises(errors.StoreDamaged, match="empty" if is_there else "not there") as caught:
        moving.open(**how)
    assert moving.log in caught.value.message
    assert moving.written() == log
    os.rename(moving.away, moving.path)
    store = moving.open()
    assert said(store) == EVERYTHING
    store.close()


@pytest.mark.parametrize(
    "command",
    [
        "chats ls",
        "check",
        "chats search x",
        "chats reset zzz",
        "events --after 0",
        "history",
        "jobs ls",
        "chats ls --all",
    ],
)
def test_every_command_says_that_the_database_is_gone_and_leaves_its_log(
    moving: Moving, perdure: Perdure, command: str
) -> None:
    log = moving.lose()
    ran = perdure(*command.split())
    assert ran.code == 5
    assert "Traceback" not in ran.err
    assert "put the database back beside its log" in ran.out + ran.err
    assert moving.written() == log
    assert not os.path.exists(moving.path)


@pytest.mark.parametrize("is_there", [False, True])
def test_a_repair_sets_the_log_aside_so_that_it_can_be_used_again(moving: Moving, is_there: bool) -> None:
    log = moving.lose()
    if is_there:
        emptied(moving)
    action = repair(f"sqlite://{moving.path}", moving.state, at(60))[0]
    (aside,) = glob.glob(f"{moving.path}.damaged-*-wal")
    assert aside in action
    assert moving.written(os.path.basename(aside).removesuffix("-wal")) == log
    named = aside.removesuffix("-wal")
    store = moving.open()
    # This log holds everything there ever was.
    assert said(store) == EVERYTHING
    assert store.check() == ()
    store.close()
    # What was found later goes where the sentence says.
    os.rename(moving.away, named)
    store = open_store(f"sqlite://{named}", state_dir=moving.state)
    assert said(store) == EVERYTHING
    store.close()


def test_a_link_to_a_database_that_is_not_there_yet_makes_it_where_it_points(moving: Moving) -> None:
    real = os.path.join(os.path.dirname(moving.state), "real.db")
    os.makedirs(moving.state, exist_ok=True)
    os.symlink(real, moving.path)
    store = moving.open()
    moving.fill(store, 1)
    assert os.stat(real).st_mode & 0o777 == 0o600
    store.close()
    assert os.path.islink(moving.path)
