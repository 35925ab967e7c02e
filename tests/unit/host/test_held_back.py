"""Panes that print nothing while they are held back, and everything when they are not, whatever becomes of the holder."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from perdure.host.scratch import Kind, Scratch
from perdure.host.users import current_user
from perdure.host.waiting import wait_until
from perdure.tmux.wrap import Start, command

STEPS = range(1, 6)
PATIENCE = 20.0


@pytest.fixture
def scratch() -> Scratch:
    found = Scratch(os.environ["PERDURE_STATE_DIR"], "r1", current_user())
    found.prepare({n: b"text %d\n" % n for n in STEPS}, ())
    return found


def panes(scratch: Scratch, **more: int) -> list[subprocess.Popen[bytes]]:
    words = [command(Start(text=scratch.path(n, Kind.TEXT), shell="/bin/sh", **more)) for n in STEPS]  # type: ignore[arg-type]
    return [subprocess.Popen(each, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) for each in words]


def printed(started: list[subprocess.Popen[bytes]]) -> list[bytes]:
    return [process.communicate(timeout=PATIENCE)[0] for process in started]


ALL = [b"text %d\n" % n for n in STEPS]


def test_nothing_is_printed_before_the_block_is_left(scratch: Scratch) -> None:
    with scratch.held_back():
        started = panes(scratch)
        assert not wait_until(lambda: len(scratch.unprinted()) < len(STEPS), 0.3)
    assert printed(started) == ALL
    scratch.remove()
    assert not os.path.exists(scratch.directory)


def test_a_pane_that_ends_does_not_wait(scratch: Scratch) -> None:
    with scratch.held_back():
        assert printed(panes(scratch, exits=3)) == ALL


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
def test_they_go_on_when_the_holder_is_killed(scratch: Scratch, late: bool) -> None:
    kill = _holder(scratch)
    assert wait_until(lambda: os.path.exists(scratch.path(0, Kind.HOLD)), PATIENCE)
    started = [] if late else panes(scratch)
    kill()
    started = started or panes(scratch)
    assert printed(started) == ALL
    scratch.remove()
    assert not os.path.exists(scratch.directory)


def _holder(scratch: Scratch) -> Callable[[], None]:
    """Let another process hold the panes back, and return what ends it."""
    pid = os.fork()
    if pid == 0:
        with scratch.held_back():
            signal.pause()
        os._exit(1)

    def kill() -> None:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)

    return kill
