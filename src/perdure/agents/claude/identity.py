"""Which conversation a Claude Code process is in, by the best evidence there is.

The live registry follows every /clear, /branch and /resume at once; so do hooks. The command line tells where the
process began, which is where it still is unless a trace says that it left. After that there are guesses only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from perdure.agents._case import About, Case, Trace
from perdure.agents._json import text
from perdure.agents.claude.argv import Launch, is_conversation, read_launch
from perdure.agents.claude.home import (
    config_home,
    find_transcript,
    job_conversation,
    own_directory,
    profile,
    read_registry,
    transcripts_in,
)
from perdure.agents.claude.transcript import is_closed, is_prompted, last_in, started_in
from perdure.model.identity import Evidence, Identity
from perdure.ports import HostView, Sighting

#: How many transcripts of a directory are read. Not few: one left out is one that cannot speak against a claim.
_MOST_READ = 500
#: SessionEnd reasons after which the process lives on in another conversation.
_MOVED_ON = frozenset({"clear", "resume"})

#: Last written, conversation and path of a transcript.
Transcript = tuple[datetime, str, str]
#: Evidence under which an id may exist before anything was said, so that without a transcript nothing was.
_LIVE = frozenset({Evidence.REGISTRY, Evidence.HOOK})


class Search:
    """One look at one process."""

    def __init__(self, agent: str, sighting: Sighting, host: HostView) -> None:
        self._process = sighting.process
        self._host = host
        self._home = config_home(sighting.process, host)
        self._launch = read_launch(sighting.process)
        self._case = Case(agent, self._about, profile=profile(sighting.process, host))

    def identities(self) -> Sequence[Identity]:
        """Return every identity the evidence allows, best first, the last without a conversation."""
        return self._case.closed(self._registered() or self._hooked() or self._launched_or_guessed())

    def _registered(self) -> list[Identity]:
        entry, why = read_registry(self._process, self._host)
        self._case.note(why)
        conversation = text(entry.get("sessionId")) if entry else None
        if entry is None or conversation is None or not is_conversation(conversation):
            return []
        job = text(entry.get("parkedJobId"))
        if job is not None:
            return [self._parked(conversation, job)]
        return [self._case.claim(conversation, Evidence.REGISTRY, certain=True)]

    def _parked(self, conversation: str, job: str) -> Identity:
        """The conversation was handed to the background, under a new id, and its pane shows it or any other job since.

        Which one nothing tells. The new one has no transcript before something is said in it; until then all there
        is to come back to is the old one.
        """
        self._case.note("the process has handed its conversation to a background job, and may show any")
        self._case.left.add(conversation)
        successor = job_conversation(self._home, job, self._host)
        if successor and find_transcript(self._home, successor, self._process.cwd, self._host):
            conversation = successor
        return self._case.claim(conversation, Evidence.REGISTRY, certain=False)

    def _hooked(self) -> list[Identity]:
        return self._case.hooked(self._host.hooks(self._case.agent, self._process), _trace)

    def _launched_or_guessed(self) -> list[Identity]:
        launch = self._launch
        named = launch.conversation
        if launch.job is not None:
            self._case.note("the command line names a background job")
            named = job_conversation(self._home, launch.job, self._host)
        others = [(at, found) for at, found, _ in self._candidates() if found not in (named, launch.resumed)]
        if named is None:
            self._case.note(_why_not(launch))
            return self._case.guesses(others)
        path = find_transcript(self._home, named, self._process.cwd, self._host)
        written = self._host.modified_at(path) if path else None
        # Leaving a conversation writes its costs; that is a trace of this process when it came after its start.
        gone = bool(path and written and written >= self._process.started_at and is_closed(path, self._host))
        lost = path is None and launch.given is None
        return self._case.launched(named, others, gone=gone, lost=lost, written_at=written)

    def _candidates(self) -> list[Transcript]:
        """Transcripts this process may have written, newest first; for --continue else the one it began with."""
        cwd = self._process.cwd
        if cwd is None:
            return []
        everything = transcripts_in(own_directory(self._home, cwd, self._host), self._host)
        since = [found for found in everything if found[0] >= self._process.started_at]
        agreeing = list(self._agreeing(since, cwd))
        if not agreeing and self._launch.continued:
            agreeing = list(self._agreeing(everything, cwd))[:1]
        return agreeing

    def _agreeing(self, found: list[Transcript], cwd: str) -> Iterator[Transcript]:
        here = self._host.physical(cwd)
        for transcript in found[:_MOST_READ]:
            # A conversation whose worktree is gone moves to where it was last, and keeps where it began.
            places = [place(transcript[2], self._host) for place in (started_in, last_in)]
            # One that does not tell yet is a conversation that has only just begun, perhaps here.
            if not any(places) or any(self._is_here(place, here) for place in places):
                yield transcript
            else:
                self._case.note("a transcript beside it belongs to another directory")

    def _is_here(self, path: str | None, here: str) -> bool:
        return path is not None and (path == here or self._host.physical(path) == here)

    def _about(self, conversation: str, evidence: Evidence) -> About:
        path = find_transcript(self._home, conversation, self._process.cwd, self._host)
        fresh = evidence in _LIVE or (evidence is Evidence.ARGV and self._launch.given is not None)
        prompted = is_prompted(path, self._host) if path else (False if fresh else None)
        return About(
            prompted=prompted, taken=path is not None and prompted is False, home=self._started_elsewhere(path)
        )

    def _started_elsewhere(self, path: str | None) -> str | None:
        start = started_in(path, self._host) if path else None
        cwd = self._process.cwd
        here = start == cwd or (cwd is not None and self._is_here(start, self._host.physical(cwd)))
        return None if here else start


def _trace(record: Mapping[str, Any]) -> Trace:
    conversation = text(record.get("session_id")) or ""
    left = record.get("hook_event_name") == "SessionEnd" and record.get("reason") in _MOVED_ON
    return Trace(conversation=conversation if is_conversation(conversation) else None, left=left)


def _why_not(launch: Launch) -> str:
    if launch.job is not None:
        return "the job does not tell its conversation"
    if launch.forked:
        return "--fork-session begins a conversation the command line does not name"
    if launch.continued:
        return "--continue does not say which conversation"
    return (
        "--resume without an id does not say which conversation" if launch.searched else "the command line names none"
    )
