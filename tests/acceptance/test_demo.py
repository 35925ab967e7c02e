"""`perdure demo`: everything comes back, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import tempfile
from typing import Any

import pytest

from perdure.demo.machine import Machine
from tests.acceptance.kit import has_fields, only_json, sentence, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer, dispose


@pytest.fixture
def place(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where temporary directories go in this test."""
    place = os.path.join(private_home.root, "d")
    os.mkdir(place)
    monkeypatch.setenv("TMPDIR", place)
    monkeypatch.setattr(tempfile, "tempdir", None)  # which this process may have looked up before
    return place


def tree(directory: str) -> dict[str, int]:
    """Return everything below a directory, with when it was written."""
    return {
        os.path.join(folder, name): os.lstat(os.path.join(folder, name)).st_mtime_ns
        for folder, folders, names in os.walk(directory)
        for name in (*folders, *names)
    }


def processes_in(place: str) -> list[int]:
    """Return the processes that have something below a directory in their command line, environment or as their cwd."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ, open(f"/proc/{pid}/cmdline", "rb") as words:
                told = environ.read() + words.read() + os.fsencode(os.readlink(f"/proc/{pid}/cwd"))
        except OSError:
            continue
        if f"{place}/perdure-demo-".encode() in told:
            found.append(int(pid))
    return found


def test_every_agent_comes_back_verified(perdure: Perdure, place: str) -> None:
    ran = perdure("demo", "--json")
    assert ran.code == 0, ran
    answer = only_json(ran)
    has_fields(
        answer,
        {"ok": bool, "wrong": list, "snapshot": str, "panes": list, "summary": dict, "directory": str, "kept": bool},
    )
    agents = [pane for pane in answer["panes"] if pane["before"] is not None]
    assert (len(answer["panes"]), len(agents)) == (9, 5)
    assert all(pane["after"] == pane["before"] and pane["result"] == "verified" for pane in agents)
    assert len({pane["before"] for pane in agents}) == 5
    assert answer["summary"]["verified"] == 5
    assert (answer["ok"], answer["wrong"]) == (True, [])
    assert (os.listdir(place), processes_in(place)) == ([], [])


def test_it_tells_what_it_does(perdure: Perdure, place: str) -> None:
    ran = perdure("demo")
    assert ran.code == 0, ran
    for text in ("Before: 9 panes, 5 simulated agents.", "$ perdure save", "$ kill -9 ", "$ perdure restore"):
        assert text in ran.out
    assert "5 of 5 agents back in their own conversation, verified." in ran.out
    assert ran.out.rstrip().endswith("and everything in it.")
    assert os.listdir(place) == []


def test_no_other_server_and_no_other_file_is_touched(
    perdure: Perdure, private_home: PrivateHome, place: str, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d", "-s", "mine")
    with open(os.path.join(private_home.home, ".tmux.conf"), "w") as file:
        file.write("set -g status-left mine\n")
    env = {"TMUX": f"{tmux.socket},{tmux.pid},0"}
    before = (tmux.pid, tmux.run("list-sessions"), tree(private_home.home), tree(private_home.sockets))
    assert perdure("demo", env=env).code == 0
    assert (tmux.pid, tmux.run("list-sessions"), tree(private_home.home), tree(private_home.sockets)) == before
    assert not os.path.exists(private_home.state)


def test_what_is_kept_can_be_looked_at_and_shows_that_no_conversation_was_open_twice(
    perdure: Perdure, place: str
) -> None:
    answer = only_json(perdure.ok("demo", "--json", "--keep"))
    socket = os.path.join(answer["directory"], "tmux")
    try:
        events = starts(os.path.join(answer["directory"], "home"))
        assert [each for each in events if each["event"] == "refused"] == []
        agents = [pane["before"] for pane in answer["panes"] if pane["before"]]
        back = [each["id"] for each in events if each["event"] == "ready"][5:]
        assert sorted(back) == sorted(agents)
        shown = subprocess.run(
            ["tmux", "-u", "-S", socket, "capture-pane", "-p", "-t", "=web:0.0"], capture_output=True, check=True
        ).stdout.decode()
        assert "you ▸ Make the footer stay where it is." in shown
    finally:
        dispose(socket)


def starts(home: str) -> list[dict[str, Any]]:
    with open(os.path.join(home, ".simulant", "starts.jsonl")) as file:
        return [json.loads(line) for line in file]


@pytest.mark.parametrize(
    ("after", "number"),
    [
        ("A tmux server", signal.SIGINT),
        ("A tmux server", signal.SIGHUP),
        ("Before:", signal.SIGTERM),
        ("$ perdure save", signal.SIGINT),
        ("$ kill -9", signal.SIGHUP),
        ("$ perdure restore", signal.SIGINT),
        ("$ perdure restore", signal.SIGTERM),
    ],
)
def test_stopped_anywhere_it_leaves_nothing_behind(
    perdure: Perdure, place: str, after: str, number: signal.Signals
) -> None:
    with subprocess.Popen(
        perdure.argv("demo", "--seconds", "600" if after == "Before:" else "0"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        for line in demo.stdout:
            if line.startswith(after):
                break
        demo.send_signal(number)
        rest, complaint = demo.stdout.read(), demo.stderr.read()
        assert demo.wait() == 130, (rest, complaint)
    assert "Traceback" not in complaint
    assert os.listdir(place) == []
    wait_for(lambda: processes_in(place) == [], "the end of its processes")


def test_on_a_terminal_it_takes_its_time(perdure: Perdure, place: str) -> None:
    """The pauses are there: a while after the first table it has not gone on."""
    master, slave = pty.openpty()
    with subprocess.Popen(perdure.argv("demo"), stdin=slave, stdout=slave, stderr=slave) as demo:
        os.close(slave)
        shown = b""
        while b"Before:" not in shown:
            shown += os.read(master, 4096)
        with pytest.raises(subprocess.TimeoutExpired):
            demo.wait(1)
        demo.send_signal(signal.SIGTERM)
        assert demo.wait() == 130
    os.close(master)
    assert os.listdir(place) == []


def test_a_conversation_that_is_lost_is_said_and_fails(perdure: Perdure, place: str, private_home: PrivateHome) -> None:
    """An agent whose transcript goes between the crash and the restore does not come back, and that is no success."""
    with subprocess.Popen(
        perdure.argv("demo", "--seconds", "6"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as demo:
        assert demo.stdout is not None
        assert demo.stderr is not None
        for line in demo.stdout:
            if line.startswith("$ kill -9"):
                break
        # It takes its time now, but nobody knows how much: on a slow machine it is late already.
        os.killpg(demo.pid, signal.SIGSTOP)
        (root,) = os.listdir(place)
        folder = os.path.join(place, root, "home", ".simulant", "conversations")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as file:
                lost = "footer" in file.read()
            if lost:
                os.unlink(os.path.join(folder, name))
        os.killpg(demo.pid, signal.SIGCONT)
        rest, complaint = demo.stdout.read(), demo.stderr.read()
    assert demo.returncode == 1
    assert "4 of 5 agents" in rest
    assert "perdure: web:0.0 (simulant): " in complaint
    assert os.listdir(place) == []


def test_without_tmux_there_is_one_sentence(perdure: Perdure, place: str) -> None:
    ran = perdure("demo", env={"PATH": place})
    assert (ran.code, "tmux" in sentence(ran)) == (1, True)
    assert os.listdir(place) == []


@pytest.mark.parametrize("seconds", ["-1", "nan", "inf", "soon", "4000"])
def test_a_wrong_number_of_seconds_is_refused(perdure: Perdure, place: str, seconds: str) -> None:
    ran = perdure("demo", f"--seconds={seconds}")
    assert (ran.code, bool(sentence(ran))) == (2, True)
    assert os.listdir(place) == []


def test_a_server_that_hangs_is_ended_too(place: str) -> None:
    machine = Machine()
    machine.set_up()
    machine.tmux("new-session", "-d", "-s", "some")
    pid = int(machine.tmux("display-message", "-p", "#{pid}"))
    assert pid in processes_in(place)
    os.kill(pid, signal.SIGSTOP)
    machine.close()
    assert os.listdir(place) == []
    wait_for(lambda: processes_in(place) == [], "the end of the server")
