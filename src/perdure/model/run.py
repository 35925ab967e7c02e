"""A run: what lives in one pane, what it is doing, and how that is known.

Every pane has a run, whether an agent is in it or a shell. Its id outlives the pane's process, the tmux server and the
machine: the conversation, or else the place, that comes back takes it back. Ids are never given twice.
"""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct

from perdure.model.identity import AgentDetails, Identity
from perdure.model.server import Server, ServerProcess
from perdure.model.thought import Thought


class RunState(StrEnum):
    """What a run is doing."""

    IDLE = "idle"
    BUSY = "busy"
    #: Somebody has to do something; `Status.reason` says what about.
    ATTENTION = "attention"
    ERROR = "error"
    #: The program has ended. The pane may still be there.
    EXITED = "exited"
    #: Nothing that was looked at can tell.
    UNKNOWN = "unknown"


class Reason(StrEnum):
    """Why a run wants attention."""

    PERMISSION = "permission"
    QUESTION = "question"
    LOGIN = "login"
    LIMIT = "limit"
    #: It did what it was asked, and nobody has looked yet.
    DONE = "done"
    #: It should be doing something, and nothing has been heard from it for a long time.
    STALLED = "stalled"


class Confidence(StrEnum):
    """How far a state is to be trusted."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class Status(Struct, frozen=True, kw_only=True):
    """A state, with everything that makes it believable."""

    state: RunState = RunState.UNKNOWN
    #: For attention.
    reason: Reason | None = None
    #: What decided: a screen rule, a hook, a registry, the process; `source:name`.
    cause: str = "initial"
    confidence: Confidence = Confidence.LOW
    #: When the run came into this state.
    since: datetime
    #: When that was last seen to be so; None: it is only remembered.
    observed_at: datetime | None = None

    @property
    def word(self) -> str:
        """`idle`, `busy`, `attention(permission)` …"""
        return f"{self.state}({self.reason})" if self.reason else str(self.state)

    @property
    def waits(self) -> bool:
        """Whether the program waits for the next thing it is told, noticed or not."""
        return self.state is RunState.IDLE or self.reason is Reason.DONE


class Health(StrEnum):
    """Whether what is said of a run can be up to date."""

    HEALTHY = "healthy"
    #: Its server did not answer the last time.
    DEGRADED = "degraded"
    #: Its server has not answered for a while.
    OVERLOADED = "overloaded"
    #: Its server is gone, or nobody looks at it.
    DISCONNECTED = "disconnected"


class Place(Struct, frozen=True, kw_only=True):
    """Where in tmux a run is, by names and numbers a person knows."""

    session: str
    window: int
    pane: int
    window_name: str = ""

    @property
    def target(self) -> str:
        """`session:window.pane`."""
        return f"{self.session}:{self.window}.{self.pane}"


class Program(Struct, frozen=True, kw_only=True):
    """A process that is never mistaken for another: its number may be given again, with another start."""

    pid: int
    start_ticks: int


class Run(Struct, frozen=True, kw_only=True):
    """Everything that is known of a run; what every front end shows."""

    id: str
    server: Server
    place: Place
    #: tmux's id of the pane, good for as long as the server's process lives.
    pane: str
    status: Status
    created_at: datetime
    #: The process of the server that `pane` is an id of; None when that is not known.
    process: ServerProcess | None = None
    #: What was started in the pane: its shell, as a rule.
    first: Program | None = None
    #: The agent's process, as long as it is there.
    program: Program | None = None
    previous: Status | None = None
    identity: Identity | None = None
    #: What the conversation tells, as of when it was last read.
    details: AgentDetails | None = None
    #: The foreground program's name, and where it is.
    command: str = ""
    cwd: str = ""
    title: str = ""
    #: The last skill (or command of the agent's own) that was used in the conversation.
    skill: str | None = None
    last_activity_at: datetime | None = None
    #: When a person last had it before their eyes, as far as that is known.
    seen_at: datetime | None = None
    #: It has come to the end of a turn that nobody has seen, whatever became of it since.
    unseen: bool = False
    #: Clients of tmux that look at its session.
    attached: int = 0
    health: Health = Health.HEALTHY
    #: It was there when Perdure last ran, and has not been seen since.
    stale: bool = False
    thought: Thought | None = None
    #: The directory whose colours it has.
    theme: str | None = None
    exit_status: int | None = None
    exit_signal: int | None = None
    #: When its pane was gone, or it was let go of; what has ended may come back.
    ended_at: datetime | None = None
    #: It is over because somebody wanted it followed no longer: its pane was left as it was.
    detached: bool = False

    @property
    def agent(self) -> str | None:
        """The name of the agent that is in it, or was last."""
        return self.identity.agent if self.identity else None

    @property
    def tenant(self) -> Identity | None:
        """Who is in its pane, or is kept for it: not who was there before a shell, or something else, that is there now.

        Of a run whose pane is gone, who was in it last.
        """
        is_left = self.program is None and not self.is_over
        return None if is_left and self.identity is not None and not self.identity.is_kept else self.identity

    @property
    def occupant(self) -> Identity | None:
        """Whose process is in its pane now: neither who was there before, nor who is only kept for it."""
        return self.identity if self.program is not None else None

    @property
    def is_over(self) -> bool:
        """Whether its pane is gone, or nobody follows it any more."""
        return self.ended_at is not None


def number_of(id: str) -> int | None:
    """Return the number in a run's id, None when it is no run's id."""
    digits = id.removeprefix("r")
    return int(digits) if id.startswith("r") and digits.isascii() and digits.isdecimal() and len(digits) < 19 else None


def run_id(number: int) -> str:
    """Return the id of the run that was given this number."""
    return f"r{number}"
