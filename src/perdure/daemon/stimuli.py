"""What was noticed since the last round, and what is to be watched until the next."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from perdure.host.exits import Exit
from perdure.model.run import Program


class What(StrEnum):
    """What a watch is about."""

    #: Something was printed in a pane.
    PANE = "pane"
    #: What an agent says of itself has changed.
    AGENT = "agent"
    #: A hook has left a record.
    SPOOL = "spool"
    #: Terminals come and go.
    TERMINALS = "terminals"
    #: Sockets come and go.
    SOCKETS = "sockets"
    #: Jobs come and go.
    JOBS = "jobs"
    #: A job's process has ended.
    JOB = "job"
    #: A server did something, whatever it was.
    SERVER = "server"


class Key(NamedTuple):
    """Names one watch: `id` is a run's, a job's, or a server's key."""

    what: What
    id: str = ""


class Gone(NamedTuple):
    """A process that was waited for, how it ended, and when that was heard, in seconds of the clock that only grows."""

    program: Program
    how: Exit
    at: float


class Stimuli(Struct, kw_only=True):
    """What was noticed. Emptied by the round that takes it."""

    keys: set[Key] = set()
    #: What nobody tells of, whose turn it is to be looked at.
    polled: set[Key] = set()
    #: Processes that have ended, and how.
    ended: dict[Key, Gone] = {}
    #: Something may have been missed: whatever is watched is looked at.
    everything: bool = False

    def __bool__(self) -> bool:
        return bool(self.keys or self.polled or self.ended or self.everything)

    def again(self, before: Stimuli) -> None:
        """Take back what was noticed before and came to nothing."""
        self.keys |= before.keys
        self.polled |= before.polled
        self.ended = {**before.ended, **self.ended}
        self.everything |= before.everything


class Round(Struct, frozen=True, kw_only=True):
    """What a round came to."""

    #: What is to be watched from now on, all of it.
    paths: Mapping[Key, str] = {}
    programs: Mapping[Key, Program] = {}
    #: The process numbers of servers whose doings are counted.
    servers: Mapping[Key, int] = {}
    #: Those of them that were asked something: what they did because of it is no news.
    asked: frozenset[Key] = frozenset()
    #: There are servers without a session: only a new terminal tells that they have one.
    needs_terminals: bool = False
    #: When the next round is due even if nothing happens, in seconds of the clock that only grows.
    next_at: float | None = None
