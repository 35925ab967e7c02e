"""The real codex: its thread by lock or title, with a daemon and without, its screens as they come, and back again."""

# ruff: noqa: RUF001

from __future__ import annotations

import re

import pytest

from perdure.agents.codex import Codex
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Agent, Stage
from tests.real_agents.seeing import at_work, wait_until, wait_until_untold

pytestmark = pytest.mark.real_agent
CODEX = Codex()


def thread(agent: Agent) -> str:
    """Return the thread the program itself says it is in."""
    wait_until(agent, State.IDLE)
    before = len(re.findall(r"Session: ", agent.screen()))
    agent.type("/status")
    shown = agent.wait_for(lambda screen: len(re.findall(r"Session: +\S", screen)) > before)
    return str(re.findall(r"Session: +(\S+)", shown)[-1])


def test_without_a_daemon_the_lock_loaded_last_is_the_thread(stage: Stage) -> None:
    one = stage.start("codex", "--no-daemon")
    wait_until(one, State.IDLE)
    first = thread(one)
    one.await_in(first, "open-file", prompted=False)
    one.ask("first words")
    one.ask("second words")
    two = stage.start("codex", "--no-daemon", size=(80, 30))
    two.ask("other words")
    one.await_in(first, "open-file")
    two.await_in(thread(two), "open-file")

    one.new_conversation()
    one.wait_for(lambda screen: "second words" not in screen)
    second = thread(one)
    assert second != first
    one.await_in(second, "open-file", prompted=False)
    one.ask("in the second")
    one.type("/fork")
    one.wait_for(r"Fork created")
    forked = thread(one)
    one.await_in(forked, "open-file")
    assert one.row()["parent"] == second

    one.type("/resume")
    wait_until_untold(one, r"Resume a previous session")
    one.wait_for(r"ago +\S")
    one.write("first words")
    one.wait_until_still()
    one.keys("Enter")
    one.wait_for(r"› first words")
    one.await_in(first, "open-file")


def test_its_screens_and_the_way_back(stage: Stage) -> None:
    agent = stage.start("codex", "--no-daemon", "--search", size=(90, 30))
    wait_until(agent, State.IDLE)
    with at_work(agent):
        pass
    agent.type("[[slow=4]] [[say=one two three four five six seven eight nine ten]] stream")
    wait_until(agent, State.BUSY, r"(?m)^• one")
    wait_until(agent, State.IDLE)
    agent.type("[[tool=touch asked]] [[escalate]] run it")
    wait_until(agent, State.ATTENTION)
    agent.keys("y")
    agent.wait_for(r"STUB-DONE")
    wait_until(agent, State.IDLE)
    mine = thread(agent)
    agent.type("[[error=400]] fail")
    wait_until(agent, State.ERROR)
    identity = Identity(agent="codex", conversation=mine, prompted=True)
    agent.quit()
    launched = Command(argv=("codex", "--no-daemon", "--search", "a prompt"), cwd=stage.directory("alpha"))
    command = CODEX.resume(identity, launched)
    assert command is not None
    back = stage.start("codex", command=command.argv, ready=r"STUB-DONE")
    back.await_in(mine, "open-file")
    wait_until(back, State.ERROR)


def test_with_a_daemon_the_title_says_which_of_its_threads(stage: Stage) -> None:
    unset = stage.start("codex", size=(80, 24))
    wait_until(unset, State.IDLE)
    unset.ask("without the title")
    plain = thread(unset)
    found = unset.identity_once(lambda found: found["conversation"] == plain)
    assert not found["certain"]

    stage.perdure.ok("hooks", "install", "codex")
    one, two = (stage.start("codex") for _ in range(2))
    for agent in (one, two):
        agent.wait_for(r"[0-9a-f]{8}-[0-9a-f]{4}-", where="title")
    one.ask("words of one")
    mine, theirs = thread(one), thread(two)
    one.await_in(mine, "registry")
    two.await_in(theirs, "registry", prompted=False)

    one.new_conversation()
    one.wait_for(lambda title: mine[:20] not in title, where="title")
    new = thread(one)
    one.await_in(new, "registry", prompted=False)
    one.type("/resume")
    one.wait_for(r"ago +\S")
    one.write("words of one")
    one.wait_until_still()
    one.keys("Enter")
    one.wait_for(r"› words of one")
    one.await_in(mine, "registry")
    found = unset.identity()
    assert (found["conversation"], found["certain"]) == (plain, False)
