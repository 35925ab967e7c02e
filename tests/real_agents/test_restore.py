"""Real agents of which it is not certain where they were come back when a person says so, and are right."""

from __future__ import annotations

import pytest

from tests.real_agents.coming_back import (
    Back,
    answers_to,
    can_run,
    crash_and_restore,
    live_at_home,
    press_enter,
    start_all,
    wait_for_words,
)
from tests.real_agents.kit import Agent, Stage

pytestmark = pytest.mark.real_agent


def words(agent: Agent, which: str) -> str:
    return f"{which} words for {agent.program.name}"


def goes_on(agents: list[Agent]) -> None:
    """See that a third prompt goes to the model below the first two and the answers to them, and below nothing else's."""
    for agent, seen in answers_to({agent: words(agent, "third") for agent in agents}).items():
        for which in ("first", "second", "third"):
            assert words(agent, which) in seen.body, agent
        others = [other.program.name for other in agents if other is not agent]
        assert not [name for name in others if f"words for {name}" in seen.body]


def has_waited(back: Back, agent: Agent) -> None:
    """See that nothing was started in a pane whose conversation is not certain, and start it."""
    row = back.row(agent)
    assert (row["action"], row["result"]) == ("resume", "unverified"), row
    assert "not certain; Enter in the pane resumes it" in row["why"]
    assert "Enter in the pane resumes it" in agent.screen()
    press_enter(agent)


def test_what_is_not_certain_waits_and_is_the_right_one(stage: Stage) -> None:
    """Without hooks these cannot be told apart from another in their directory, and nobody starts them but a person."""
    live_at_home(stage)
    agents = start_all(stage, can_run(("codex", "gemini", "hermes", "qwen")))
    for which in ("first", "second"):
        answers_to({agent: words(agent, which) for agent in agents})
    back = crash_and_restore(stage, agents)
    assert back.code == 0, back.said
    for agent in agents:
        has_waited(back, agent)
    for agent in agents:
        wait_for_words(agent, words(agent, "first"), words(agent, "second"))
    goes_on(agents)
