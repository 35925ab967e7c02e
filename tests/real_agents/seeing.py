"""What Perdure makes of a real agent's screen, at the moment it is looked at."""

from __future__ import annotations

import re
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


def wait_until(agent: Agent, state: State, sign: str = "") -> str:
    """Wait until the agent's screen has this on it and shows this state; return the screen.

    Both at once: of a screen that is only half drawn nothing can be told.
    """
    return agent.wait_for(lambda screen: re.search(sign, screen) and state_of(agent, screen) is state)


def wait_until_untold(agent: Agent, sign: str) -> None:
    """Wait until the agent's screen has this on it and tells no state, and goes on telling none: it is drawn by then."""
    deadline, times = time.monotonic() + PATIENCE, 0
    while times < 5:
        screen = agent.screen()
        times = times + 1 if re.search(sign, screen) and state_of(agent, screen) is None else 0
        assert time.monotonic() < deadline, f"{agent.program.name}: {sign!r} is not shown, or a state is\n{agent}"
        time.sleep(0.1)


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
