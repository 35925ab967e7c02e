"""An agent that was stopped (Ctrl-Z) does nothing, whatever its files and the shell's screen say; and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.boxing import screen
from tests.acceptance.kit import only_json, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.test_send_shell import stopped
from tests.acceptance.watching import watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def agents(private_home: PrivateHome) -> Iterator[Simulants]:
    agents = Simulants(private_home)
    yield agents
    agents.end_all()


def start(agents: Simulants, tmux: TmuxServer) -> None:
    """Start an agent from a shell, in a session `work`, and have it think for long."""
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    wait_for(lambda: "$" in screen(tmux, "work:"), "the prompt")
    tmux.run("send-keys", "-t", "work:", f"clear; {agents.path} --think 900 'go on'", "Enter")
    wait_for(lambda: "thinking" in screen(tmux, "work:"), "the agent at work")


def listed(perdure: Perdure) -> dict[str, Any]:
    (pane,) = only_json(perdure.ok("ls", "--json"))["panes"]
    return dict(pane)


def test_an_agent_that_was_stopped_is_told_as_that(agents: Simulants, tmux: TmuxServer, perdure: Perdure) -> None:
    start(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_state("work:0.0", "busy")
        stopped(tmux)
        halted = watcher.await_run(run.id, lambda run: run.status.cause == "process:stopped", "to be stopped")
        assert (halted.status.state, halted.status.confidence, halted.program) == ("unknown", "high", run.program)
        pane = listed(perdure)
        assert (pane["state"], pane["because"].partition(",")[0]) == ("unknown", "It was stopped (Ctrl-Z)")
        # What the shell shows meanwhile changes nothing.
        tmux.run("send-keys", "-t", "work:", "echo $((1000000*1000000+7))", "Enter")
        wait_for(lambda: "1000000000007" in screen(tmux, "work:"), "the shell's answer")
        assert watcher.run(run.id).status.cause == "process:stopped"
        tmux.run("send-keys", "-t", "work:", "fg", "Enter")
        watcher.await_state(run.id, "busy")


def test_without_a_daemon_too(agents: Simulants, tmux: TmuxServer, perdure: Perdure) -> None:
    start(agents, tmux)
    stopped(tmux)
    pane = listed(perdure)
    assert (pane["state"], pane["cause"]) == ("unknown", "process:stopped")
    told = only_json(perdure.ok("explain", "work", "--json"))
    assert (told["stopped"], told["screen"]["state"]) == (True, None)
    assert "simulant, stopped (Ctrl-Z)" in perdure.ok("explain", "work").out
