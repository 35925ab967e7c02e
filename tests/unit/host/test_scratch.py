from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

import pytest

from perdure.errors import PerdureError
from perdure.host.scratch import Kind, Scratch, remove_stale
from perdure.host.users import current_user, user_by_name
from perdure.model.user import User
from perdure.tmux.wrap import Start, command

NOBODY = user_by_name("nobody")
needs_root = pytest.mark.skipif(os.geteuid() != 0 or NOBODY is None, reason="only root acts for others")

#: How long a pane may take to go on before the test says that it hangs; generous, since nothing is measured by it.
PATIENCE = 20.0


@pytest.fixture
def scratch() -> Scratch:
    return Scratch(os.environ["PERDURE_STATE_DIR"], "r1", current_user())


@pytest.fixture
def pane(scratch: Scratch) -> Iterator[Callable[[int], subprocess.Popen[bytes]]]:
    """Starts what a pane of a step runs: it waits at its gate, and says `ran`."""
    started = []

    def start(n: int) -> subprocess.Popen[bytes]:
        ran = os.path.join(os.environ["HOME"], "ran")
        start = Start(argv=("/bin/sh", "-c", 'echo ran >>"$1"', "x", ran), stays=True, gate=scratch.path(n, Kind.GATE))
        started.append(subprocess.Popen(command(start), stdin=subprocess.DEVNULL))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
            process.wait()


def times_run() -> int:
    try:
        with open(os.path.join(os.environ["HOME"], "ran"), encoding="ascii") as file:
            return file.read().count("ran\n")
    except FileNotFoundError:
        return 0


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.005)


def mode(path: str) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def is_waiting(process: subprocess.Popen[bytes], gate: str) -> bool:
    """The process holds the gate open."""
    handles = f"/proc/{process.pid}/fd"
    return any(os.path.realpath(os.path.join(handles, name)) == os.path.realpath(gate) for name in os.listdir(handles))


def test_everything_is_for_the_user_alone_whatever_the_umask(scratch: Scratch) -> None:
    before = os.umask(0)
    try:
        scratch.prepare({1: b"text\n"}, [1])
    finally:
        os.umask(before)
    state = os.environ["PERDURE_STATE_DIR"]
    for directory in (state, os.path.join(state, "restores"), scratch.directory):
        assert mode(directory) == 0o700
    assert mode(scratch.path(1, Kind.TEXT)) == 0o600
    assert mode(scratch.path(1, Kind.GATE)) == 0o600
    assert stat.S_ISFIFO(os.lstat(scratch.path(1, Kind.GATE)).st_mode)


def test_what_was_printed_and_who_waits_outlive_a_second_preparation(scratch: Scratch) -> None:
    scratch.prepare({1: b"one\n", 2: b"two\n"}, [1, 2])
    os.truncate(scratch.path(1, Kind.TEXT), 0)
    gate = os.lstat(scratch.path(2, Kind.GATE)).st_ino
    scratch.prepare({1: b"one\n", 2: b"two\n", 3: b"three\n"}, [2, 3])
    assert scratch.unprinted() == {2, 3}
    assert scratch.waiting() == {1, 2, 3}
    assert os.lstat(scratch.path(2, Kind.GATE)).st_ino == gate


def test_what_a_pane_that_is_gone_left_behind_is_forgotten(scratch: Scratch) -> None:
    scratch.prepare({1: b"one", 2: b"two"}, [1])
    for n in (1, 2):
        with open(scratch.path(n, Kind.STATUS), "w") as file:
            file.write("3\n")

    scratch.forget(1, 7)

    assert (scratch.unprinted(), scratch.statuses(), scratch.waiting()) == ({2}, {2: 3}, {1})


def test_a_text_that_was_never_finished_is_written_again(scratch: Scratch) -> None:
    scratch.prepare({}, [])
    write(scratch.path(1, Kind.NEW), "ha")
    scratch.prepare({1: b"half\n"}, [])
    with open(scratch.path(1, Kind.TEXT), "rb") as file:
        assert file.read() == b"half\n"
    assert not os.path.exists(scratch.path(1, Kind.NEW))


def test_a_directory_that_cannot_be_made_is_said(scratch: Scratch) -> None:
    write(os.environ["PERDURE_STATE_DIR"], "a file")
    with pytest.raises(PerdureError, match="r1 cannot be made: Not a directory"):
        scratch.prepare({}, [])


def test_a_link_in_place_of_the_directory_is_refused(scratch: Scratch) -> None:
    os.makedirs(os.path.dirname(scratch.directory))
    os.symlink(os.environ["HOME"], scratch.directory)
    with pytest.raises(PerdureError):
        scratch.prepare({1: b"text\n"}, [])
    assert os.listdir(os.environ["HOME"]) == []


@pytest.mark.parametrize("id", ["", "..", "a/b", "a b", "."])
def test_an_id_is_a_name(id: str) -> None:
    with pytest.raises(ValueError, match="not the id"):
        Scratch(os.environ["PERDURE_STATE_DIR"], id, current_user())


def test_nothing_is_known_of_a_restore_that_left_nothing(scratch: Scratch) -> None:
    assert (scratch.waiting(), scratch.unprinted(), scratch.statuses()) == (set(), set(), {})
    scratch.release(1)
    scratch.remove()


def test_only_a_whole_status_counts(scratch: Scratch) -> None:
    scratch.prepare({}, [])
    for n, text in enumerate(["", "0\n", "130\n", "13", "x\n", "-1\n", "1234\n", "1\n2\n"]):
        write(scratch.path(n, Kind.STATUS), text)
    os.mkfifo(scratch.path(20, Kind.STATUS))
    os.symlink(scratch.path(1, Kind.STATUS), scratch.path(21, Kind.STATUS))
    assert scratch.statuses() == {1: 0, 2: 130}


def test_a_gate_holds_its_pane_until_it_is_opened(
    scratch: Scratch, pane: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    scratch.prepare({}, [1, 2])
    process = pane(1)
    wait_for(lambda: is_waiting(process, scratch.path(1, Kind.GATE)))
    scratch.release(2)
    assert scratch.waiting() == {1}
    assert process.poll() is None
    scratch.release(1)
    process.wait(PATIENCE)
    assert times_run() == 1
    assert scratch.waiting() == set()


def test_a_gate_may_be_opened_twice_and_before_anybody_comes(
    scratch: Scratch, pane: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    scratch.prepare({}, [1])
    scratch.release(1)
    scratch.release(1)
    pane(1).wait(PATIENCE)
    assert times_run() == 1


def test_a_pane_that_comes_while_its_gate_is_opened_goes_on(
    scratch: Scratch, pane: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    steps = range(60)
    scratch.prepare({}, steps)
    chance = random.Random(4)
    for n in steps:
        process = pane(n)
        time.sleep(chance.uniform(0, 0.003))
        scratch.release(n)
        process.wait(PATIENCE)
    assert times_run() == len(steps)


def dies_before(call: int, scratch: Scratch, n: int) -> None:
    """Open a gate in a child that is killed before its `call`th call on the file system."""
    child = os.fork()
    if child == 0:
        made = 0

        def fatal(real: Callable[..., object]) -> Callable[..., object]:
            def instead(*args: object, **kwargs: object) -> object:
                nonlocal made
                made += 1
                if made == call:
                    os.kill(os.getpid(), signal.SIGKILL)
                return real(*args, **kwargs)

            return instead

        for name in ("open", "rename", "write", "unlink", "close"):
            setattr(os, name, fatal(getattr(os, name)))
        scratch.release(n)
        os._exit(0)
    os.waitpid(child, 0)


@pytest.mark.parametrize("call", range(1, 9))
def test_whoever_opens_a_gate_may_be_killed_at_any_point(
    scratch: Scratch, pane: Callable[[int], subprocess.Popen[bytes]], call: int
) -> None:
    scratch.prepare({}, [1])
    process = pane(1)
    wait_for(lambda: is_waiting(process, scratch.path(1, Kind.GATE)))
    dies_before(call, scratch, 1)
    # Who goes on makes the gates of panes that are still to be made, and opens this one.
    scratch.prepare({}, [2])
    scratch.release(1)
    process.wait(PATIENCE)
    assert times_run() == 1
    assert scratch.waiting() == {2}


def test_a_half_opened_gate_still_counts_and_is_not_made_anew(scratch: Scratch) -> None:
    scratch.prepare({}, [1])
    os.rename(scratch.path(1, Kind.GATE), scratch.path(1, Kind.OPEN))
    scratch.prepare({}, [1])
    assert scratch.waiting() == {1}
    assert not os.path.exists(scratch.path(1, Kind.GATE))
    scratch.release(1)
    assert os.listdir(scratch.directory) == []


def test_whoever_opens_gates_may_be_killed_at_any_moment(
    scratch: Scratch, pane: Callable[[int], subprocess.Popen[bytes]]
) -> None:
    steps = range(20)
    scratch.prepare({}, steps)
    panes = [pane(n) for n in steps]
    chance = random.Random(7)
    for _ in range(15):
        child = os.fork()
        if child == 0:
            scratch.release(*chance.sample(steps, len(steps)))
            os._exit(0)
        time.sleep(chance.uniform(0, 0.002))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    scratch.release(*steps)
    for process in panes:
        process.wait(PATIENCE)
    assert times_run() == len(steps)


def test_removing_leaves_what_is_not_ours(scratch: Scratch) -> None:
    scratch.prepare({1: b"text\n"}, [1])
    write(scratch.path(1, Kind.STATUS), "0\n")
    write(os.path.join(scratch.directory, "notes"), "mine")
    scratch.remove()
    assert os.listdir(scratch.directory) == ["notes"]
    os.unlink(os.path.join(scratch.directory, "notes"))
    scratch.remove()
    assert not os.path.exists(scratch.directory)


def test_removing_lets_no_pane_go(scratch: Scratch, pane: Callable[[int], subprocess.Popen[bytes]]) -> None:
    scratch.prepare({1: b"text\n"}, [1, 2])
    process = pane(1)
    wait_for(lambda: is_waiting(process, scratch.path(1, Kind.GATE)))
    scratch.remove()
    assert os.listdir(scratch.directory) == [f"1.{Kind.GATE}"]
    assert process.poll() is None
    scratch.release(1)
    process.wait(PATIENCE)


def test_stale_directories_go_unless_they_are_kept_or_young_or_not_ours() -> None:
    state, now = os.environ["PERDURE_STATE_DIR"], datetime(2026, 11, 15, tzinfo=UTC)
    root = os.path.join(state, "restores")
    for id, days in (("old", 9), ("kept", 9), ("young", 1)):
        Scratch(state, id, current_user()).prepare({1: b"text\n"}, [1])
        then = (now - timedelta(days=days)).timestamp()
        os.utime(os.path.join(root, id), (then, then))
    os.mkdir(os.path.join(root, "not ours"))
    os.utime(os.path.join(root, "not ours"), (0, 0))
    remove_stale(state, current_user(), keep=["kept"], older_than=timedelta(days=7), now=now)
    assert sorted(os.listdir(root)) == ["kept", "not ours", "young"]


def test_no_restores_are_no_stale_ones() -> None:
    remove_stale("/nowhere", current_user(), keep=(), older_than=timedelta(), now=datetime(2026, 11, 15, tzinfo=UTC))


@pytest.fixture
def others() -> User:
    """Another user, whose home is a directory of the test's."""
    assert NOBODY is not None
    home = os.path.join(os.environ["HOME"], "nobody")
    os.chmod(os.path.dirname(os.environ["HOME"]), 0o711)
    os.mkdir(home, 0o700)
    os.chown(home, NOBODY.uid, NOBODY.gid)
    return User(name=NOBODY.name, uid=NOBODY.uid, gid=NOBODY.gid, home=home)


@needs_root
def test_for_another_user_all_of_it_is_theirs(others: User) -> None:
    scratch = Scratch(os.path.join(others.home, "state"), "r1", others)
    scratch.prepare({1: b"text\n"}, [1])
    write(scratch.path(1, Kind.STATUS), "3\n")
    os.chown(scratch.path(1, Kind.STATUS), others.uid, others.gid)
    for path in (scratch.directory, scratch.path(1, Kind.TEXT), scratch.path(1, Kind.GATE)):
        assert os.lstat(path).st_uid == others.uid
    assert (scratch.waiting(), scratch.unprinted(), scratch.statuses()) == ({1}, {1}, {1: 3})
    scratch.release(1)
    assert scratch.waiting() == set()
    scratch.remove()
    assert not os.path.exists(scratch.directory)


@needs_root
def test_root_goes_nowhere_its_user_could_not(others: User) -> None:
    theirs, ours = os.path.join(others.home, "state"), os.path.join(os.environ["HOME"], "secret")
    os.mkdir(ours, 0o700)
    os.symlink(ours, theirs)
    scratch = Scratch(theirs, "r1", others)
    with pytest.raises(PerdureError, match="cannot be made: Permission denied"):
        scratch.prepare({1: b"text\n"}, [1])
    assert os.listdir(ours) == []
