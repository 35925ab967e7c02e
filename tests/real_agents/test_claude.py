"""The real Claude Code: certain of its conversation by its registry, its screens as they come, and back after a crash."""

# ruff: noqa: RUF001

from __future__ import annotations

import json
import re
import time
from typing import Any

import psutil
import pytest

from perdure.agents.claude import Claude
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.kit import PATIENCE, Agent, Stage
from tests.real_agents.seeing import allow, at_work, wait_until, wait_until_untold

pytestmark = pytest.mark.real_agent
CLAUDE = Claude()
MANUAL = ("--permission-mode", "default")
QUESTION = {
    "question": "Which colour?",
    "header": "Colour",
    "multiSelect": False,
    "options": [{"label": "Red", "description": "warm"}, {"label": "Blue", "description": "cold"}],
}


def conversation(agent: Agent) -> str:
    """Return the conversation the program itself says it is in."""
    wait_until(agent, State.IDLE)
    agent.type("/status")
    shown = agent.wait_for(r"Session ID: +\S{36}")
    agent.keys("Escape")
    agent.wait_for(lambda screen: "Session ID: " not in screen)
    found = re.search(r"Session ID: +(\S{36})", shown)
    assert found is not None
    return found[1]


def again(agent: Agent, identity: dict[str, Any], *args: str) -> tuple[str, ...]:
    """Return the command line that brings an identity back which was saved of an agent started with `args`."""
    known = Identity(agent="claude", conversation=identity["conversation"], prompted=identity["prompted"])
    command = CLAUDE.resume(known, Command(argv=("claude", *args), cwd=agent.stage.directory("alpha")))
    assert command is not None
    return command.argv


def test_the_registry_follows_it_wherever_it_goes(stage: Stage) -> None:
    one = stage.start("claude", *MANUAL)
    first = conversation(one)
    one.await_in(first, "registry", prompted=False)
    one.ask("first words")
    one.ask("second words")
    two = stage.start("claude", *MANUAL, size=(80, 24))
    two.ask("words of another")
    one.await_in(first, "registry")
    two.await_in(conversation(two), "registry")

    one.new_conversation()
    one.wait_for(lambda screen: "second words" not in screen)
    second = conversation(one)
    assert second != first
    # The command itself stands in it, and that is enough to come back to.
    one.await_in(second, "registry")
    one.ask("after the clearing")
    one.type("/branch")
    one.wait_for(r"Branched conversation")
    branch = conversation(one)
    one.await_in(branch, "registry")
    assert one.row()["parent"] == second

    one.type("/resume")
    wait_until_untold(one, r"Resume session")
    one.keys("Escape")
    wait_until(one, State.IDLE)
    one.type(f"/resume {first}")
    one.wait_for(r"(?m)^❯ second words")
    one.await_in(first, "registry")


def test_one_handed_to_the_background_is_no_longer_certain(stage: Stage) -> None:
    """A single key does it: what goes on is a copy under another id, and the registry keeps the old one."""
    agent = stage.start("claude", *MANUAL)
    agent.ask("before the key")
    old = agent.certain_identity()
    agent.keys("Left")
    wait_until_untold(agent, r"moved to the background")
    # It shows the new screen before it writes down what it did.
    agent.wait_for(lambda screen: not agent.identity()["certain"])
    time.sleep(1)
    agent.keys("Enter")
    wait_until(agent, State.IDLE)
    agent.ask("after the key")
    found = agent.identity()
    assert found["conversation"] != old["conversation"]
    assert not found["certain"]


def test_its_screens_as_they_come_and_the_way_back_after_a_crash(stage: Stage) -> None:
    args = (*MANUAL, "--name", "the work", "a first prompt")
    agent = stage.start("claude", *args, size=(90, 32))
    agent.wait_for(r"STUB-REPLY 1\b")
    wait_until(agent, State.IDLE)
    with at_work(agent):
        agent.write("typed ahead")
        wait_until(agent, State.BUSY, r"typed ahead")
        agent.keys("C-u")
    agent.type("[[tool=touch asked]] run it")
    allow(agent)
    agent.wait_for(r"STUB-DONE")
    wait_until(agent, State.IDLE)
    agent.type(f"[[call=AskUserQuestion {json.dumps({'questions': [QUESTION]})}]] ask me")
    wait_until(agent, State.ATTENTION, r"Enter to select")
    allow(agent)
    wait_until(agent, State.IDLE)
    agent.type("[[error=500*2]] stumble")
    wait_until(agent, State.BUSY, r"Retrying in")
    wait_until(agent, State.IDLE)
    agent.type("[[error=400]] fail")
    wait_until(agent, State.ERROR)
    identity = agent.certain_identity()
    assert agent.row()["conversation_title"] == "the work"

    process = psutil.Process(agent.pid)
    stage.tmux.kill9()
    process.wait(PATIENCE)
    back = stage.start("claude", command=again(agent, identity, *args), size=(120, 60), ready=r"stub error 400")
    assert "❯ a first prompt" in back.screen()
    back.await_in(identity["conversation"], "registry")
    assert back.row()["conversation_title"] == "the work"
    # Nothing is sent again.
    time.sleep(0.5)
    assert stage.stub.prompts.count("a first prompt") == 1


def test_one_never_asked_anything_comes_back_under_its_id_wherever_it_lives(stage: Stage) -> None:
    elsewhere = {"CLAUDE_CONFIG_DIR": stage.path("elsewhere")}
    for path, text in PROGRAMS["claude"].files(stage.place).items():
        stage.write(f"elsewhere/{path}", text)
    agent = stage.start("claude", *MANUAL, env=elsewhere)
    mine = conversation(agent)
    agent.await_in(mine, "registry", prompted=False)
    identity = agent.identity()
    assert identity["profile"] == "elsewhere"
    agent.quit()
    back = stage.start("claude", command=again(agent, identity, *MANUAL), env=elsewhere)
    back.ask("at last")
    back.await_in(mine, "registry")
    assert back.row()["transcript"].startswith(stage.path("elsewhere/projects/"))
