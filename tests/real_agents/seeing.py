"""What Perdure makes of a real agent's screen, at the moment it is looked at."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from perdure.agents import adapters
from perdure.model.screen import Screen, State
from tests.real_agents.kit import PATIENCE, Agent


def state_of(agent: Agent, screen: str | None = None) -> State | None:
    """Return the state a screen of this agent shows, its present one when none is given; None when it cannot tell."""
    shown = agent.screen() if screen is None else screen
    (adapter,) = (each for each in adapters() if each.name == agent.program.name)
    reading = adapter.read_screen(Screen(lines=tuple(shown.split("\n")), title=agent.title()))
    return reading.state if reading else None


def wait_until(agent: Agent, state: State) -> str:
    """Wait until the agent's screen shows this state; return the screen."""
    return agent.wait_for(lambda screen: state_of(agent, screen) is state)


@contextmanager
def at_work(agent: Agent, words: str = "think") -> Iterator[None]:
    """Have the agent work until this ends, however long that takes, and come to rest then."""
    agent.type(f"[[hold]] {words}")
    wait_until(agent, State.BUSY)
    yield
    agent.stage.stub.let_go(1)
    wait_until(agent, State.IDLE)
    agent.stage.stub.let_go(0)


def allow(agent: Agent) -> None:
    """Press Enter once the agent asks, and again while it still does: a dialog takes no answer in its first moment."""
    wait_until(agent, State.ATTENTION)
    deadline = time.monotonic() + PATIENCE
    while state_of(agent) is State.ATTENTION:
        assert time.monotonic() < deadline, f"{agent.program.name} goes on asking\n{agent}"
        time.sleep(1)
        agent.keys("Enter")
        answered = time.monotonic()
        while state_of(agent) is State.ATTENTION and time.monotonic() < answered + 10:
            time.sleep(0.1)
