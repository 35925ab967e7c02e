"""Where an agent keeps its files."""

from __future__ import annotations

import pytest

from perdure.agents._homes import every_home, home_of, profile_of
from tests.unit.agents.hosts import CWD, HOME, DirectoryHost, process


@pytest.mark.parametrize(
    ("environ", "home", "profile"),
    [
        ({}, f"{HOME}/.agent", None),
        ({"AGENT_HOME": ""}, f"{HOME}/.agent", None),
        ({"HOME": "/srv/other"}, "/srv/other/.agent", None),
        ({"AGENT_HOME": "/srv/work/"}, "/srv/work/", "work"),
        ({"AGENT_HOME": "here"}, f"{CWD}/here", "here"),
        ({"AGENT_HOME": f"{HOME}/.agent/"}, f"{HOME}/.agent/", None),
    ],
)
def test_a_variable_names_the_home_and_with_it_a_profile(
    host: DirectoryHost, environ: dict[str, str], home: str, profile: str | None
) -> None:
    seen = process("agent", environ=environ)
    assert home_of(seen, "AGENT_HOME", ".agent", host) == home
    assert profile_of(seen, "AGENT_HOME", ".agent", host) == profile


def test_without_a_process_the_usual_home_comes_first(host: DirectoryHost) -> None:
    for name in (".agent-work/x", ".agent/x", ".agent_b/x", ".agents/x", "agent/x"):
        host.write(f"{HOME}/{name}", b"")
    assert list(every_home(".agent", host)) == [f"{HOME}/.agent", f"{HOME}/.agent-work", f"{HOME}/.agent_b"]
