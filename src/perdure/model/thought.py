"""A thought: one line of what a run is doing and why."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from msgspec import Struct


class ThoughtState(StrEnum):
    """How the thought relates to the one before."""

    #: What the run is after has just changed.
    ACTIVE = "active"
    #: Nothing new.
    HOLDING = "holding"
    #: The run waits for a person.
    SLEEPING = "sleeping"


class ThoughtSource(StrEnum):
    """Where the words come from."""

    #: The words of before.
    CARRIED = "carry_forward"
    #: Derived here, from the transcript, the tool calls and the repository.
    DERIVED = "derived"
    MODEL = "llm"
    COMMAND = "command"


class Rest(StrEnum):
    """How awake a run is."""

    ACTIVE = "active"
    #: Nothing has happened for a little while.
    DROWSY = "drowsy"
    #: The transcript says that it waits for a person: never merely old.
    SLEEPING = "sleeping"
    #: It has ended.
    DEEP_SLEEP = "deep_sleep"


class Cue(StrEnum):
    """Something to do about a run that follows from its transcript alone."""

    AWAITING_USER = "awaiting_user"
    COMMIT_READY = "commit_ready"
    VALIDATION_MISSING = "validation_missing_after_edit"
    DIRTY_CHECK_MISSING = "dirty_check_missing"


class Delivery(Struct, frozen=True, kw_only=True):
    """Which thought of which stream was last taken: an older one never replaces a newer."""

    stream: str | None = None
    seq: int = 0


class Thought(Struct, frozen=True, kw_only=True):
    """What a run is doing, as of `at`."""

    at: datetime
    #: One line; None when there is nothing to say.
    text: str | None = None
    #: What the person asked for.
    objective: str | None = None
    #: Stays what it was until the next change.
    objective_changed_at: datetime | None = None
    #: What the objective is recognised by.
    fingerprint: str | None = None
    state: ThoughtState = ThoughtState.HOLDING
    source: ThoughtSource = ThoughtSource.CARRIED
    rest: Rest = Rest.ACTIVE
    #: Edited, checked, looked over, and not committed.
    commit_candidate: bool = False
    cues: tuple[Cue, ...] = ()
    delivery: Delivery = Delivery()
    #: Set in what is published when it could not be stored.
    unstored: bool = False
