"""Servers that died while no daemon watched them: the next one tells, once, and brings them back where that is wished."""

from __future__ import annotations

import os
import signal

import pytest

from perdure.model.event import EventKind
from tests.acceptance.kit import configure, wait_for
from tests.acceptance.simulants import Simulants, starts
from tests.acceptance.watching import PATIENCE, Watching, begin, dispose, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def simulants(private_home: PrivateHome) -> Simulants:
    """The simulated agents of the test's home."""
    return Simulants(private_home)


def _agent(tmux: TmuxServer, simulants: Simulants, session: str = "work") -> None:
    tmux.run("new-session", "-d", "-s", session, "-n", "agent", "/bin/sh")
    tmux.run("send-keys", "-t", f"{session}:0", f"{simulants.path} --think 0.1 hello", "Enter")


def _saved(perdure: Perdure) -> set[str | None]:
    panes = perdure.ok("show", "--json", "latest").json["snapshot"]["topology"]["panes"]
    return {pane["identity"]["conversation"] for pane in panes if pane["identity"]}


def _settled(watcher: Watching, perdure: Perdure) -> str:
    """Wait until the agent's conversation is known and saved; return it."""
    run = watcher.await_run(
        "work:0.0",
        lambda run: run.identity is not None and run.identity.conversation is not None and run.status.waits,
    )
    assert run.identity is not None
    conversation = run.identity.conversation
    assert conversation is not None
    watcher.wait_for(lambda: conversation in _saved(perdure), "the conversation to be saved")
    return conversation


def _both_killed(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> tuple[str, int]:
    """Kill a daemon and then the server it watched; return the conversation there was, and the server's number."""
    first = begin(perdure)
    try:
        conversation, pid = _settled(first, perdure), tmux.pid
        first.process.kill()
        first.process.wait(PATIENCE)
    finally:
        dispose(first)
    tmux.kill9()
    simulants.await_gone()
    return conversation, pid


def test_it_is_told_once_with_what_is_known(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    _agent(tmux, simulants)
    _, pid = _both_killed(perdure, tmux, simulants)
    for _ in range(2):
        with watching(perdure) as watcher:
            (died,) = watcher.events(0, EventKind.SERVER_DIED)
            data = died.event.data
            assert (data["pid"], data["cause"], data["agents"], data["restoring"]) == (pid, "unknown", 1, False)
            assert data["socket"] == tmux.socket
            assert data["snapshot"] == perdure.ok("show", "--json", "latest").json["snapshot"]["id"]
            (gone,) = watcher.events(0, EventKind.RUN_DELETED)
            assert gone.event.data["reason"] == "startup_missing_tmux"
            assert died.seq < gone.seq


def test_it_is_brought_back_where_that_is_wished(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    _agent(tmux, simulants)
    conversation, _ = _both_killed(perdure, tmux, simulants)
    with watching(perdure) as watcher:
        done = watcher.await_event(EventKind.RESTORED).event
        assert (done.data["exit_code"], done.data["socket"]) == (0, tmux.socket)
        (died,) = watcher.events(0, EventKind.SERVER_DIED)
        assert died.event.data["restoring"]
        back = watcher.await_run("work:0.0", lambda run: run.program is not None)
        assert back.id == "r1"
    assert starts(simulants.records()) == {conversation: 2}


def test_another_server_has_its_socket_by_then(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    _agent(tmux, simulants)
    conversation, pid = _both_killed(perdure, tmux, simulants)
    tmux.run("new-session", "-d", "-s", "mine", "-n", "one", "/bin/sh")
    with watching(perdure) as watcher:
        watcher.await_event(EventKind.RESTORED)
        (died,) = watcher.events(0, EventKind.SERVER_DIED)
        assert died.event.data["pid"] == pid
        watcher.await_run("work:0.0", lambda run: run.program is not None)
        assert {run.place.session for run in watcher.runs()} == {"mine", "work"}
    assert starts(simulants.records()) == {conversation: 2}


def test_one_that_lives_or_hangs_has_not_died(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 0.5\n")
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "/bin/sh")
    pid = tmux.pid
    for _ in range(2):
        with watching(perdure) as watcher:
            watcher.await_run("work:0.0")
        assert watcher.events(0, EventKind.SERVER_DIED) == []
    os.kill(pid, signal.SIGSTOP)
    try:
        with watching(perdure) as watcher:
            assert watcher.events(0, EventKind.SERVER_DIED) == []
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for(lambda: tmux.alive, "the server to go on")


def test_one_with_nothing_left_in_it_is_not_told_again(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "/bin/sh")
    with watching(perdure) as watcher:
        tmux.run("kill-session", "-t", "=work")
        watcher.await_event(EventKind.SERVER_DIED)
        watcher.wait_for(lambda: not watcher.runs(), "the run to have ended")
    with watching(perdure) as watcher:
        assert len(watcher.events(0, EventKind.SERVER_DIED)) == 1
