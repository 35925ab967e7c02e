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
    print("ready after", time.monotonic() - began)
    agent.ask("hello there")
    print("answered after", time.monotonic() - began)
    print(agent)
    agent.quit()
    print("ended after", time.monotonic() - began)
    print([(seen.path, seen.ordered, seen.request.prompt[-80:]) for seen in stage.stub.seen])
