"""Real agents come back after `kill -9` of their server, each into its own conversation, and that is proved."""

from __future__ import annotations

import pytest

from perdure.model.screen import State
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.coming_back import (
    Back,
    answers_to,
    can_run,
    crash_and_restore,
    live_at_home,
    prepare,
    press_enter,
    start_all,
    wait_for_words,
)
from tests.real_agents.kit import Agent, Stage
from tests.real_agents.seeing import wait_until

pytestmark = pytest.mark.real_agent

#: How each tells by itself, before anybody has said a word in it, which conversation it is in. Goose does not.
OWN_WORD = {
    "claude": "registry",
    "codex": "registry",
    "gemini": "hook",
    "qwen": "hook",
    "opencode": "hook",
    "copilot": "registry",
    "cline": "registry",
    "hermes": "hook",
}
#: What else proves it. Which of them comes first depends on how busy the machine is.
SHOWN = ("known by argv, and what was last asked is on its screen", "known by argv, and its title has the same name")


def words(agent: Agent, which: str) -> str:
    return f"{which} words for {agent.program.name}"


def ask_twice(agents: list[Agent]) -> None:
    for which in ("first", "second"):
        answers_to({agent: words(agent, which) for agent in agents})


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


def test_everyone_comes_back_and_goes_on(stage: Stage) -> None:
    names = prepare(stage, PROGRAMS)
    agents = start_all(stage, names)
    ask_twice(agents)
    back = crash_and_restore(stage, agents)
    assert back.code == 0, back.said
    for agent in agents:
        name, row = agent.program.name, back.row(agent)
        if name != "aider":
            assert row["result"] == "verified", row
            assert row["why"] in (f"known by {OWN_WORD.get(name)}", *SHOWN), row
    for agent in agents:
        if agent.program.name == "aider":
            # Its file may be another's as well.
            has_waited(back, agent)
            agent.wait_for(r"Restored previous conversation history")
        else:
            wait_for_words(agent, words(agent, "first"), words(agent, "second"))
    goes_on(agents)
    again = stage.perdure.ok("restore", "--json").json
    assert {(row["action"], row["result"]) for row in again["steps"]} == {("keep", "skipped")}


def test_what_is_not_certain_waits_and_is_the_right_one(stage: Stage) -> None:
    """Without hooks these cannot be told apart from another in their directory, and nobody starts them but a person."""
    live_at_home(stage)
    agents = start_all(stage, can_run(("codex", "gemini", "hermes", "qwen")))
    ask_twice(agents)
    back = crash_and_restore(stage, agents)
    assert back.code == 0, back.said
    for agent in agents:
        has_waited(back, agent)
    for agent in agents:
        wait_for_words(agent, words(agent, "first"), words(agent, "second"))
    goes_on(agents)


def test_a_long_answer_hides_nothing(stage: Stage) -> None:
    """These have no word of their own for where they are, and what was last asked is out of sight."""
    agents = start_all(stage, prepare(stage, ("goose", "hermes", "opencode")))
    answers_to({agent: words(agent, "first") for agent in agents})
    for agent in agents:
        agent.type(f"[[long=40]] {words(agent, 'second')}")
    for agent in agents:
        agent.wait_for(r"line 40\b")
        wait_until(agent, State.IDLE)
    back = crash_and_restore(stage, agents)
    for agent in agents:
        assert back.row(agent)["result"] == "verified", back.row(agent)
        wait_for_words(agent, "line 40")
    goes_on(agents)
