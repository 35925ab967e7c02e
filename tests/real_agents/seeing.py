"""What Perdure makes of a real agent's screen, at the moment it is looked at."""

from __future__ import annotations

from perdure.agents import adapters
from perdure.model.screen import Screen, State
from tests.real_agents.kit import Agent


def state_of(agent: Agent, screen: str | None = None) -> State | None:
    """Return the state a screen of this agent shows, its present one when none is given; None when it cannot tell."""
    shown = agent.screen() if screen is None else screen
    (adapter,) = (each for each in adapters() if each.name == agent.program.name)
    reading = adapter.read_screen(Screen(lines=tuple(shown.split("\n")), title=agent.title()))
    return reading.state if reading else None


def wait_until(agent: Agent, state: State) -> str:
    """Wait until the agent's screen shows this state; return the screen."""
    return agent.wait_for(lambda screen: state_of(agent, screen) is state)
