"""Agents, started a few at a time and watched until it is known what came of each.

Fifty agents at once is how the machine died: only so many may be starting, and none starts while memory is short.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Protocol

from msgspec import Struct, structs

from perdure.model.plan import Outcome, Result, Step
from perdure.model.process import Process
from perdure.restore.judge import Seen, Verdict, is_up, judge, needs_screen

#: How long a process that should be gone is waited for.
PATIENCE = 15.0
#: How often is looked.
INTERVAL = 0.3
_LONG_AGO = datetime.min.replace(tzinfo=UTC)


class Candidate(Struct, frozen=True, kw_only=True):
    """An agent that may be started: its step, its pane now, and who was in the conversation before."""

    step: Step
    pane: str
    #: The agent's process as it was saved; it has to be gone first, or there would be two writers.
    before: Process | None = None
    #: What was last asked for.
    task: str | None = None


class Stage(Protocol):
    """What starting agents depends on. Everything here may take time, nothing raises for an agent's sake."""

    def look(self, panes: Collection[str]) -> Mapping[str, Seen]:
        """Return what is to be seen of these panes."""

    def statuses(self) -> Mapping[int, int]:
        """Return the exit statuses of the agents that have ended, by step."""

    def screen(self, candidate: Candidate, seen: Seen) -> Seen:
        """Return the same with what the pane shows."""

    def release(self, candidate: Candidate) -> str:
        """Let an agent start; return why it must not, "" when it has been."""

    def cancel(self, candidate: Candidate, why: str, *, until: Process | None = None) -> None:
        """Leave a shell in the pane of an agent that is not started, or what waits for Enter until a process has ended."""

    def is_alive(self, process: Process) -> bool:
        """Say whether this very process still runs."""

    def holder(self, candidate: Candidate) -> str:
        """Return who else is in the conversation at this moment, "" for nobody."""
        return ""

    def pressure(self) -> bool:
        """Say whether memory is so short that nothing may be started."""

    def say(self, sentence: str) -> None:
        """Tell whoever waits why nothing happens; nobody needs to listen."""

    def clock(self) -> float:
        """Return seconds that only ever grow."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


def in_order(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates with the newest activity first; where it is not known, as they stand in the snapshot."""
    return sorted(candidates, key=lambda each: each.step.active_at or _LONG_AGO, reverse=True)


class Starter:
    """Starts agents, at most `most` of them starting at once, and tells what came of each."""

    def __init__(self, stage: Stage, *, most: int, limit: float, report: Callable[[Outcome], None]) -> None:
        self._stage = stage
        self._most = most
        self._limit = limit
        self._report = report
        #: By pane: those that were let go, with the moment of it, and that nothing is known of yet.
        self._starting: dict[str, tuple[Candidate, float]] = {}
        #: Those of them that have come up. Which conversation they are in may take longer to tell.
        self._up: set[str] = set()
        self._waiting: list[Candidate] = []
        #: By pane: who is in its conversation, and since when that is known.
        self._in_use: dict[str, tuple[str, float]] = {}
        self._was_short = False

    def start(self, candidates: Sequence[Candidate], running: Sequence[Candidate] = ()) -> dict[str, Outcome]:
        """Start all of these and return what came of each, by pane of the snapshot. `running` were started before."""
        outcomes: dict[str, Outcome] = {}
        now = self._stage.clock()
        self._waiting = in_order(candidates)
        self._starting = {each.pane: (each, now) for each in running}
        while self._waiting or self._starting:
            for outcome in self._turn():
                outcomes[outcome.step.pane] = outcome
                self._report(outcome)
            if self._waiting or self._starting:
                self._stage.wait(INTERVAL)
        return outcomes

    def _turn(self) -> list[Outcome]:
        settled = [*self._watch(), *self._give_up()]
        if self._waiting and self._stage.pressure():
            if not self._was_short:
                self._stage.say(f"memory is short, so {len(self._waiting)} more agents wait until it is not")
            self._was_short = True
            return settled
        if self._waiting and self._was_short:
            self._stage.say("memory is not short any more, so those that waited are started")
        self._was_short = False
        for each in list(self._waiting):
            if len(self._starting) - len(self._up) >= self._most:
                break
            if self._is_in_use(each):
                continue
            self._waiting.remove(each)
            refusal = self._stage.release(each)
            if refusal:
                self._stage.cancel(each, refusal)
                settled.append(Outcome(step=each.step, result=Result.FAILED, why=refusal, pane=each.pane))
            else:
                self._starting[each.pane] = (each, self._stage.clock())
        return settled

    def _watch(self) -> list[Outcome]:
        """Return what came of those that are starting, as far as it is known."""
        if not self._starting:
            return []
        now = self._stage.clock()
        looks = self._stage.look(self._starting.keys())
        ended = self._stage.statuses()
        settled = []
        for pane, (each, since) in list(self._starting.items()):
            seen = structs.replace(looks.get(pane, Seen(there=False)), status=ended.get(each.step.n))
            is_late = now - since >= self._limit
            if needs_screen(each.step, seen, is_late=is_late):
                seen = self._stage.screen(each, seen)
            verdict = judge(each.step, seen, is_late=is_late, was_up=pane in self._up, task=each.task)
            if verdict is not None:
                del self._starting[pane]
                self._up.discard(pane)
                settled.append(_outcome(each, seen, verdict))
            elif is_up(each.step, seen):
                self._up.add(pane)
        return settled

    def _is_in_use(self, each: Candidate) -> bool:
        """Say whether anybody else is in the conversation now, and note since when."""
        if each.before is not None and self._stage.is_alive(each.before):
            who = f"{each.step.agent} still runs as process {each.before.pid}, outside tmux"
        elif holder := self._stage.holder(each):
            who = f"{each.step.conversation} is in use already, in {holder}"
        else:
            self._in_use.pop(each.pane, None)
            return False
        self._in_use[each.pane] = (who, self._in_use.get(each.pane, ("", self._stage.clock()))[1])
        return True

    def _give_up(self) -> list[Outcome]:
        """Return those whose conversation is still in use after all patience: they are living, and not resumed."""
        settled = []
        for each in list(self._waiting):
            who, since = self._in_use.get(each.pane, ("", self._stage.clock()))
            if self._stage.clock() - since < PATIENCE or not self._is_in_use(each):
                continue
            self._waiting.remove(each)
            until = each.before if each.before is not None and self._stage.is_alive(each.before) else None
            why = f"{who}; Enter in the pane resumes it when it has ended" if until is not None else who
            self._stage.cancel(each, why, until=until)
            settled.append(Outcome(step=each.step, result=Result.SKIPPED, why=why, pane=each.pane))
        return settled


def _outcome(each: Candidate, seen: Seen, verdict: Verdict) -> Outcome:
    wrong = verdict.result in (Result.FAILED, Result.UNVERIFIED)
    return Outcome(
        step=each.step,
        result=verdict.result,
        why=verdict.why,
        pane=each.pane if seen.there else None,
        screen=_last_lines(seen.screen or ()) if wrong else (),
    )


def _last_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """What stands lowest on a screen, without the empty lines around it."""
    return tuple(line.rstrip() for line in lines if line.strip())[-8:]
