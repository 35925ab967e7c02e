"""Whether a pane waits at a shell's prompt, told by the processes on its terminal alone."""

from __future__ import annotations

import shutil

import pytest

from perdure.daemon.seeing import Occupant, at_prompt
from perdure.host.processes import read_entry
from perdure.model.observation import Reading
from perdure.model.run import Program, RunState
from tests.acceptance.kit import wait_for
from tests.builders import NOON
from tests.conftest import PrivateHome
from tests.leftovers import let_fish_be
from tests.tmux_server import TmuxServer


def _first(tmux: TmuxServer) -> Program:
    entry = read_entry(int(tmux.show("#{pane_pid}", "work:0")))
    assert entry is not None
    return Program(pid=entry.pid, start_ticks=entry.start_ticks)


def _await(tmux: TmuxServer, state: RunState, rule: str) -> tuple[Reading, Occupant | None]:
    first = _first(tmux)
    seen: list[tuple[Reading | None, Occupant | None]] = []

    def look() -> bool:
        seen[:] = [at_prompt(first, NOON)]
        reading = seen[0][0]
        return reading is not None and (reading.state, reading.rule) == (state, rule)

    try:
        wait_for(look, f"{state} by {rule}")
    except AssertionError as error:
        raise AssertionError(f"{error}; seen: {seen}") from None
    reading, occupant = seen[0]
    assert reading is not None
    return reading, occupant


def _type(tmux: TmuxServer, words: str) -> None:
    tmux.run("send-keys", "-t", "work:0", words, "Enter")


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh", "fish"])
def test_a_shell_and_what_is_started_in_it(tmux: TmuxServer, private_home: PrivateHome, shell: str) -> None:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    let_fish_be(private_home.home)
    # tmux starts it by another shell, which waits for it.
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", path)
    assert _await(tmux, RunState.IDLE, "prompt")[1] is None
    _type(tmux, "sleep 1000")
    _, occupant = _await(tmux, RunState.BUSY, "sleep")
    assert occupant is not None
    entry = read_entry(occupant.pid)
    assert entry is not None
    assert entry.comm == "sleep"
    tmux.run("send-keys", "-t", "work:0", "C-c", "")
    assert _await(tmux, RunState.IDLE, "prompt")[1] is None


def test_a_shell_in_a_shell_is_a_prompt_too(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "exec sh")
    _type(tmux, "bash --norc")
    wait_for(lambda: tmux.show("#{pane_current_command}", "work:0") == "bash", "the inner shell")
    assert _await(tmux, RunState.IDLE, "prompt")[1] is None


def test_a_script_is_no_prompt(tmux: TmuxServer, tmp_path_factory: pytest.TempPathFactory) -> None:
    script = tmp_path_factory.mktemp("scripts") / "long"
    script.write_text("sleep 1000\ntrue\n")
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "exec sh")
    _type(tmux, f"sh {script}")
    _await(tmux, RunState.BUSY, "sleep")


def test_what_a_window_was_made_for_is_no_prompt(tmux: TmuxServer) -> None:
    """A shell that was told to run something has the terminal to itself, and waits for no command."""
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "sleep 1000; true")
    _, occupant = _await(tmux, RunState.BUSY, "sleep")
    assert occupant is not None
    assert occupant.pid != _first(tmux).pid


def test_a_shell_that_becomes_another_program(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "exec sh")
    _await(tmux, RunState.IDLE, "prompt")
    _type(tmux, "exec sleep 1000")
    _, occupant = _await(tmux, RunState.BUSY, "sleep")
    assert occupant == Occupant(_first(tmux).pid, "sleep")


def test_of_a_process_that_is_gone_nothing_is_said(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "exec sh")
    first = _first(tmux)
    assert at_prompt(Program(pid=first.pid, start_ticks=first.start_ticks + 1), NOON) == (None, None)
    tmux.kill()
    wait_for(lambda: at_prompt(first, NOON) == (None, None), "the end of the shell")
