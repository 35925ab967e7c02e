"""Waiting for each other before writing: about waiting only, whoever holds the door for however long."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

from perdure.store.door import Door, door_of
from tests.conftest import PrivateHome

LONG = 60.0

#: Goes through the door and stays there until it is told.
HOLDER = """
import sys
from perdure.store.door import door_of
with door_of(sys.argv[1]).passed(60):
    print("inside", flush=True)
    sys.stdin.readline()
print("outside", flush=True)
sys.stdin.readline()
"""


def holder(path: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


@contextmanager
def held(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the door."""
    process = holder(path)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "inside\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def passing(door: Door, patience: float = LONG) -> tuple[threading.Thread, threading.Event]:
    """Somebody who wants to pass, and when they are inside."""
    inside = threading.Event()

    def work() -> None:
        with door.passed(patience):
            inside.set()

    thread = threading.Thread(target=work)
    thread.start()
    return thread, inside


def test_whoever_comes_while_another_process_is_inside_waits_until_it_is_out(private_home: PrivateHome) -> None:
    door = door_of(f"{private_home.root}/some.db")
    with held(f"{private_home.root}/some.db") as process:
        thread, inside = passing(door)
        assert not inside.wait(0.2)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert inside.wait(LONG)
        thread.join(LONG)


def test_a_process_that_is_killed_holds_nobody_up(private_home: PrivateHome) -> None:
    door = door_of(f"{private_home.root}/some.db")
    with held(f"{private_home.root}/some.db") as process:
        thread, inside = passing(door)
        assert not inside.wait(0.1)
        process.send_signal(signal.SIGKILL)
        assert inside.wait(LONG)
        thread.join(LONG)


def test_whoever_waits_too_long_goes_on_and_holds_nobody_up_later(private_home: PrivateHome) -> None:
    path = f"{private_home.root}/some.db"
    door = door_of(path)
    with held(path) as process:
        with door.passed(0.1):
            pass
        # Nor does the next one wait behind one who has given up.
        began = monotonic()
        with door.passed(LONG):
            assert monotonic() - began < LONG
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout is not None
        assert process.stdout.readline() == "outside\n"
        # What was waited for in vain came in the end, and was let go of: another process gets in.
        with held(path):
            pass


def test_whoever_does_not_wait_is_inside_or_is_not(private_home: PrivateHome) -> None:
    path = f"{private_home.root}/some.db"
    door = door_of(path)
    assert door.is_entered()
    assert door.is_inside()
    # Neither twice, nor in another thread or process. One after the other: who of two comes first is nobody's order.
    assert not door.is_entered()
    thread, inside = passing(door)
    assert not inside.wait(0.1)
    door.leave()
    assert not door.is_inside()
    assert inside.wait(LONG)
    thread.join(LONG)
    assert door.is_entered()
    process = holder(path)
    assert process.stdout is not None
    door.leave()
    assert process.stdout.readline() == "inside\n"
    assert not door.is_entered()
    process.kill()
    process.communicate()
    assert door.is_entered()
    door.leave()


def test_who_does_not_wait_is_not_inside_while_one_who_has_given_up_still_waits(private_home: PrivateHome) -> None:
    path = f"{private_home.root}/some.db"
    door = door_of(path)
    with held(path):
        with door.passed(0.1):
            pass
        assert not door.is_entered()
        assert not door.is_inside()


def test_threads_of_a_process_take_turns(private_home: PrivateHome) -> None:
    door = door_of(f"{private_home.root}/some.db")
    with door.passed(LONG):
        thread, inside = passing(door)
        assert not inside.wait(0.1)
    assert inside.wait(LONG)
    thread.join(LONG)


def test_a_child_has_not_what_its_parent_has(private_home: PrivateHome) -> None:
    path = f"{private_home.root}/some.db"
    door = door_of(path)
    with door.passed(LONG):
        child = os.fork()
        if not child:
            # Were the parent's turn the child's as well, it would be inside.
            _, inside = passing(door_of(path))
            os._exit(3 if inside.wait(0.2) else 0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        # And its end takes nothing from the parent.
        other = holder(path)
        assert other.stdout is not None
        seen: list[str] = []
        reading = threading.Thread(target=lambda: seen.append(other.stdout.readline() if other.stdout else ""))
        reading.start()
        reading.join(0.3)
        assert seen == []
    reading.join(LONG)
    assert seen == ["inside\n"]
    other.kill()
    other.communicate()


def test_where_there_can_be_no_file_nobody_waits(private_home: PrivateHome) -> None:
    door = door_of(f"{private_home.root}/nowhere/some.db")
    with door.passed(LONG), door.passed(LONG):
        pass


def test_all_connections_share_a_door_which_is_closed_with_the_last(private_home: PrivateHome) -> None:
    path = f"{private_home.root}/some.db"
    one, other = door_of(path), door_of(path)
    assert one is other
    number = one._file
    assert number is not None
    assert os.stat(f"{path}-door").st_mode & 0o777 == 0o600
    os.fstat(number)
    del one, other
    gc.collect()
    assert not os.path.exists(f"/proc/self/fd/{number}")
