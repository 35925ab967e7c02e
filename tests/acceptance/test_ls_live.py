"""What `perdure ls` and `perdure` alone show of agents at work: told by a daemon, and without one by their screens."""

from __future__ import annotations

import os
import re
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest

from perdure.daemon.protocol import socket_path
from tests.acceptance.kit import configure, has_fields, only_json, sentence, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer

#: What only somebody who has watched can know.
WATCHED = ("run", "since", "previous", "thought", "objective", "rest", "skill", "health", "theme")
#: What a pane has whether its server answers or not.
LASTING = (
    *("user", "socket", "session", "window", "window_name", "pane", "pane_id", "pid", "cwd", "command", "agent"),
    *("conversation", "certain", "evidence", "conversation_title", "model"),
)
SEEN = ("state", "reason", "cause", "confidence")


@pytest.fixture
def agents(private_home: PrivateHome, tmux: TmuxServer) -> Iterator[Simulants]:
    """One that works, one that asks, one that waits to be told something, and a shell."""
    agents = Simulants(private_home)
    for name, words in {
        "works": ("--think", "3600", "Rename it everywhere."),
        "asks": ("run make docs",),
        "rests": (),
    }.items():
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "-x", "150", "-y", "30", agents.path, *words)
    tmux.run("new-session", "-d", "-s", "shell", "-n", "w")
    agents.await_running(3, 2)
    wait_for(lambda: b"[y] yes" in tmux.run("capture-pane", "-p", "-t", "=asks:"), "the question")
    wait_for(lambda: "you ▸" in tmux.run("capture-pane", "-p", "-t", "=rests:").decode(), "the input")
    wait_for(lambda: b"thinking" in tmux.run("capture-pane", "-p", "-t", "=works:"), "the work")
    yield agents
    agents.end_all()


def panes(ran: Ran) -> dict[str, dict[str, Any]]:
    """The panes by session, in the order they came."""
    return {each["session"]: each for each in only_json(ran)["panes"]}


def columns(ran: Ran) -> list[str]:
    """The heads of a table that was not cut."""
    return re.split(r"\s{2,}", ran.out.splitlines()[0].strip())


def states(found: dict[str, dict[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    return {name: (each["state"], each["reason"]) for name, each in found.items()}


@pytest.mark.usefixtures("agents")
def test_without_a_daemon_screens_tell_what_agents_are_doing(perdure: Perdure, tmux: TmuxServer) -> None:
    found = panes(perdure.ok("ls", "--json"))
    assert list(found) == ["works", "asks", "rests", "shell"]
    assert states(found) == {
        "asks": ("attention", "permission"),
        "rests": ("idle", None),
        "shell": (None, None),
        "works": ("busy", None),
    }
    assert found["asks"]["cause"] == "screen:simulant.attention.run"
    for each in found.values():
        assert [each[name] for name in WATCHED] == [None] * len(WATCHED)

    ran = perdure.ok("ls")
    assert "state" in columns(ran)
    # Nobody knows who they were before, nor since when.
    assert not {"run", "since"} & set(columns(ran))
    assert re.search(r"asks:0\.0 +permission +", ran.out)

    told = only_json(perdure.ok("--json"))
    assert told["daemon"] is None
    assert told["live"]["states"] == {"busy": 1, "idle": 1, "attention": 1}
    (waiting,) = told["waiting"]
    assert (waiting["target"], waiting["reason"], waiting["run"], waiting["since"]) == (
        *("asks:0.0", "permission"),
        *(None, None),
    )
    said = perdure.ok().out
    assert "4 panes on 1 tmux server, 3 agents (3 known for certain): 1 busy, 1 idle, 1 waiting." in said
    assert "Waiting: 1 waits for you: asks:0.0 permission.\n" in said
    assert "Daemon:  nobody watches" in said


@pytest.mark.usefixtures("agents")
def test_a_daemon_tells_who_they_are_and_since_when(perdure: Perdure, tmux: TmuxServer) -> None:
    with watching(perdure) as daemon:
        daemon.await_state("asks:0.0", "attention(permission)")
        daemon.await_state("works:0.0", "busy")
        daemon.await_state("rests:0.0", "idle")
        daemon.await_state("shell:0.0", "idle")
        found = panes(perdure.ok("ls", "--json"))
        assert list(found) == ["works", "asks", "rests", "shell"]
        assert states(found) == {
            "asks": ("attention", "permission"),
            "rests": ("idle", None),
            "shell": ("idle", None),
            "works": ("busy", None),
        }
        runs = {run.place.session: run for run in daemon.runs()}
        for name, each in found.items():
            assert each["run"] == runs[name].id
            assert each["health"] == "healthy"
            has_fields(each, {"since": str, "cause": str, "confidence": str})
        assert len({each["run"] for each in found.values()}) == 4

        ran = perdure.ok("ls")
        assert columns(ran)[:4] == ["pane", "run", "state", "since"]
        assert re.search(rf"asks:0\.0 +{runs['asks'].id} +permission +\d+ (s|min) ago ", ran.out)

        told = only_json(perdure.ok("--json"))
        assert (told["daemon"]["panes"], told["daemon"]["agents"]) == (4, 3)
        (waiting,) = told["waiting"]
        assert (waiting["target"], waiting["run"]) == ("asks:0.0", runs["asks"].id)
        assert waiting["since"] is not None
        assert told["saved"]["agents"] == 3
        said = perdure.ok().out
        assert re.search(r"Waiting: 1 waits for you: asks:0\.0 permission \d+ (s|min)\.\n", said)
        assert "Daemon:  watching 4 panes of 1 server, started" in said

        tmux.run("send-keys", "-t", "=asks:", "y", "Enter")
        daemon.await_state("asks:0.0", "attention(done)")
        each = panes(perdure.ok("ls", "--json"))["asks"]
        assert (each["reason"], each["run"]) == ("done", runs["asks"].id)
        assert each["previous"] is not None
    # It is over, and what it told is not told any more.
    assert panes(perdure.ok("ls", "--json"))["asks"]["run"] is None


@pytest.mark.usefixtures("agents")
def test_a_server_that_does_not_answer_is_shown_as_the_daemon_last_saw_it(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 1\n")
    with watching(perdure) as daemon:
        daemon.await_state("asks:0.0", "attention(permission)")
        daemon.await_state("works:0.0", "busy")
        daemon.await_state("rests:0.0", "idle")
        daemon.await_state("shell:0.0", "idle")
        before = panes(perdure.ok("ls", "--json"))
        os.kill(pid := tmux.pid, signal.SIGSTOP)
        try:
            listed, said, overview = perdure("ls", "--json"), perdure("ls"), perdure("--json")
            told = perdure()
        finally:
            os.kill(pid, signal.SIGCONT)
    assert [each.code for each in (listed, said, overview, told)] == [4] * 4
    found = panes(listed)
    assert {name: each["run"] for name, each in found.items()} == {n: each["run"] for n, each in before.items()}
    assert states(found) == states(before)
    for name, each in found.items():
        assert each["health"] in ("degraded", "overloaded")
        assert [each[fact] for fact in LASTING] == [before[name][fact] for fact in LASTING]
        assert [each[fact] for fact in ("active", "size", "dead")] == [None] * 3
    assert re.search(r"asks:0\.0 +r\d+ +permission \(no answer\) +", said.out)
    assert "did not answer" in said.err
    live = only_json(overview)["live"]
    assert (live["servers"], live["silent"], live["panes"], live["agents"], live["certain"]) == (1, 1, 4, 3, 3)
    assert [each["target"] for each in only_json(overview)["waiting"]] == ["asks:0.0"]
    assert "Running: 4 panes on 1 tmux server (1 does not answer: as last seen there), 3 agents" in told.out


@pytest.mark.usefixtures("agents")
def test_what_is_no_daemon_is_said_and_everything_is_seen_all_the_same(
    perdure: Perdure, private_home: PrivateHome
) -> None:
    perdure.ok("save")
    with answering(socket_path(private_home.state), b"what?\n"):
        ran = perdure("ls", "--json")
        assert "daemon" in sentence(ran)
        assert states(panes(ran))["works"] == ("busy", None)
        told = only_json(perdure("--json"))["daemon"]
        assert told["since"] is None
        assert "cannot be read" in told["problem"]


def test_a_machine_without_agents_has_no_states(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "shell", "-n", "w")
    assert not {"run", "state", "since"} & set(columns(perdure.ok("ls")))
    (pane,) = panes(perdure.ok("ls", "--json")).values()
    assert [pane[name] for name in (*SEEN, *WATCHED)] == [None] * len((*SEEN, *WATCHED))
    assert only_json(perdure.ok("--json"))["waiting"] == []
    assert "Waiting:" not in perdure.ok().out


@contextmanager
def answering(path: str, line: bytes) -> Iterator[None]:
    """Something that listens where a daemon would, and says one line to whoever comes."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        os.chmod(path, 0o600)

        def answer() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(65536)
                    connection.sendall(line)

        thread = Thread(target=answer, daemon=True)
        thread.start()
        try:
            yield
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(20)
    os.unlink(path)
