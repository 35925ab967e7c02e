"""The real Copilot: several conversations in one process, each of its screens, and back again."""

from __future__ import annotations

import json
import os

import pytest

from perdure.agents.copilot import Copilot
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Stage, once_written
from tests.real_agents.seeing import at_work, wait_until
from tests.waiting import wait_for

pytestmark = pytest.mark.real_agent

STATE = ".copilot/session-state"


def conversation(stage: Stage, words: str) -> str:
    """Return the one conversation in which a person said this, as the program has written it."""

    def look() -> list[str] | None:
        found = []
        for name in os.listdir(stage.path(STATE)):
            path = stage.path(f"{STATE}/{name}/events.jsonl")
            if os.path.exists(path):
                with open(path, encoding="utf-8") as file:
                    events = [json.loads(line) for line in file]
                said = [event["data"]["content"] for event in events if event["type"] == "user.message"]
                found += [name] if any(words in each for each in said) else []
        return found or None

    (found,) = once_written(look, words)
    return found


def test_the_conversation_in_sight_is_certain_however_it_got_there(stage: Stage) -> None:
    one = stage.start("copilot", "--allow-tool=shell(true)", cwd=stage.repository("alpha"))
    two = stage.start("copilot", size=(60, 30))
    one.ask("first words")
    one.ask("more words")
    two.ask("other words")
    first = conversation(stage, "first words")
    one.await_in(first, "registry")
    two.await_in(conversation(stage, "other words"), "registry")
    row = one.row()
    assert (row["branch"], row["task"]) == ("trunk", "more words"), row

    # The old one stays open, locked and at work.
    one.type("[[hold]] slowly")
    wait_until(one, State.BUSY)
    one.type("/new")
    one.wait_for(r"Started a new session")
    wait_until(one, State.IDLE)
    fresh = one.certain_identity()
    assert (fresh["certain"], fresh["prompted"]) == (True, False)
    assert fresh["conversation"] not in (first, None)
    one.ask("after new")
    one.await_in(conversation(stage, "after new"), "registry")

    stage.stub.let_go(1)

    # This one has no lock before its next prompt.
    one.type(f"/resume {first}")
    one.wait_for(r"first words")
    wait_until(one, State.IDLE)
    one.await_in(first, "registry")
    one.new_conversation()
    one.wait_for(r"Started a fresh session")
    one.ask("after clear")
    one.await_in(conversation(stage, "after clear"), "registry")
    two.await_in(conversation(stage, "other words"), "registry")


def test_without_a_log_it_is_right_or_uncertain_and_comes_back(stage: Stage) -> None:
    agent = stage.start("copilot", "--log-level=none", size=(80, 24))
    fresh = agent.certain_identity()
    assert (fresh["evidence"], fresh["prompted"]) == ("open-file", False)
    agent.ask("first words")
    first = conversation(stage, "first words")
    assert first == fresh["conversation"]
    agent.await_in(first, "open-file")
    agent.type("/fork")
    agent.wait_for(r"Forked from")
    agent.identity_once(lambda found: not found["certain"])

    with at_work(agent):
        pass
    agent.type("[[tool=touch made]] run it")
    wait_until(agent, State.ATTENTION)
    agent.keys("1")
    agent.wait_for(r"STUB-DONE")
    wait_until(agent, State.IDLE)
    agent.type("[[error=400]] fail")
    wait_until(agent, State.ERROR)
    mine = conversation(stage, "run it")
    assert mine != first
    # Both are locked now, and what was certain once is no longer.
    assert not agent.identity()["certain"]
    stage.tmux.run("kill-pane", "-t", agent.pane)
    # It was the last one: a server that is just ending takes no session.
    wait_for(lambda: not stage.tmux.alive, "the end of the server")

    launched = Command(argv=("copilot", "--log-level=none", "--resume", first, "--yolo"), cwd=stage.directory("beta"))
    command = Copilot().resume(Identity(agent="copilot", conversation=mine, prompted=True), launched)
    assert command is not None
    back = stage.start("copilot", command=command.argv, cwd=stage.directory("beta"))
    back.wait_for(r"run it")
    wait_until(back, State.IDLE)
    # Before its first prompt there is no lock.
    back.await_in(mine, "argv")
