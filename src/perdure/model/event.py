"""Events: what has happened, in the past tense, in the order it was written down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct


class EventKind(StrEnum):
    """What can have happened."""

    RUN_CREATED = "run_created"
    #: Its pane is gone.
    RUN_DELETED = "run_deleted"
    #: A run that had ended, or was taken for it, is there again.
    RUN_RETURNED = "run_returned"
    STATE_CHANGED = "state_changed"
    IDENTITY_CHANGED = "identity_changed"
    TITLE_CHANGED = "title_changed"
    SKILL_CHANGED = "skill_changed"
    THOUGHT = "thought"
    SEEN = "seen"
    SENT = "sent"
    SAVED = "saved"
    SERVER_APPEARED = "server_appeared"
    SERVER_DIED = "server_died"
    #: A server answers, or does not, unlike before.
    SERVER_HEALTH = "server_health"
    #: A restore that was asked for has begun, or come further.
    RESTORING = "restoring"
    RESTORED = "restored"
    #: A job's process was there.
    JOB_STARTED = "job_started"
    JOB_ENDED = "job_ended"
    #: It printed what somebody wanted to be told of.
    JOB_OUTPUT = "job_output"
    #: Something about being told of it has changed.
    JOB_NOTE = "job_note"
    CHAT_OPENED = "chat_opened"
    CHAT_CLOSED = "chat_closed"
    #: A chat that was closed is gone on with.
    CHAT_RESUMED = "chat_resumed"
    CHAT_TITLED = "chat_titled"
    #: Something was said in a chat; what, only the chat tells.
    CHAT_SAID = "chat_said"
    #: Some of what was said in a chat was taken back, or replaced.
    CHAT_TAKEN_BACK = "chat_taken_back"
    CHAT_FORGOTTEN = "chat_forgotten"
    DAEMON_STARTED = "daemon_started"
    DAEMON_STOPPED = "daemon_stopped"


class Event(Struct, frozen=True, kw_only=True):
    """One thing that has happened. `data` is plain JSON, without secrets, and depends on the kind (docs/events.md)."""

    kind: EventKind
    at: datetime
    #: The run it is about, if it is about one.
    run: str | None = None
    #: The key of the server it is about.
    server: str | None = None
    data: Mapping[str, Any] = {}


class StoredEvent(Struct, frozen=True, kw_only=True):
    """An event in its place. Numbers only grow; one that is missing was let go of with age, and never comes later."""

    seq: int
    event: Event


class Lagged(Struct, frozen=True, kw_only=True):
    """The end of a subscription that was not read fast enough. Whoever goes on behind `after` misses nothing."""

    #: The number of the last event that was delivered.
    after: int
