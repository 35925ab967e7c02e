"""What real agents did after the last save is not lost: the first words of all, and a new conversation."""

from __future__ import annotations

import os

import pytest

from tests.real_agents.coming_back import (
    answers_to,
    crash,
    own_screen,
    prepare,
    press_enter,
    restore,
    start_all,
    targets_of,
    wait_for_words,
)
from tests.real_agents.kit import Stage

pytestmark = pytest.mark.real_agent

#: Before anything is said in it, nothing ties its conversation to the process for certain, so it is only offered.
OFFERED = ("goose",)


def test_the_first_words_came_after_the_last_save(stage: Stage) -> None:
    agents = start_all(stage, prepare(stage, ("claude", "copilot", "qwen", "cline", *OFFERED)))
    targets = targets_of(agents)
    for agent in agents:
        if agent.program.name not in OFFERED:
            agent.certain_identity()
    stage.save()
    spoken = {agent: f"late words of {agent.program.name}" for agent in agents}
    answers_to(spoken)
    crash(stage, agents)
    back = restore(stage, targets)
    for agent in agents:
        row = back.row(agent)
        is_offered = agent.program.name in OFFERED
        assert (row["action"], row["result"]) == ("resume", "unverified" if is_offered else "verified"), row
        assert "the first was said in it after the last save" in row["why"]
        if is_offered:
            press_enter(agent)
    for agent, words in spoken.items():
        wait_for_words(agent, words)
    for agent, seen in answers_to({agent: f"more {words}" for agent, words in spoken.items()}).items():
        assert f"late words of {agent.program.name}" in seen.body, agent


def test_a_new_conversation_began_after_the_last_save(stage: Stage) -> None:
    names = prepare(stage, ("claude", "gemini", "qwen"))
    # It clears its registry away as it ends, and then only a hook tells.
    os.makedirs(stage.path(".claude"), exist_ok=True)
    stage.perdure.ok("hooks", "install", "claude")
    agents = start_all(stage, names)
    answers_to({agent: f"old words of {agent.program.name}" for agent in agents})
    targets = targets_of(agents)
    stage.save()
    for agent in agents:
        agent.new_conversation()
    for agent in agents:
        agent.wait_for(lambda screen: "old words" not in screen)
        agent.wait_until_still()
    spoken = {agent: f"new words of {agent.program.name}" for agent in agents}
    answers_to(spoken)
    crash(stage, agents)
    back = restore(stage, targets)
    for agent, words in spoken.items():
        row = back.row(agent)
        assert (row["action"], row["result"]) == ("resume", "verified"), row
        assert f"it went on to {row['conversation']} after the last save" in row["why"]
        wait_for_words(agent, words)
        assert "old words" not in own_screen(agent), agent
