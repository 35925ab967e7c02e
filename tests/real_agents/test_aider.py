"""The real aider: whose history file it is, its screens as they come, and back again."""

from __future__ import annotations

import os

import pytest

from perdure.agents.aider import Aider
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Stage
from tests.real_agents.seeing import at_work, wait_until

pytestmark = pytest.mark.real_agent
AIDER = Aider()


def test_a_file_of_its_own_is_certain_and_a_shared_one_is_not(stage: Stage) -> None:
    directory = stage.directory("alpha")
    own, shared = (os.path.join(directory, name) for name in ("mine.md", ".aider.chat.history.md"))
    one = stage.start("aider", "--chat-history-file", "mine.md")
    two = stage.start("aider", size=(80, 30))
    wait_until(one, State.IDLE)
    for agent, path, certain in ((one, own, True), (two, shared, False)):
        found = agent.identity()
        assert (found["conversation"], found["certain"], found["prompted"]) == (path, certain, False)
    one.ask("first words")
    two.ask("other words")
    wait_until(one, State.IDLE)
    one.new_conversation()
    one.wait_for(r"All chat history cleared")
    cleared = one.identity_once(lambda found: found["prompted"])
    assert (cleared["conversation"], cleared["certain"]) == (own, True)

    with at_work(two):
        one.type("/run echo from-the-tool")
        wait_until(one, State.ATTENTION)
        one.type("n")
        wait_until(one, State.IDLE)
        one.type("[[error=400]] refuse")
        wait_until(one, State.ERROR)
        assert one.row()["task"] == "[[error=400]] refuse"
    two.quit()
    one.quit()

    program = one.program
    launched = Command(argv=("aider", *program.options(stage.place), "--chat-history-file", "mine.md"), cwd=directory)
    resumed = AIDER.resume(Identity(agent="aider", conversation=own, prompted=True), launched)
    assert resumed is not None
    back = stage.start("aider", command=resumed.argv)
    back.wait_for(r"Restored previous conversation history")
    again = back.identity()
    assert (again["conversation"], again["certain"]) == (own, True)
    request = back.ask("are you there").request
    assert request.prompt.startswith("are you there")
