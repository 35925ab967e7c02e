"""Observations: dated facts about a run, as they come in."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.model.identity import AgentDetails, Identity
from perdure.model.run import Confidence, Place, Program, Reason, RunState


class Source(StrEnum):
    """Who says what a run is doing."""

    #: What the agent keeps about itself while it lives.
    REGISTRY = "registry"
    HOOK = "hook"
    #: The visible lines and the title.
    SCREEN = "screen"
    #: Whether the pane's shell is at its prompt, or its agent was stopped.
    PROCESS = "process"


#: The rule by which the processes say that an agent was stopped (Ctrl-Z).
STOPPED = "stopped"


class Reading(Struct, frozen=True, kw_only=True, tag=True):
    """What one source says. A state of None: it was looked at, and cannot tell."""

    source: Source
    #: When what it says became so, as far as that is known: a hook's time, not that of reading it.
    at: datetime
    state: RunState | None = None
    reason: Reason | None = None
    #: Which rule, event or field decided.
    rule: str = ""
    confidence: Confidence = Confidence.HIGH
    #: A viewer covers the agent: what it is doing stays what it was.
    frozen: bool = False

    @property
    def cause(self) -> str:
        """What a status says decided."""
        return f"{self.source}:{self.rule}" if self.rule else str(self.source)


class Sighted(Struct, frozen=True, kw_only=True, tag=True):
    """A pane as tmux has it."""

    place: Place
    title: str = ""
    command: str = ""
    cwd: str = ""
    attached: int = 0
    #: Whether a client that somebody uses shows this very pane; None: nobody looked.
    watched: bool | None = None
    #: When something was last printed in it, as far as that was noticed.
    output_at: datetime | None = None


class Identified(Struct, frozen=True, kw_only=True, tag=True):
    """Who is in a pane. All None: a shell, or some program that is no agent."""

    identity: Identity | None = None
    program: Program | None = None
    #: The processes of the pane that have started it.
    launchers: tuple[Program, ...] = ()
    details: AgentDetails | None = None
    skill: str | None = None


class Ending(StrEnum):
    """What has ended."""

    #: The agent; the pane is still there.
    PROGRAM = "process_exit"
    #: The pane was there and is not any more.
    PANE = "tmux_reconcile_missing"
    #: The pane was known when Perdure started, and was not there.
    MISSING = "startup_missing_tmux"
    #: The whole server.
    SERVER = "server_died"


class Ended(Struct, frozen=True, kw_only=True, tag=True):
    """Something is over."""

    what: Ending
    #: For the agent: which process it was, where that is known. Another one may be there by now.
    program: Program | None = None
    exit_status: int | None = None
    exit_signal: int | None = None


class Watched(Struct, frozen=True, kw_only=True, tag=True):
    """A person has said that they have seen it."""


class Told(Struct, frozen=True, kw_only=True, tag=True):
    """Something was typed into it through us."""

    #: When that was begun, where it is told later: what the run has come to since then it may have come to because of it.
    at: datetime | None = None


class Answered(Struct, frozen=True, kw_only=True, tag=True):
    """Its transcript has an answer behind which nothing stands, given at this time."""

    at: datetime


class Passed(Struct, frozen=True, kw_only=True, tag=True):
    """Nothing but time."""


Observation = Reading | Sighted | Identified | Ended | Watched | Told | Answered | Passed
