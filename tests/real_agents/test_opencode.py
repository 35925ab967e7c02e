"""The real opencode: its conversation by plugin, title and command line, its screens as they come, and back again."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing

import pytest

from perdure.agents.opencode import OpenCode
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import PATIENCE, Agent, Stage, once_written
from tests.real_agents.seeing import allow, at_work, wait_until, wait_until_untold

pytestmark = pytest.mark.real_agent
READY = "Ask anything"


def conversation(stage: Stage, words: str) -> tuple[str, str]:
    """Return the id and the title of the conversation in which this was said, as the program has written it."""
    path = stage.path(".local/share/opencode/opencode.db")
    sql = "SELECT s.id, s.title FROM session s JOIN part p ON p.session_id = s.id WHERE p.data LIKE ?"

    def look() -> tuple[str, str] | None:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            found: tuple[str, str] | None = database.execute(sql, (f"%{words}%",)).fetchone()
        return found

    return once_written(look, words)


def await_in(agent: Agent, words: str, evidence: str) -> None:
    """Wait until it is known to be where this was said."""
    # It is given another title once something was answered in it.
    agent.wait_for(lambda shown: shown == f"OC | {conversation(agent.stage, words)[1]}", where="title")
    agent.await_in(conversation(agent.stage, words)[0], evidence)


def await_nowhere(agent: Agent) -> None:
    """See that it is in no conversation, though the one it has just left may be doubted for a moment, and never certain."""
    deadline = time.monotonic() + PATIENCE
    while (found := agent.identity())["conversation"] is not None:
        assert not found["certain"], found
        assert time.monotonic() < deadline, found
        time.sleep(0.2)


def start_two(stage: Stage) -> tuple[Agent, Agent]:
    """Start two in one directory, one after the other: of two that make its database at once, one may wait for ever."""
    one, two = (stage.start("opencode", ready=READY) for _ in range(2))
    return one, two


def test_with_its_plugin_every_conversation_is_certain(stage: Stage) -> None:
    stage.configure("opencode")
    # With a plugin it looks for packages before it starts, and would go on looking for a minute.
    stage.write(".npmrc", "fetch-retries=0\n")
    stage.perdure.ok("hooks", "install", "opencode")
    one, two = start_two(stage)
    one.ask("first words")
    one.ask("second words")
    two.ask("other words")
    await_in(one, "first words", "hook")
    await_in(two, "other words", "hook")

    one.new_conversation()
    one.wait_for(READY)
    await_nowhere(one)
    one.ask("after new")
    await_in(one, "after new", "hook")

    one.type("/sessions")
    wait_until_untold(one, r"Sessions +esc")
    one.write(conversation(stage, "first words")[1])
    one.wait_until_still()
    one.keys("Enter")
    one.wait_for(r"second words")
    await_in(one, "first words", "title")
    await_in(two, "other words", "hook")


def test_without_it_the_title_tells_and_the_command_line_when_it_is_back(stage: Stage) -> None:
    one, two = start_two(stage)
    with at_work(one):
        pass
    two.ask("other words")
    await_in(one, "think", "title")
    await_in(two, "other words", "title")
    two.new_conversation()
    two.wait_for(READY)
    await_nowhere(two)

    one.type("[[tool=touch asked]] run it")
    allow(one)
    one.wait_for(r"STUB-DONE")
    wait_until(one, State.IDLE)
    one.type("[[error=400]] fail")
    wait_until(one, State.ERROR)
    mine = conversation(stage, "think")[0]
    one.quit()

    launched = Command(argv=("opencode", "--agent", "build", "--prompt", "again"), cwd=stage.directory("alpha"))
    command = OpenCode().resume(Identity(agent="opencode", conversation=mine, prompted=True), launched)
    assert command is not None
    back = stage.start("opencode", command=command.argv, ready=r"STUB-DONE")
    await_in(back, "think", "argv")
    wait_until(back, State.ERROR)
