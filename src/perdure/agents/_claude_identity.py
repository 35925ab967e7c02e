"""Which conversation a Claude Code process is in, by the best evidence there is.

The live registry follows every /clear, /branch and /resume at once; so do hooks. The command line tells where the
process began, which is where it still is unless a trace says that it left. After that there are guesses only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from perdure.agents._claude_argv import Launch, is_conversation, read_launch
from perdure.agents._claude_home import (
    config_home,
    find_transcript,
    own_directory,
    profile,
    read_registry,
    transcripts_in,
)
from perdure.agents._claude_transcript import is_closed, is_prompted, last_in, started_in
from perdure.agents._json import decode_object, text
from perdure.model.identity import Evidence, Identity
from perdure.ports import HostView, Sighting

#: How many transcripts of a directory are read. Not few: one left out is one that cannot speak against a claim.
_MOST_READ = 500
#: SessionEnd reasons after which the process lives on in another conversation.
_MOVED_ON = frozenset({"clear", "resume"})

Candidate = tuple[datetime, str, str]


class Search:
    """One look at one process; `because` grows as evidence is weighed."""

    def __init__(self, agent: str, sighting: Sighting, host: HostView) -> None:
        self._agent = agent
        self._process = sighting.process
        self._host = host
        self._home = config_home(sighting.process, host)
        self._profile = profile(sighting.process, host)
        self._because: list[str] = []
        self._left: set[str] = set()

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        found = self._registered() or self._hooked() or self._launched_or_guessed()
        nothing = Identity(
            agent=self._agent, profile=self._profile, because=tuple(self._because), left=tuple(sorted(self._left))
        )
        return (*found, nothing)

    def _registered(self) -> list[Identity]:
        entry, why = read_registry(self._process, self._host)
        self._note(why)
        conversation = text(entry.get("sessionId")) if entry else None
        if conversation is None or not is_conversation(conversation):
            return []
        return [self._identity(conversation, Evidence.REGISTRY, certain=True, fresh=True)]

    def _hooked(self) -> list[Identity]:
        """The conversation of the newest record, unless that only tells which one was left."""
        records = [(at, decode_object(raw) or {}) for at, raw in self._host.hooks(self._agent, self._process)]
        named = [(at, record, text(record.get("session_id")) or "") for at, record in records]
        certain = True
        for place, (written, record, conversation) in enumerate(named):
            if not is_conversation(conversation):
                self._note("a newer hook record cannot be read")
                certain = False
            elif record.get("hook_event_name") == "SessionEnd" and record.get("reason") in _MOVED_ON:
                self._left.add(conversation)
            elif conversation in self._left or not self._left <= {older for _, _, older in named[place + 1 :]}:
                # This one was left; or for one that began after it and was left in turn.
                self._note("the last hook record ends a conversation; the next one is not recorded")
                self._left.add(conversation)
                return []
            else:
                self._note("the last hook record names the conversation")
                return [self._identity(conversation, Evidence.HOOK, certain=certain, fresh=True, written_at=written)]
        self._note("no hook record of this process")
        return []

    def _launched_or_guessed(self) -> list[Identity]:
        launch = read_launch(self._process)
        conversation = launch.conversation
        others = [c for c in self._candidates(launch) if c[1] not in (conversation, launch.resumed)]
        if conversation is None:
            self._note(_why_not(launch))
            return self._guesses(others)
        return self._launched(conversation, launch, others)

    def _launched(self, conversation: str, launch: Launch, others: list[Candidate]) -> list[Identity]:
        path = find_transcript(self._home, conversation, self._process.cwd, self._host)
        written = self._host.modified_at(path) if path else None
        # Leaving a conversation writes its costs; that is a trace of this process when it came after its start.
        left = bool(self._left) or bool(
            path and written and written >= self._process.started_at and is_closed(path, self._host)
        )
        if left:
            self._left.add(conversation)
        lost = path is None and launch.given is None
        self._note("the command line names a conversation")
        for doubt, why in ((left, "it was left since the process started"), (lost, "it has no transcript")):
            if doubt:
                self._note(why)
        own = self._identity(
            conversation,
            Evidence.ARGV,
            certain=not (left or lost),
            fresh=launch.given is not None,
            written_at=written,
        )
        guesses = self._guesses(others)
        return [*guesses, own] if left else [own, *guesses]

    def _candidates(self, launch: Launch) -> list[Candidate]:
        """Transcripts this process may have written, newest first; for --continue else the one it began with."""
        cwd = self._process.cwd
        if cwd is None:
            return []
        everything = transcripts_in(own_directory(self._home, cwd, self._host), self._host)
        since = [found for found in everything if found[0] >= self._process.started_at]
        agreeing = list(self._agreeing(since, cwd))
        if not agreeing and launch.continued:
            agreeing = list(self._agreeing(everything, cwd))[:1]
        return agreeing

    def _agreeing(self, found: list[Candidate], cwd: str) -> Iterator[Candidate]:
        here = self._host.physical(cwd)
        for candidate in found[:_MOST_READ]:
            # A conversation whose worktree is gone moves to where it was last, and keeps where it began.
            places = [place(candidate[2], self._host) for place in (started_in, last_in)]
            # One that does not tell yet is a conversation that has only just begun, perhaps here.
            if not any(places) or any(self._is_here(place, here) for place in places):
                yield candidate
            else:
                self._note("a transcript beside it belongs to another directory")

    def _is_here(self, path: str | None, here: str) -> bool:
        return path is not None and (path == here or self._host.physical(path) == here)

    def _guesses(self, candidates: list[Candidate]) -> list[Identity]:
        if not candidates:
            self._note("no transcript was written in this directory since the process started")
            return []
        self._note("guessed by directory and time of writing")
        return [
            self._identity(conversation, Evidence.GUESS, certain=False, fresh=False, written_at=written)
            for written, conversation, _ in candidates
        ]

    def _identity(
        self,
        conversation: str,
        evidence: Evidence,
        *,
        certain: bool,
        fresh: bool,
        written_at: datetime | None = None,
    ) -> Identity:
        """`fresh`: the id may exist before anything was said, so that without a transcript nothing was."""
        path = find_transcript(self._home, conversation, self._process.cwd, self._host)
        prompted = is_prompted(path, self._host) if path else (False if fresh else None)
        return Identity(
            agent=self._agent,
            conversation=conversation,
            evidence=evidence,
            certain=certain,
            prompted=prompted,
            taken=path is not None and prompted is False,
            home=self._started_elsewhere(path),
            profile=self._profile,
            because=tuple(self._because),
            written_at=written_at,
        )

    def _started_elsewhere(self, path: str | None) -> str | None:
        start = started_in(path, self._host) if path else None
        cwd = self._process.cwd
        here = start == cwd or (cwd is not None and self._is_here(start, self._host.physical(cwd)))
        return None if here else start

    def _note(self, why: str) -> None:
        if why not in self._because:
            self._because.append(why)


def _why_not(launch: Launch) -> str:
    if launch.forked:
        return "--fork-session begins a conversation the command line does not name"
    if launch.continued:
        return "--continue does not say which conversation"
    return (
        "--resume without an id does not say which conversation" if launch.searched else "the command line names none"
    )
