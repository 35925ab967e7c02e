"""What is for an agent is no command for the shell beside it: one it was stopped in, or one that is left of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import nullcontext
from shlex import quote

import pytest

from tests.acceptance.boxing import screen
from tests.acceptance.kit import only_json, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.test_send import ONE, await_only, interposed, is_known
from tests.acceptance.watching import stored_runs, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def agents(private_home: PrivateHome) -> Iterator[Simulants]:
    agents = Simulants(private_home)
    yield agents
    agents.end_all()


@pytest.fixture
def canary(private_home: PrivateHome) -> str:
    """A file that is there once a shell has run `touching` it."""
    return os.path.join(private_home.root, "canary")


def touching(canary: str) -> str:
    return f"touch {quote(canary)}"


def by_hand(agents: Simulants, tmux: TmuxServer) -> None:
    """Start an agent from a shell, in a session `work`."""
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    wait_for(lambda: "$" in screen(tmux, "work:"), "the prompt")
    tmux.run("send-keys", "-t", "work:", f"clear; {agents.path} --think 0.1 --session {ONE}", "Enter")
    await_only(agents, tmux, ONE)


def stopped(tmux: TmuxServer) -> None:
    tmux.run("send-keys", "-t", "work:", "C-z")
    wait_for(lambda: "Stopped" in screen(tmux, "work:"), "the end of its turn at the terminal")
    wait_for(lambda: screen(tmux, "work:").rstrip().endswith("$"), "the shell's prompt")


def quit_by_hand(agents: Simulants, tmux: TmuxServer) -> None:
    tmux.run("send-keys", "-t", "work:", "/quit", "Enter")
    agents.await_gone()
    wait_for(lambda: screen(tmux, "work:").rstrip().endswith("$"), "the shell's prompt")


def is_refused(perdure: Perdure, canary: str, target: str, *words: str) -> str:
    """Send a command for a shell, see that nothing is typed, and return why."""
    ran = perdure("send", "--json", target, *(words or (touching(canary),)))
    told = only_json(ran)
    assert (ran.code, told["result"], told["enters"]) == (6, "refused", 0), told
    return str(told["why"])


# -- stopped ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [(), ("--key", "Enter"), ("only typed", "--no-enter")])
def test_what_an_agent_is_told_that_was_stopped_no_shell_runs(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str, words: tuple[str, ...]
) -> None:
    by_hand(agents, tmux)
    stopped(tmux)
    shown = screen(tmux, "work:")
    why = is_refused(perdure, canary, "work", *words)
    assert why == "simulant is stopped (Ctrl-Z), and the shell would run what is typed; `fg` brings it back"
    assert screen(tmux, "work:") == shown
    assert not os.path.exists(canary)


def test_who_insists_may_have_the_shell_run_it(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str
) -> None:
    by_hand(agents, tmux)
    stopped(tmux)
    perdure("send", "--json", "work", touching(canary), "--anyway", "--timeout", "5")
    wait_for(lambda: os.path.exists(canary), "what the shell was told")


def test_a_run_that_was_stopped_is_told_nothing(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str
) -> None:
    by_hand(agents, tmux)
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
        stopped(tmux)
        assert "stopped" in is_refused(perdure, canary, run.id)
        assert "stopped" in is_refused(perdure, canary, run.id, touching(canary), "--conversation", ONE)
    assert not os.path.exists(canary)


def test_an_agent_of_ours_that_was_stopped_goes_on_when_the_shell_is_left(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str
) -> None:
    perdure.ok("new", "work", "--agent", "simulant", "--", agents.path, "--think", "0.1")
    tmux.run("send-keys", "-t", "work:", "C-z")
    wait_for(lambda: "is stopped. Leave this shell" in screen(tmux, "work:"), "the stop")
    wait_for(lambda: screen(tmux, "work:").rstrip().endswith(("$", "#")), "the shell's prompt")
    assert "`exit` leaves that shell and brings it back" in is_refused(perdure, canary, "work")
    assert not os.path.exists(canary)
    tmux.run("send-keys", "-t", "work:", "exit", "Enter")
    wait_for(
        lambda: perdure("send", "--json", "work", "go on", "--timeout", "2").code == 0 or agents.turns(), "its answer"
    )
    agents.await_running(1, 2)


def test_enter_is_not_pressed_for_an_agent_that_was_stopped_meanwhile(
    private_home: PrivateHome, agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str
) -> None:
    by_hand(agents, tmux)
    steps = "tmux send-keys -t work: C-z; until tmux capture-pane -p -t work: | grep -q Stopped; do sleep 0.05; done"
    env = interposed(private_home, tmux, "capture-pane", steps, behind="load-buffer")
    told = only_json(perdure("send", "--json", "work", touching(canary), env=env))
    assert (told["result"], told["enters"]) == ("unconfirmed", 0), told
    assert "Enter was not pressed" in told["why"]
    assert not os.path.exists(canary)


# -- ended ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("watched", [True, False])
def test_what_is_left_of_an_agent_is_told_nothing_by_whichever_name(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str, watched: bool
) -> None:
    by_hand(agents, tmux)
    pane = tmux.show("#{pane_id}", "work:")
    with watching(perdure) as watcher:
        run = watcher.await_run("work:0.0", is_known, "with its agent")
    with watching(perdure) if watched else nullcontext():
        quit_by_hand(agents, tmux)
        for target in (run.id, "work", pane, "work:0.0"):
            assert is_refused(perdure, canary, target).startswith("simulant has ended, and the shell")
        assert not os.path.exists(canary)
        # Keys are somebody's who looks at it.
        assert perdure("send", "work", "--key", "Enter", "--timeout", "0.5").code in (0, 4)
        ran = perdure("send", "work", touching(canary), "--anyway", "--timeout", "5")
        assert ran.code == 0, (ran, screen(tmux, "work:"))
        wait_for(lambda: os.path.exists(canary), "what the shell was told")


def test_who_was_saved_there_is_remembered_where_nobody_watches(
    agents: Simulants, tmux: TmuxServer, perdure: Perdure, canary: str
) -> None:
    by_hand(agents, tmux)
    perdure.ok("save")
    quit_by_hand(agents, tmux)
    assert not stored_runs()
    assert is_refused(perdure, canary, "work").startswith("simulant has ended, and the shell")
    assert not os.path.exists(canary)


@pytest.mark.parametrize("watched", [True, False])
def test_what_is_left_of_an_agent_that_ended_at_once_is_told_nothing(
    tmux: TmuxServer, perdure: Perdure, private_home: PrivateHome, canary: str, watched: bool
) -> None:
    program = os.path.join(private_home.root, "simulant")
    with open(program, "w") as file:
        file.write("#!/bin/sh\nexit 3\n")
    os.chmod(program, 0o755)
    tmux.run("new-session", "-d", "-s", "keep", "-n", "w", "cat", "-")
    with watching(perdure) if watched else nullcontext() as watcher:
        assert perdure("new", "work", "--agent", "simulant", "--", program).code == 1
        wait_for(lambda: "ended with status" in screen(tmux, "work:"), "its end")
        targets = ["work", tmux.show("#{pane_id}", "work:")]
        if watcher is not None:
            targets.append(watcher.await_run("work:0.0", lambda run: run.id in stored_runs(), "recorded").id)
        for target in targets:
            assert is_refused(perdure, canary, target).startswith("simulant has ended, and the shell")
    assert not os.path.exists(canary)


def test_the_shell_that_a_command_leaves_may_be_typed_into(tmux: TmuxServer, perdure: Perdure, canary: str) -> None:
    perdure("new", "work", "--", "false")
    wait_for(lambda: "ended with status" in screen(tmux, "work:"), "its end")
    wait_for(lambda: screen(tmux, "work:").rstrip().endswith(("$", "#")), "the shell's prompt")
    perdure("send", "--json", "work", touching(canary), "--timeout", "5")
    wait_for(lambda: os.path.exists(canary), "what the shell was told")
