"""The real Cline: two panes, one run by itself and one by the hub, each of its screens, and back again."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from perdure.agents.cline import Cline
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Agent, Stage, once_written
from tests.real_agents.seeing import at_work, wait_until

pytestmark = pytest.mark.real_agent

SESSIONS = ".cline/data/sessions"


def session(stage: Stage, words: str) -> dict[str, Any]:
    """Return the session that began with these words, as the program has written it."""

    def look() -> dict[str, Any] | None:
        for name in os.listdir(stage.path(SESSIONS)):
            path = stage.path(f"{SESSIONS}/{name}/{name}.json")
            with open(path, encoding="utf-8") as file:
                found: dict[str, Any] = json.load(file)
            if words in found.get("prompt", ""):
                return found
        return None

    return once_written(look, f"a session that began with {words!r}")


def await_in(agent: Agent, words: str, evidence: str) -> None:
    agent.await_in(session(agent.stage, words)["session_id"], evidence)


def test_both_panes_are_certain_whoever_runs_them(stage: Stage) -> None:
    one = stage.start("cline")
    fresh = one.certain_identity()
    assert (fresh["evidence"], fresh["certain"], fresh["prompted"]) == ("registry", True, False)
    two = stage.start("cline", size=(80, 24))
    for agent, words in ((one, "first words"), (two, "other words")):
        agent.ask(words)
        wait_until(agent, State.IDLE)
    # Which of them the hub runs depends on when it is there; its number is in neither pane.
    assert session(stage, "first words")["session_id"] == fresh["conversation"]
    await_in(one, "first words", "registry")
    await_in(two, "other words", "registry")

    for agent, words in ((one, "first after"), (two, "other after")):
        before = agent.identity()["conversation"]
        agent.new_conversation()
        agent.wait_for(r"What can I do")
        found = agent.identity()
        assert not (found["certain"] and found["conversation"] == before), found
        agent.ask(words)
        wait_until(agent, State.IDLE)
        await_in(agent, words, "registry")

    with at_work(two):
        await_in(two, "other after", "registry")
    two.type("[[tool=touch made]] run it")
    wait_until(two, State.ATTENTION)
    await_in(two, "other after", "registry")
    two.keys("y")
    two.wait_for(r"STUB-DONE")
    wait_until(two, State.IDLE)
    two.type("[[error=400]] fail")
    wait_until(two, State.ERROR)

    mine = session(stage, "other after")["session_id"]
    stage.tmux.run("kill-pane", "-t", two.pane)
    launched = Command(argv=("cline", "--auto-approve", "false", "--id", "x", "--tui"), cwd=stage.directory("alpha"))
    command = Cline().resume(Identity(agent="cline", conversation=mine, prompted=True), launched)
    assert command is not None
    back = stage.start("cline", command=command.argv, ready=r"other after")
    back.wait_for(r"Auto-approve all disabled")
    await_in(back, "other after", "registry")


def test_without_a_log_it_is_right_or_uncertain(stage: Stage) -> None:
    one, two = (stage.start("cline", env={"CLINE_LOG_ENABLED": "false"}) for _ in range(2))
    for agent, words in ((one, "first words"), (two, "other words")):
        assert not agent.identity()["certain"]
        agent.ask(words)
        wait_until(agent, State.IDLE)
    for agent, words in ((one, "first words"), (two, "other words")):
        found = agent.identity()
        assert not found["certain"] or found["conversation"] == session(stage, words)["session_id"], found
        agent.new_conversation()
        agent.wait_for(r"What can I do")
        assert not agent.identity()["certain"]
