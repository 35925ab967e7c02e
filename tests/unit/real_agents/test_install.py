"""Installing the real agents: each on its own, once, and with a reason when it fails."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable

import pytest

from scripts.real_agents import AGENTS, cache_directory, install_all, main
from tests.conftest import PrivateHome

Tool = Callable[[str, str], None]


@pytest.fixture
def cache(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> str:
    """An empty cache, where neither node nor anything else is installed that the system itself does not have."""
    path = os.path.join(private_home.root, "cache")
    os.mkdir(path)
    monkeypatch.setenv("PERDURE_REAL_AGENTS", path)
    return path


@pytest.fixture
def tool(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> Tool:
    """Makes commands, which from then on are the only ones besides the shell's."""
    folder = os.path.join(private_home.root, "bin")
    os.mkdir(folder)
    monkeypatch.setenv("PATH", folder)

    def make(name: str, script: str) -> None:
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{script}\n")
        os.chmod(path, stat.S_IRWXU)

    return make


def _run(*names: str) -> tuple[int, list[str]]:
    said: list[str] = []
    missing = install_all([AGENTS[name] for name in names], cache_directory(os.environ), said.append)
    return missing, sorted(said)


def test_every_agent_is_pinned_to_one_version_and_says_nothing_about_where_it_comes_from() -> None:
    for agent in AGENTS.values():
        assert agent.version.count(".") == 2, agent
        if agent.from_npm:
            with open(os.path.join(agent.pins, "package-lock.json")) as file:
                lock = json.load(file)
            assert not [entry for entry in lock["packages"].values() if "resolved" in entry]
            assert any(entry.get("version") == agent.version for entry in lock["packages"].values())
        else:
            with open(os.path.join(agent.pins, "constraints.txt")) as file:
                assert all("==" in line for line in file)


def test_an_installed_agent_is_left_alone(cache: str, tool: Tool) -> None:
    tool("node", "exit 0")
    tool("npm", "echo called >>calls")
    assert _run("codex") == (0, ["codex     0.166.0   installed"])
    assert AGENTS["codex"].is_installed(cache)
    assert _run("codex") == (0, ["codex     0.166.0   already there"])
    with open(os.path.join(cache, "codex", "calls")) as file:
        assert file.read() == "called\n"


def test_one_that_fails_costs_only_itself_and_its_reason_is_kept(cache: str, tool: Tool) -> None:
    tool("node", "exit 0")
    tool("npm", "case $PWD in */gemini) echo 'npm error code E404' >&2; exit 1 ;; esac")
    missing, said = _run("codex", "gemini")
    assert missing == 1
    assert said == [
        "codex     0.166.0   installed",
        "gemini    0.61.0    FAILED: npm exited with 1: npm error code E404",
    ]
    assert AGENTS["gemini"].missing(cache) == "npm exited with 1: npm error code E404"
    assert AGENTS["codex"].missing(cache) is None
    tool("npm", "exit 0")
    assert _run("gemini") == (0, ["gemini    0.61.0    installed"])
    assert AGENTS["gemini"].missing(cache) is None


def test_a_script_of_its_own_that_fails_is_a_failure(cache: str, tool: Tool) -> None:
    tool("npm", "/bin/mkdir -p node_modules/@anthropic-ai/claude-code")
    tool("node", "echo no binary for this system >&2; exit 3")
    assert _run("claude") == (1, ["claude    2.1.325   FAILED: node exited with 3: no binary for this system"])


def test_without_node_the_line_that_installs_it_is_said(
    cache: str, tool: Tool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["codex", "qwen"]) == 4
    told = capsys.readouterr()
    assert told.out.count("FAILED: node is not installed: ") == 2
    assert "2 of 2 agents are missing" in told.err
    assert main(["qwen", "nothing"]) == 2


def test_what_was_never_tried_says_what_to_do(cache: str) -> None:
    assert AGENTS["aider"].missing(cache) == "not installed: run scripts/real-agents"


def test_the_cache_is_where_caches_are() -> None:
    assert cache_directory({"HOME": "/home/dev"}) == "/home/dev/.cache/perdure/real-agents"
    assert cache_directory({"HOME": "/home/dev", "XDG_CACHE_HOME": "/c"}) == "/c/perdure/real-agents"
    assert cache_directory({"HOME": "/home/dev", "PERDURE_REAL_AGENTS": "/r"}) == "/r"
