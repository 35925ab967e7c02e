from __future__ import annotations

import logging
from typing import Any, cast

import pytest

from perdure.agents import Roster, adapters, agent_of, environment_names
from perdure.model.process import Process
from perdure.ports import AgentAdapter
from tests.unit.agents.hosts import process

BASH = process("-bash", pid=10, foreground=False)


def found(*tree: Process) -> tuple[str, int] | None:
    result = agent_of(tree)
    return (result[0].name, result[1].pid) if result else None


def test_an_agent_below_a_shell_is_found() -> None:
    assert found(BASH, process("claude", pid=20, ppid=10)) == ("claude", 20)


def test_a_pane_without_an_agent_has_none() -> None:
    assert found(BASH, process("vim", pid=20, ppid=10)) is None
    assert found() is None


def test_what_an_agent_starts_is_not_the_panes_agent() -> None:
    tree = (
        BASH,
        process("claude", pid=40, ppid=10),
        process("/bin/bash", "-c", "claude", pid=50, ppid=40, foreground=False),
        process("claude", pid=20, ppid=50, foreground=True),
    )
    assert found(*tree) == ("claude", 40)


def test_of_two_side_by_side_the_one_in_the_foreground_is_meant() -> None:
    suspended = process("claude", pid=20, ppid=10, foreground=False)
    assert found(BASH, suspended, process("claude", pid=30, ppid=10)) == ("claude", 30)
    assert found(BASH, suspended) == ("claude", 20)


def test_a_wrapper_steps_aside_for_the_program_it_runs() -> None:
    wrapper = process("/bin/sh", "/usr/local/bin/claude", pid=20, ppid=10, comm="claude")
    assert found(BASH, wrapper) == ("claude", 20)
    assert found(BASH, wrapper, process("/opt/claude", pid=30, ppid=20)) == ("claude", 30)


def test_a_wrapper_steps_aside_for_what_it_runs_through_other_programs_too() -> None:
    wrapper = process("bash", "/home/dev/bin/claude", "work", pid=20, ppid=10, comm="claude")
    through = process("timeout", "1d", "/opt/claude", pid=30, ppid=20)
    agent = process("/opt/claude", pid=40, ppid=30)
    shell = process("/bin/bash", "-c", "claude", pid=50, ppid=40, foreground=False)
    assert found(BASH, wrapper, through, agent) == ("claude", 40)
    assert found(BASH, wrapper, through, agent, shell, process("claude", pid=60, ppid=50)) == ("claude", 40)


def test_an_agent_that_a_script_is_does_not_step_aside_for_one_it_started() -> None:
    agent = process("node", "/x/@anthropic-ai/claude-code/cli.js", pid=20, ppid=10)
    shell = process("/bin/bash", "-c", "claude", pid=30, ppid=20, foreground=False)
    assert found(BASH, agent, shell, process("claude", pid=40, ppid=30)) == ("claude", 20)


def test_the_packages_own_launcher_is_not_the_agent() -> None:
    launcher = process("node", "/x/node_modules/@anthropic-ai/claude-code/cli-wrapper.cjs", pid=20, ppid=10)
    native = process("/x/node_modules/@anthropic-ai/claude-code-linux-x64/claude", pid=30, ppid=20)
    assert found(BASH, launcher, native) == ("claude", 30)


class Broken:
    name = "broken"
    programs = frozenset({"claude"})
    environment: frozenset[str] = frozenset()

    def score(self, process: Process) -> float:
        raise RuntimeError("no idea")


def test_an_adapter_that_raises_is_logged_and_claims_nothing(caplog: pytest.LogCaptureFixture) -> None:
    broken = cast(AgentAdapter, cast(Any, Broken()))
    with caplog.at_level(logging.ERROR):
        result = agent_of([process("claude", pid=7)], Roster({}, [broken, *adapters()]))
    assert result is not None
    assert result[0].name == "claude"
    assert "broken" in caplog.text


def test_the_environment_read_holds_homes_and_addresses() -> None:
    assert {"PATH", "VIRTUAL_ENV", "CLAUDE_CONFIG_DIR", "ANTHROPIC_BASE_URL"} <= environment_names()
