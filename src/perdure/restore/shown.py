"""A restore as programs get to see it: what `perdure restore --json` prints, and how far it has come meanwhile."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct

from perdure.model.masked import without_keys
from perdure.model.plan import AGENT_ACTIONS, Outcome, Result
from perdure.model.secrets import redact_argv, redact_text
from perdure.model.server import Server


class StepRow(Struct, frozen=True, kw_only=True):
    """What becomes of one pane, or became of it, secrets aside."""

    n: int
    target: str
    action: str
    agent: str | None
    conversation: str | None
    argv: tuple[str, ...]
    cwd: str
    result: str
    why: str
    user: str
    socket: str
    #: The pane's id now.
    pane: str | None
    #: The last lines of a pane something is wrong with.
    screen: tuple[str, ...]


class Summary(Struct, frozen=True, kw_only=True):
    """How many panes came to what."""

    panes: int = 0
    created: int = 0
    resumed: int = 0
    verified: int = 0
    skipped: int = 0
    failed: int = 0


class Trouble(Struct, frozen=True, kw_only=True):
    """Why nothing is brought back on one server; it is nobody else's trouble."""

    user: str
    socket: str
    message: str
    code: int


class LeftOut(Struct, frozen=True, kw_only=True):
    """A conversation that was saved and that a restore does not bring back by itself, with what would."""

    user: str
    socket: str
    #: The snapshot it is in, and where it was in that.
    snapshot: str
    target: str
    agent: str
    conversation: str
    #: Why it is not brought back, as the rest of a sentence that begins with it.
    why: str
    #: The command that brings it back.
    argv: tuple[str, ...]
    #: Another pane is where it was: the command does nothing about it before that is gone.
    is_taken: bool


class Restored(Struct, frozen=True, kw_only=True):
    """What a restore came to, or would come to."""

    #: The first of `snapshots`.
    snapshot: str | None
    snapshots: tuple[str, ...]
    steps: tuple[StepRow, ...]
    summary: Summary
    errors: tuple[Trouble, ...]
    left_out: tuple[LeftOut, ...] = ()


class ProgressLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `--progress`: exactly one of these is there.

    What is planned takes the place of everything planned from the same number on.
    """

    planned: tuple[StepRow, ...] | None = None
    step: StepRow | None = None
    #: Why nothing happens, or that it goes on: a sentence without its full stop.
    said: str | None = None
    #: The last line.
    restored: Restored | None = None
    #: The last line instead, when it could not be done.
    error: dict[str, Any] | None = None


def step_row(number: int, server: Server, outcome: Outcome, *, width: int) -> StepRow:
    """Return the row of an outcome; `width` is the pane's."""
    step = outcome.step
    return StepRow(
        n=number,
        target=step.target,
        action=step.action.value,
        agent=step.agent,
        conversation=step.conversation,
        argv=tuple(redact_argv(step.argv)),
        cwd=step.cwd,
        result=outcome.result.value,
        why=redact_text(outcome.why),
        user=server.user,
        socket=server.socket,
        pane=outcome.pane,
        screen=tuple(without_keys(outcome.screen, width)),
    )


def summary_of(results: Iterable[tuple[Collection[str], Iterable[Outcome]]]) -> Summary:
    """Return how many panes came to what, of what each of some restores was making and the outcomes it had."""
    summary: Counter[str] = Counter()
    for making, outcomes in results:
        for outcome in outcomes:
            came_up = outcome.result in (Result.DONE, Result.VERIFIED, Result.UNVERIFIED) and not outcome.step.asks
            summary["panes"] += 1
            summary["created"] += outcome.step.pane in making and outcome.pane is not None
            summary["resumed"] += outcome.step.action in AGENT_ACTIONS and came_up
            summary["verified"] += outcome.result is Result.VERIFIED
            summary["skipped"] += outcome.result is Result.SKIPPED
            summary["failed"] += outcome.result is Result.FAILED
    return Summary(**summary)
