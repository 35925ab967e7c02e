"""Every agent starts against the stub model, answers one prompt, and ends."""

from __future__ import annotations

import time

import pytest

from tests.real_agents.agents import PROGRAMS
from tests.real_agents.kit import Stage


@pytest.mark.parametrize("name", PROGRAMS)
def test_an_agent_starts_answers_and_ends(stage: Stage, name: str) -> None:
    began = time.monotonic()
    agent = stage.start(name)
    print(f"{name} is ready after {time.monotonic() - began:.1f} s")
    agent.ask("hello there")
    print(f"{name} has answered after {time.monotonic() - began:.1f} s")
    agent.quit()
    print(f"{name} has ended after {time.monotonic() - began:.1f} s")
