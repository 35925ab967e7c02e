"""Saves at the same time, in the same second, and killed at any moment: the store stays whole."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Self

import msgspec

from tests.acceptance.kit import history, is_whole, manifests, only_json, save, settle, snapshot, wait_for
from tests.conftest import PrivateHome
from tests.integration.looking import is_running
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer

KILLS = 200


def test_two_saves_in_one_second_are_both_right(perdure: Perdure, tmux: TmuxServer) -> None:
    ids = []
    for number in range(4):
        tmux.run("new-session", "-d", "-s", f"s{number}")
        ids.append(save(perdure)["snapshot"])
    rows = history(perdure)
    assert [row["id"] for row in rows] == ids[::-1]
    assert [row["sessions"] for row in rows] == [4, 3, 2, 1]
    assert is_whole(perdure)


def test_ten_saves_at_once_are_all_right(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    tmux.run("split-window", "-t", "one")
    settle(tmux)
    savers = [
        subprocess.Popen(perdure.argv("save", "--json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(10)
    ]
    answers = [saver.communicate(timeout=120) for saver in savers]
    assert [(saver.returncode, err) for saver, (_, err) in zip(savers, answers, strict=True)] == [(0, b"")] * 10
    lines = [msgspec.json.decode(out)["servers"][0] for out, _ in answers]
    assert sorted(line["result"] for line in lines) == ["saved"] + ["unchanged"] * 9
    (id,) = {line["snapshot"] for line in lines}
    assert [row["id"] for row in history(perdure)] == [id]
    assert [each["snapshot"]["id"] for each in manifests(private_home)] == [id]
    assert is_whole(perdure)


def test_saves_at_once_of_a_changing_server_leave_a_consistent_history(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    savers = []
    for number in range(10):
        tmux.run("new-window", "-d", "-t", "one", "-n", f"w{number}")
        argv = perdure.argv("save", "--json")
        savers.append(subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
    answers = [saver.communicate(timeout=120) for saver in savers]
    assert [(saver.returncode, err) for saver, (_, err) in zip(savers, answers, strict=True)] == [(0, b"")] * 10
    last = save(perdure)
    rows = history(perdure)
    assert rows[0]["id"] == last["snapshot"]
    assert rows[0]["windows"] == 11
    named = {msgspec.json.decode(out)["servers"][0]["snapshot"] for out, _ in answers}
    assert named <= {row["id"] for row in rows}
    assert is_whole(perdure)
    for row in rows:
        assert len(snapshot(perdure, row["id"])["topology"]["windows"]) == row["windows"]


def test_a_save_killed_at_any_moment_leaves_the_last_good_snapshot_whole(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "cat", "-")
    tmux.run("split-window", "-d", "-t", "work", "cat", "-")
    settle(tmux)
    good = save(perdure)["snapshot"]
    chance, longest = random.Random(1), 0.05
    known = {good}
    with Savers() as savers:
        for number in range(KILLS):
            tmux.run("rename-window", "-t", "work", f"step {number}")
            saver = savers.begin()
            # What may hurt happens once it has the store open.
            if number % 8:
                _await_store(saver, private_home)
            time.sleep(chance.uniform(0.0, longest))
            os.kill(saver, signal.SIGKILL)
            # However fast the machine is at the moment: some come to their end, most do not.
            longest *= 0.9 if savers.bury() == 0 else 1.05
            if number % 20 == 19:
                _is_whole_after_a_kill(perdure, private_home, known)
    assert len(known) > 5, "nearly every save was killed before it wrote: nothing was shown"
    last = save(perdure)
    assert snapshot(perdure)["id"] == last["snapshot"]
    assert snapshot(perdure, good)["id"] == good
    assert is_whole(perdure)


class Savers:
    """A program that has imported everything, and a copy of it for each save: most of a run is that, and cannot hurt."""

    _PROGRAM = """
import os, sys
from perdure.cli.main import main
def save():
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os._exit(main(["save"]))
answers = os.dup(1)
os.dup2(2, 1)
main(["save"])
for _ in sys.stdin:
    copy = os.fork() or save()
    os.write(answers, b"%d\\n" % copy)
    sys.stdin.readline()
    os.write(answers, b"%d\\n" % os.waitstatus_to_exitcode(os.waitpid(copy, 0)[1]))
"""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-c", self._PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        return self

    def begin(self) -> int:
        """Begin a save, and return its pid, which is nobody else's before it is buried."""
        return self._ask()

    def bury(self) -> int:
        """Wait for the end of the save, and return how it ended."""
        return self._ask()

    def _ask(self) -> int:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        return int(self._process.stdout.readline())

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=PATIENCE)


def _await_store(saver: int, home: PrivateHome) -> None:
    """Wait until a process has the store open, or has ended."""
    database, folder = os.path.join(home.state, "perdure.db"), f"/proc/{saver}/fd"

    def is_open() -> bool:
        with suppress(OSError):
            return any(os.readlink(os.path.join(folder, name)) == database for name in os.listdir(folder))
        return False

    wait_for(lambda: not is_running(saver) or is_open(), "a process with the store")


def _is_whole_after_a_kill(perdure: Perdure, home: PrivateHome, known: set[str]) -> None:
    """What was there before is still there, everything reads back, and so does the manifest."""
    rows = history(perdure)
    ids = {str(row["id"]) for row in rows}
    assert known <= ids
    known |= ids
    latest = snapshot(perdure)
    assert (len(latest["topology"]["panes"]), latest["topology"]["sessions"][0]["name"]) == (2, "work")
    (manifest,) = manifests(home)
    assert len(manifest["snapshot"]["topology"]["panes"]) == 2
    answer = only_json(perdure("check", "--json"))
    # A manifest is written before the commit it belongs to: between the two it is the newer one, and nothing is lost.
    ahead = [each for each in answer["problems"] if not each["where"].endswith(".json")]
    assert not ahead, answer
    assert os.path.exists(os.path.join(home.state, "perdure.db"))
