"""Which conversation is in a pane, and how we know."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class Evidence(StrEnum):
    """How a conversation was found, strongest first: the order decides who keeps a contested one."""

    REGISTRY = "registry"
    HOOK = "hook"
    OPEN_FILE = "open-file"
    #: What the same process (pid and start time) was certainly in when it was last saved.
    REMEMBERED = "remembered"
    ARGV = "argv"
    TITLE = "title"
    GUESS = "guess"
    #: What a restored pane waits to start: whoever is in it already holds it.
    LAUNCH = "launch"
    #: What a restore could not resume in this pane: nothing of the agent is here.
    KEPT = "kept"

    @property
    def rank(self) -> int:
        """0 for the strongest."""
        return tuple(Evidence).index(self)


class Identity(Struct, frozen=True, kw_only=True):
    """An agent in a pane, and the conversation it is in as far as the evidence goes."""

    agent: str
    #: The agent's own resumable id. None: an agent runs here, its conversation is not known.
    conversation: str | None = None
    evidence: Evidence | None = None
    #: False for a guess; a guess is shown as one and never resumed silently.
    certain: bool = False
    #: False: an id exists, but nothing was ever said, so the agent cannot resume it. None: not known.
    prompted: bool | None = None
    #: With `prompted` False: the agent keeps a file under this id all the same, so not even a fresh start may have it.
    taken: bool = False
    #: Where the conversation was started, when that differs from what the process says now.
    home: str | None = None
    #: The agent's own profile (a config home that is not the default one, a named profile).
    profile: str | None = None
    #: What was looked at, in order, and why it did or did not decide. This and what follows is for weighing claims
    #: against each other, and not kept with the identity: it would make a new snapshot of every save.
    because: tuple[str, ...] = ()
    #: For a guess: when what it rests on was last written.
    written_at: datetime | None = None
    #: Conversations the process is known to have gone on from.
    left: tuple[str, ...] = ()
    #: Conversations it may have gone on from: what was known of them is certain no longer.
    perhaps_left: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether the conversation is only kept for the pane, and nobody is in it there."""
        return self.evidence is Evidence.KEPT


class AgentDetails(Struct, frozen=True, kw_only=True):
    """What is known of the conversation right now; changes all the time, so it never makes a new snapshot."""

    title: str | None = None
    #: The last thing a person asked for.
    task: str | None = None
    model: str | None = None
    provider: str | None = None
    branch: str | None = None
    #: Where the conversation is written: a file, or the database that holds it among others.
    transcript: str | None = None
    #: Further files without which it cannot be brought back whole.
    companions: tuple[str, ...] = ()
    #: The conversation it was forked from.
    parent: str | None = None
    version: str | None = None
    #: Tokens the last request put before the model, cache included, plus its answer.
    context_used: int | None = None
    #: None when the agent does not tell; never a default.
    context_limit: int | None = None
    began_at: datetime | None = None
    last_activity_at: datetime | None = None

    @property
    def context_pct(self) -> int | None:
        """Share of the context in use, in whole percent; None when either side is unknown."""
        if self.context_used is None or not self.context_limit:
            return None
        return round(100 * self.context_used / self.context_limit)
