"""The real Hermes: its conversation by hooks, worker and command line, its screens as they come, and back again."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from perdure.agents.hermes import Hermes
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Agent, Stage, once_written
from tests.real_agents.seeing import allow, at_work, wait_until

pytestmark = pytest.mark.real_agent


def asked(stage: Stage, sql: str, *values: str) -> str | None:
    """Return the first thing the program's own database answers."""
    with closing(sqlite3.connect(f"file:{stage.path('.hermes/state.db')}?mode=ro", uri=True)) as database:
        row = database.execute(sql, values).fetchone()
    return str(row[0]) if row else None


def conversation(stage: Stage, words: str) -> str:
    """Return the conversation in which this was said, as the program has written it."""
    sql = "SELECT session_id FROM messages WHERE content LIKE ? AND role = 'user'"
    return once_written(lambda: asked(stage, sql, f"%{words}%"), words)


def is_right_or_uncertain(agent: Agent, words: str) -> None:
    found = agent.identity()
    assert not found["certain"] or found["conversation"] == conversation(agent.stage, words), found


def begin_anew(agent: Agent) -> None:
    """Begin a new conversation, which has to be confirmed."""
    agent.new_conversation()
    wait_until(agent, State.ATTENTION, r"Approve Once")
    agent.type("1")
    agent.wait_for(r"New session started")
    wait_until(agent, State.IDLE)


def test_with_its_hooks_every_conversation_is_certain(stage: Stage) -> None:
    stage.configure("hermes")
    stage.perdure.ok("hooks", "install", "hermes")
    one, two = (stage.start("hermes", size=size) for size in ((120, 40), (60, 30)))
    one.ask("first words")
    one.ask("second words")
    two.ask("other words")
    for agent in (one, two):
        wait_until(agent, State.IDLE)
    first = conversation(stage, "first words")
    one.await_in(first, "hook")
    two.await_in(conversation(stage, "other words"), "hook")

    begin_anew(one)
    new = asked(stage, "SELECT id FROM sessions ORDER BY started_at DESC")
    assert new is not None
    one.await_in(new, "hook", prompted=False)
    one.type('[[call=delegate_task {"goal": "child words", "context": "none"}]] delegate')
    one.wait_for(r"ASYNC DELEGATION")
    wait_until(one, State.IDLE)
    one.await_in(new, "hook")
    two.await_in(conversation(stage, "other words"), "hook")

    one.type(f"/resume {first}")
    one.wait_for(r"Resumed session")
    is_right_or_uncertain(one, "first words")
    one.ask("back in the first")
    wait_until(one, State.IDLE)
    one.await_in(first, "hook")


def test_without_them_it_is_never_wrong_and_certain(stage: Stage) -> None:
    one, two = (stage.start("hermes", size=size) for size in ((100, 30), (80, 24)))
    with at_work(one):
        pass
    two.ask("other words")
    is_right_or_uncertain(one, "think")
    is_right_or_uncertain(two, "other words")
    begin_anew(two)
    assert not two.identity()["certain"]

    one.type("[[tool=rm -rf /nowhere/at/all]] run it")
    allow(one)
    one.wait_for(r"STUB-DONE")
    wait_until(one, State.IDLE)
    one.type("[[error=400]] fail")
    wait_until(one, State.ERROR)
    mine = conversation(stage, "think")
    one.quit()

    launched = Command(argv=("hermes", "--yolo", "--continue"), cwd=stage.directory("alpha"))
    command = Hermes().resume(Identity(agent="hermes", conversation=mine, prompted=True), launched)
    assert command is not None
    back = stage.start("hermes", command=command.argv, ready=r"Resumed session")
    wait_until(back, State.IDLE)
    back.await_in(mine, "argv")
    begin_anew(back)
    found = back.identity()
    assert found["conversation"] != mine
    assert not found["certain"]

    lost = stage.start("hermes", "--resume", "20200101_000000_abcdef", ready=r"Session not found")
    lost.await_in("20200101_000000_abcdef", "argv", certain=False, prompted=False)


def test_its_terminal_interface_has_a_worker_that_tells(stage: Stage) -> None:
    agent = stage.start("hermes", "--tui", ready=r"─ ready │")
    agent.ask("first words")
    wait_until(agent, State.IDLE)
    agent.await_in(conversation(stage, "first words"), "registry")
    agent.new_conversation()
    wait_until(agent, State.ATTENTION, r"Start a new session\?")
    agent.keys("y")
    agent.wait_for(r"new session started")
    agent.ask("after new")
    wait_until(agent, State.IDLE)
    agent.await_in(conversation(stage, "after new"), "registry")
