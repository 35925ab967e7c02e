"""One look at one agent process: evidence is weighed in order, and every step says why it did or did not decide.

The rules every agent shares are here; where the evidence is found is each agent's own knowledge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from perdure.agents._json import decode_object
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.ports import HostView


class About(Struct, frozen=True, kw_only=True):
    """What the agent's own files say of a conversation; see `Identity` for the fields."""

    prompted: bool | None = None
    taken: bool = False
    home: str | None = None


class Trace(Struct, frozen=True, kw_only=True):
    """What one hook record says."""

    #: None: it cannot be read, so something happened that we do not know.
    conversation: str | None
    #: The process went on from this conversation to another.
    left: bool = False


#: When a conversation was last written to, and its id.
Candidate = tuple[datetime, str]
#: Reads a hook record's JSON; an empty object when it was none. None: it says nothing about where the agent is.
ReadTrace = Callable[[Mapping[str, Any]], Trace | None]


_HERE = "in this directory"


class Case:
    """The identities found so far for one process, and the reasons, which grow as evidence is weighed."""

    def __init__(
        self,
        agent: str,
        about: Callable[[str, Evidence], About],
        *,
        profile: str | None = None,
        place: str = _HERE,
    ) -> None:
        self.agent = agent
        self.profile = profile
        #: Conversations the process is known to have gone on from.
        self.left: set[str] = set()
        #: Those it may have gone on from.
        self.perhaps_left: set[str] = set()
        self._about = about
        #: Where conversations were looked for that may be this process's.
        self._place = place
        self._because: list[str] = []

    def note(self, why: str) -> None:
        """Keep a reason, once."""
        if why not in self._because:
            self._because.append(why)

    def closed(self, found: Sequence[Identity], *, fresh: bool = False) -> tuple[Identity, ...]:
        """Return what was found, best first, and last the agent without a conversation.

        `fresh`: when it is in none of these, it is in none at all, and can begin anew.
        """
        nothing = Identity(
            agent=self.agent,
            prompted=False if fresh else None,
            profile=self.profile,
            because=tuple(self._because),
            left=tuple(sorted(self.left)),
            perhaps_left=tuple(sorted(self.perhaps_left)),
        )
        return (*found, nothing)

    def claim(
        self, conversation: str, evidence: Evidence, *, certain: bool, written_at: datetime | None = None
    ) -> Identity:
        """Return the identity with this conversation, and the reasons so far."""
        about = self._about(conversation, evidence)
        return Identity(
            agent=self.agent,
            conversation=conversation,
            evidence=evidence,
            certain=certain,
            prompted=about.prompted,
            taken=about.taken,
            home=about.home,
            profile=self.profile,
            because=tuple(self._because),
            written_at=written_at,
        )

    def hooked(self, records: Iterable[tuple[datetime, bytes]], read: ReadTrace) -> list[Identity]:
        """Return the conversation of the newest record, unless that only tells which one was left.

        `records` come newest first. One that cannot be read makes what older ones say uncertain.
        """
        traces = [(at, trace) for at, raw in records if (trace := read(decode_object(raw) or {})) is not None]
        certain = True
        for place, (written, trace) in enumerate(traces):
            older = {each.conversation for _, each in traces[place + 1 :]}
            if trace.conversation is None:
                self.note("a newer hook record cannot be read")
                certain = False
            elif trace.left:
                self.left.add(trace.conversation)
            elif trace.conversation in self.left or not self.left <= older:
                # This one was left; or for one that began after it and was left in turn.
                self.note("the last hook record ends a conversation; the next one is not recorded")
                self.left.add(trace.conversation)
                return []
            else:
                self.note("the last hook record names the conversation")
                return [self.claim(trace.conversation, Evidence.HOOK, certain=certain, written_at=written)]
        self.note("no hook record of this process")
        return []

    def launched(
        self,
        conversation: str,
        others: Sequence[Candidate],
        *,
        gone: bool = False,
        lost: bool = False,
        doubtful: bool = False,
        written_at: datetime | None = None,
    ) -> list[Identity]:
        """Return the conversation the command line names, and the guesses that may speak against it.

        `gone`: the agent's files tell that the process left it since. `lost`: there is no trace of it.
        `doubtful`: not everything that may speak against it was looked at.
        """
        gone = gone or bool(self.left)
        if gone:
            self.left.add(conversation)
        self.note("the command line names a conversation")
        for doubt, why in ((gone, "it was left since the process started"), (lost, "it has no transcript")):
            if doubt:
                self.note(why)
        own = self.claim(conversation, Evidence.ARGV, certain=not (gone or lost or doubtful), written_at=written_at)
        guesses = self.guesses(others)
        return [*guesses, own] if gone else [own, *guesses]

    def guesses(self, candidates: Sequence[Candidate]) -> list[Identity]:
        """Return a guess for each conversation this process may have written, in the order given."""
        if not candidates:
            self.note(f"no conversation was written {self._place} since the process started")
            return []
        self.note("guessed by directory and time of writing" if self._place == _HERE else "guessed by time of writing")
        return [
            self.claim(conversation, Evidence.GUESS, certain=False, written_at=written)
            for written, conversation in candidates
        ]


def hook_records(agent: str, processes: Iterable[Process], host: HostView) -> list[tuple[datetime, bytes]]:
    """Return what hooks of any of these processes recorded, newest first."""
    found = [record for process in processes for record in host.hooks(agent, process)]
    return sorted(found, key=lambda record: record[0], reverse=True)
