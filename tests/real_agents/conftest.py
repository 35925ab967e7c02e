"""Tests of real agents: marked as such, each on a stage of its own, and a summary of which agents ran."""

from __future__ import annotations

import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.kit import Stage
from tests.real_agents.stub_model import StubModel
from tests.tmux_server import TmuxServer

HERE = os.path.dirname(os.path.abspath(__file__))
#: The property of a test's report that names an agent it started.
RAN = "real agent"
#: Those that take longest to start, and to answer.
SLOW = ("opencode", "hermes", "cline")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test in this folder, before the marks decide what is left out, and let the long ones be the first.

    Two that work side by side begin with a half each: long ones are at the beginning of both.
    """
    ours = [item for item in items if str(item.path).startswith(HERE + os.sep)]
    for item in ours:
        item.add_marker(pytest.mark.real_agent)
    if len(ours) == len(items):
        items.sort(key=_seems_long, reverse=True)
        items[:] = [*items[::2], *items[1::2]]


def _seems_long(item: pytest.Item) -> tuple[bool, bool]:
    """Restores start everything twice, and some agents take long to start."""
    return item.path.name.startswith("test_restore"), any(name in item.nodeid for name in SLOW)


@pytest.fixture
def stage(
    private_home: PrivateHome, tmux: TmuxServer, perdure: Perdure, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    """A machine for one test; everything that was started on it ends with the test."""
    if not sys.platform.startswith("linux"):
        pytest.skip("the processes of real agents are read from /proc")

    def started(name: str) -> None:
        # Once per test, and before its outcome is reported.
        if (RAN, name) not in request.node.user_properties:
            request.node.user_properties.append((RAN, name))

    with StubModel() as stub:
        made = Stage(private_home, tmux, stub, perdure, started)
        try:
            yield made
        finally:
            made.close()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say which agents ran, how their tests went, and why the others did not."""
    outcomes: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in ("passed", "failed", "error"):
        for report in terminalreporter.stats.get(outcome, []):
            for name, value in getattr(report, "user_properties", ()):
                if name == RAN:
                    outcomes[value][outcome] += 1
    skipped = len(terminalreporter.stats.get("skipped", []))
    if not outcomes and not skipped:
        return
    terminalreporter.section("real agents")
    for program in PROGRAMS.values():
        counts = outcomes.get(program.name)
        if counts:
            told = "ran: " + ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items()))
        else:
            told = f"DID NOT RUN: {program.missing or 'no test asked for it'}"
        terminalreporter.write_line(f"{program.name:<9} {program.version:<9} {told}")
