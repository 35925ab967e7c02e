"""No agent's name as text outside `agents/`: whoever adds an agent adds a file there and touches nothing else."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

import pytest

from perdure.agents import adapters
from tests.architecture.source import Finding, Module, modules, parse, report

#: Agents the program knows or will know, so that a name is caught before its adapter exists.
KNOWN = frozenset("aider amp claude cline codex copilot cursor gemini goose hermes opencode qwen".split())

#: What tmux calls the place where the next letter goes, and what about it can be switched.
OF_TERMINALS = frozenset({"cursor_x", "cursor_y", "cursor_flag", "keypad_cursor_flag"})

#: `compat` reads and writes files of older scripts, whose field names and paths hold agents' names.
EXEMPT = frozenset({"agents", "compat"})

#: The one agent that is a program of ours, and may say its name at home.
OWN = {"demo": frozenset({"simulant"})}


def named_agents(module: Module, names: Iterable[str]) -> list[Finding]:
    """Return every string, docstrings apart, in which one of the names stands as a word."""
    if module.unit in EXEMPT:
        return []
    others = sorted(frozenset(names) - OWN.get(module.unit, frozenset()))
    word = re.compile(rf"(?<![A-Za-z0-9])({'|'.join(map(re.escape, others))})(?![A-Za-z0-9])", re.IGNORECASE)
    docstrings = _docstrings(module.tree)
    return [
        Finding(module.at(node), f"an agent's name in {node.value!r}")
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant)
        and id(node) not in docstrings
        and word.search(_text(node.value))
        and node.value not in OF_TERMINALS
    ]


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return value if isinstance(value, str) else ""


def _docstrings(tree: ast.Module) -> set[int]:
    """Return the ids of the strings that are statements of their own."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def test_agents_are_named_in_their_own_folder_only() -> None:
    names = KNOWN | {adapter.name for adapter in adapters()}
    findings = [finding for module in modules() for finding in named_agents(module, names)]
    assert not findings, report(findings)


@pytest.mark.parametrize(
    "text",
    [
        "if agent == 'claude': pass",
        "message = 'Codex is waiting'",
        "path = f'{home}/.hermes/state.json'",
        "variable = 'GOOSE_HOME'",
        "raw = b'aider'",
    ],
)
def test_a_name_is_found(text: str) -> None:
    assert named_agents(parse("perdure.cli.ls", text), KNOWN)


def test_the_program_that_stands_for_an_agent_names_itself_and_nobody_else() -> None:
    names = {*KNOWN, "simulant"}
    assert not named_agents(parse("perdure.demo.agent", "name = 'simulant'"), names)
    assert named_agents(parse("perdure.demo.agent", "name = 'claude'"), names)
    assert named_agents(parse("perdure.cli.demo", "name = 'simulant'"), names)


def test_the_folder_itself_and_prose_are_left_alone() -> None:
    assert not named_agents(parse("perdure.agents.claude", "name = 'claude'"), KNOWN)
    assert not named_agents(parse("perdure.cli.ls", '"""Such as claude."""\nx = "recline, declined"'), KNOWN)
