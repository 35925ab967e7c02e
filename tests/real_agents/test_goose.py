"""The real goose: its session by the log it holds open, its screens as they come, and back again."""

from __future__ import annotations

import re
import time

import pytest

from perdure.agents.goose import Goose
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Agent, Stage
from tests.real_agents.seeing import allow, at_work, wait_until

pytestmark = pytest.mark.real_agent
GOOSE = Goose()


def banner(agent: Agent) -> str:
    found = re.findall(r"\b\d{8}_\d+\b", agent.screen(history=True))
    assert found, agent
    return str(found[0])


def test_two_in_one_directory_are_told_apart_by_their_logs(stage: Stage) -> None:
    one = stage.start("goose", env={"GOOSE_MODE": "approve"})
    mine = banner(one)
    fresh = one.identity()
    assert (fresh["conversation"], fresh["certain"], fresh["prompted"]) == (mine, False, False)
    wait_until(one, State.IDLE)

    # Two that start in the same second share a log, which then makes neither certain.
    time.sleep(1)
    two = stage.start("goose", size=(80, 30))
    theirs = banner(two)
    assert mine != theirs
    one.ask("first words")
    two.ask("other words")
    wait_until(one, State.IDLE)
    for agent, session in ((one, mine), (two, theirs)):
        agent.await_in(session, "open-file")

    with at_work(two):
        one.type("[[tool=echo from-the-tool]] run it")
        allow(one)
        one.wait_for(r"STUB-DONE", where="history")
        wait_until(one, State.IDLE)

        one.new_conversation()
        one.wait_for(r"Chat context cleared")
        wait_until(one, State.IDLE)
        cleared = one.identity_once(lambda found: not found["prompted"])
        assert (cleared["conversation"], cleared["certain"]) == (mine, True)

    two.type("[[error=401]] refuse")
    wait_until(two, State.ERROR)
    row = two.row()
    assert row["task"] == "[[error=401]] refuse"
    two.quit()

    resumed = GOOSE.resume(Identity(agent="goose", conversation=theirs), Command(argv=("goose", "session"), cwd="/"))
    assert resumed is not None
    back = stage.start("goose", command=resumed.argv)
    assert "other words" in back.screen(history=True)
    back.await_in(theirs, "argv")
