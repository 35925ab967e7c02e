"""What a pane shows, and what that says about the agent in it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class State(StrEnum):
    """What an agent is doing, as far as a screen can tell."""

    IDLE = "idle"
    BUSY = "busy"
    ATTENTION = "attention"
    ERROR = "error"


class Screen(Struct, frozen=True, kw_only=True):
    """The visible lines of a pane, without colours, and its title."""

    lines: tuple[str, ...]
    title: str = ""


class ScreenReading(Struct, frozen=True, kw_only=True):
    """What a screen says, by which rule. `frozen`: a viewer covers the agent, so the state stays what it was."""

    rule: str
    state: State | None = None
    #: For attention: permission, question, limit or login.
    reason: str | None = None
    frozen: bool = False
    #: How far the rule is to be trusted, from 0 to 1.
    confidence: float = 0.9
    #: What was looked at, in order, and why it did or did not decide.
    because: tuple[str, ...] = ()
