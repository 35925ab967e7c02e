"""Real processes, and how their ends are told."""

from __future__ import annotations

import gc
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from perdure.host.exits import Exit, Exits, how_ended, switches
from perdure.host.processes import read_entry
from tests.integration.looking import wait_until
from tests.tmux_server import PATIENCE, TmuxServer

#: Starts `sh -c $1` as somebody's orphan, says its number, and then reaps every orphan as an init does.
_INIT = """
import ctypes, os, subprocess, sys, time
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
subprocess.run(["sh", "-c", 'sh -c "$1" >/dev/null & echo $!', "sh", sys.argv[1]])
sys.stdout.close()
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
"""


class Processes:
    """Starts processes of the test's own; what is left of them is ended with it."""

    def __init__(self) -> None:
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, script: str) -> tuple[subprocess.Popen[bytes], int]:
        """Start a shell, and return it with its start."""
        process = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE)
        self._started.append(process)
        return process, ticks(process.pid)

    def orphan(self, script: str) -> int:
        """Start a shell that is not our child and is reaped as soon as it ends."""
        init = subprocess.Popen([sys.executable, "-c", _INIT, script], stdout=subprocess.PIPE)
        self._started.append(init)
        assert init.stdout is not None
        return int(init.stdout.readline())

    def end(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    stream.close()


def ticks(pid: int) -> int:
    entry = read_entry(pid)
    assert entry is not None
    return entry.start_ticks


@pytest.fixture
def processes() -> Iterator[Processes]:
    kept = Processes()
    yield kept
    kept.end()


@pytest.fixture
def exits() -> Iterator[Exits[str]]:
    kept = Exits[str]()
    yield kept
    kept.close()


def told(exits: Exits[str]) -> dict[str, Exit]:
    ready, _, _ = select.select([exits], [], [], PATIENCE)
    assert ready, "nobody ended"
    return exits.read()


@pytest.fixture
def without_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a kernel that has none of processes."""

    def refuse(pid: int, flags: int = 0) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)


def test_the_end_of_a_process_is_told_once(exits: Exits[str], processes: Processes) -> None:
    ending, began = processes.start("read line")
    staying, there = processes.start("read line")
    exits.add(ending.pid, began, "ending")
    exits.add(staying.pid, there, "staying")
    assert exits.read() == {}
    assert not exits.needs_polling
    ending.kill()
    assert told(exits).keys() == {"ending"}
    assert exits.read() == {}
    ending.wait()
    assert select.select([exits], [], [], 0)[0] == []


@pytest.mark.parametrize(
    ("script", "how"),
    [
        ("read line; exit 0", Exit(status=0)),
        ("read line; exit 7", Exit(status=7)),
        ("read line; kill -9 $$", Exit(signal=9)),
    ],
)
def test_how_a_process_ended_is_told_before_it_is_reaped(
    exits: Exits[str], processes: Processes, script: str, how: Exit
) -> None:
    process, began = processes.start(script)
    exits.add(process.pid, began, "it")
    process.communicate(b"go\n")
    # Its parent has reaped it, which is this test: what is left is what the descriptor knows.
    assert told(exits)["it"] in (how, Exit())
    process, began = processes.start(script)
    exits.add(process.pid, began, "it")
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    assert told(exits) == {"it": how}
    assert how_ended(process.pid, began) == how


@pytest.mark.parametrize(("number", "how"), [(signal.SIGTERM, Exit(signal=15)), (signal.SIGKILL, Exit(signal=9))])
def test_of_a_stranger_that_was_reaped_the_truth_or_nothing_is_told(
    exits: Exits[str], processes: Processes, number: signal.Signals, how: Exit
) -> None:
    pid = processes.orphan("exec sleep 1000")
    exits.add(pid, ticks(pid), "orphan")
    os.kill(pid, number)
    assert told(exits)["orphan"] in (how, Exit())


def test_one_that_is_gone_already_is_told_at_once(exits: Exits[str], processes: Processes) -> None:
    process, began = processes.start("read line")
    process.communicate(b"go\n")
    exits.add(process.pid, began, "gone")
    assert told(exits) == {"gone": Exit()}
    assert exits.read() == {}


def test_one_that_waits_to_be_reaped_is_gone(exits: Exits[str], processes: Processes) -> None:
    process, began = processes.start("read line; exit 3")
    assert process.stdin is not None
    process.stdin.write(b"go\n")
    process.stdin.flush()
    wait_until(lambda: how_ended(process.pid, began) == Exit(status=3), "it ends")
    exits.add(process.pid, began, "gone")
    assert told(exits) == {"gone": Exit(status=3)}


def test_another_process_of_the_same_number_is_not_the_one(exits: Exits[str], processes: Processes) -> None:
    process, began = processes.start("read line")
    exits.add(process.pid, began - 1, "before")
    assert told(exits) == {"before": Exit()}
    assert how_ended(process.pid, began - 1) == Exit()


def test_a_key_stands_for_one_process_at_a_time(exits: Exits[str], processes: Processes) -> None:
    first, began = processes.start("read line")
    second, later = processes.start("read line")
    exits.add(first.pid, began, "it")
    exits.add(first.pid, began, "it")
    exits.add(second.pid, later, "it")
    first.kill()
    first.wait()
    assert exits.read() == {}
    second.kill()
    assert told(exits) == {"it": Exit(signal=9)}


def test_what_is_removed_is_not_told(exits: Exits[str], processes: Processes) -> None:
    process, began = processes.start("read line")
    exits.add(process.pid, began, "it")
    exits.add(process.pid, began - 1, "before")
    for key in ("it", "before", "unheard of"):
        exits.remove(key)
    process.kill()
    process.wait()
    assert exits.read() == {}


def test_a_descriptor_a_child_still_has_is_never_taken_for_the_next_one(
    exits: Exits[str], processes: Processes
) -> None:
    """A forked child keeps what was open; a number that is used again must not tell the end of what it stood for."""
    first, began = processes.start("read line")
    exits.add(first.pid, began, "first")
    heard, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(say)
        os.read(heard, 1)
        os._exit(0)
    try:
        exits.remove("first")
        second, later = processes.start("read line")
        exits.add(second.pid, later, "second")
        first.kill()
        first.wait()
        assert exits.read() == {}
    finally:
        os.close(say)
        os.waitpid(child, 0)
        os.close(heard)


@pytest.mark.usefixtures("without_descriptors")
def test_without_descriptors_of_processes_there_is_polling(exits: Exits[str], processes: Processes) -> None:
    process, began = processes.start("read line")
    exits.add(process.pid, began, "it")
    exits.add(process.pid, began - 1, "before")
    assert told(exits) == {"before": Exit()}
    assert exits.needs_polling
    assert exits.poll() == {}
    process.kill()
    wait_until(lambda: how_ended(process.pid, began) != Exit(), "it ends")
    assert exits.poll() == {"it": Exit(signal=9)}
    assert exits.poll() == {}
    assert not exits.needs_polling


def test_nothing_stays_open(processes: Processes) -> None:
    # What others left to be collected would be closed meanwhile.
    gc.collect()
    before = os.listdir("/proc/self/fd")
    exits = Exits[int]()
    for number in range(20):
        process, began = processes.start("read line")
        exits.add(process.pid, began, number)
        if number % 2:
            process.kill()
            process.wait()
    exits.read()
    exits.close()
    processes.end()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_the_end_of_a_tmux_server_and_of_a_pane_is_told(exits: Exits[str], tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "a", "exec sleep 1000", ";", "new-window", "-n", "b", "exec cat")
    pane = int(tmux.show("#{pane_pid}", "=a:a"))
    exits.add(tmux.pid, ticks(tmux.pid), "server")
    exits.add(pane, ticks(pane), "pane")
    os.kill(pane, signal.SIGKILL)
    assert told(exits).keys() == {"pane"}
    tmux.kill()
    assert told(exits).keys() == {"server"}


def test_whatever_a_server_does_is_counted_and_rest_is_not(tmux: TmuxServer, waiting: Callable[[], None]) -> None:
    tmux.run("new-session", "-d", "-s", "a", "-n", "a", "exec sleep 1000")
    pid = tmux.pid
    waiting()
    before = switches(pid)
    assert before is not None
    tmux.run("set-option", "-g", "@a", "b")
    after = switches(pid)
    assert after is not None
    assert after > before


@pytest.fixture
def waiting(tmux: TmuxServer) -> Callable[[], None]:
    """Waits until the server has come to rest: three counts in a row are the same."""

    def wait() -> None:
        pid, counts = tmux.pid, list[int | None]()

        def is_at_rest() -> bool:
            counts.append(switches(pid))
            return len(counts) > 3 and len(set(counts[-3:])) == 1

        wait_until(is_at_rest, "tmux comes to rest")

    return wait


def test_of_a_process_that_is_gone_nothing_is_counted(processes: Processes) -> None:
    process, _ = processes.start("exec sleep 60")
    process.kill()
    process.wait()
    assert switches(process.pid) is None
