"""What the tests of gemini and qwen share, as the two programs do."""

from __future__ import annotations

from perdure.agents import adapters
from perdure.model.identity import Identity
from perdure.model.process import Command
from perdure.model.screen import State
from tests.real_agents.kit import Agent, Stage, once_written
from tests.real_agents.seeing import allow, at_work, wait_until


def show_every_state(agent: Agent) -> None:
    """Let it work, ask, and fail, and see each on its screen."""
    wait_until(agent, State.IDLE)
    with at_work(agent):
        pass
    agent.type("[[tool=rm -rf nothing]] run it")
    allow(agent)
    agent.wait_for(r"STUB-DONE")
    wait_until(agent, State.IDLE)
    agent.type("[[error=400]] fail")
    wait_until(agent, State.ERROR)


def bring_back(stage: Stage, name: str, conversation: str) -> Agent:
    """Start it with the command that resumes a conversation it was started with, and see that it has it."""
    (adapter,) = (each for each in adapters() if each.name == name)
    mode = ("--approval-mode", "default")
    launched = Command(argv=(name, "--session-id", conversation, *mode, "-i", "hi"), cwd=stage.directory("alpha"))
    command = adapter.resume(Identity(agent=name, conversation=conversation, prompted=True), launched)
    assert command is not None
    assert command.argv == (name, *mode, "--resume", conversation)
    back = stage.start(name, command=command.argv, ready=r"STUB-DONE")
    # In the minute it was begun in, gemini goes on in the same file: for a second nothing counts that stands in it.
    once_written(lambda: back.identity()["prompted"] or None, f"what was said in {conversation}")
    return back
