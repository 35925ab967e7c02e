"""What somebody waits for: states and reasons by their words. Pure."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum

from perdure.errors import NotReached, RunEnded, UsageError
from perdure.live.because import because
from perdure.model.run import Reason, Run, RunState, Status

#: Every word that can be waited for.
WORDS = tuple(dict.fromkeys([*map(str, RunState), *map(str, Reason)]))


class Outcome(StrEnum):
    """How waiting stands."""

    REACHED = "reached"
    #: It has ended, and was not waited for to do so.
    ENDED = "ended"
    WAITING = "waiting"


def words_of(text: str) -> tuple[str, ...]:
    """Return the states in `idle,permission`, each once. Raises `UsageError`."""
    words = tuple(dict.fromkeys(word.strip() for word in text.split(",")))
    checked(words)
    return words


def checked(words: Collection[str]) -> None:
    """Raise `UsageError` unless these are words that can be waited for, and at least one."""
    for word in words or ("",):
        if word not in WORDS:
            raise UsageError(f"{word!r} is no state to wait for; there are {', '.join(WORDS)}.")


def is_reached(status: Status, words: Collection[str]) -> bool:
    """Return whether one of the words is true of a status. Who has done what it was asked is idle, seen or not."""
    return status.state in words or status.reason in words or (RunState.IDLE in words and status.waits)


def outcome(run: Run, words: Collection[str]) -> Outcome:
    """Return how waiting for a run stands. What one that is over was before counts for nothing, except that it had exited."""
    is_so = not run.is_over or run.status.state is RunState.EXITED
    if is_so and is_reached(run.status, words):
        return Outcome.REACHED
    return Outcome.ENDED if run.is_over or run.status.state is RunState.EXITED else Outcome.WAITING


def ended(run: Run, words: Collection[str]) -> RunEnded:
    """Return the error for a run that has ended first."""
    why = because(run.status.cause)
    return RunEnded(f"{run.id} has ended and was not {_any_of(words)}: {why[0].lower()}{why[1:]}", **_facts(run))


def not_reached(run: Run, words: Collection[str]) -> NotReached:
    """Return the error for a run that has not come that far in time."""
    return NotReached(f"{run.id} is {run.status.word} and was not {_any_of(words)} in time.", **_facts(run))


def _facts(run: Run) -> dict[str, object]:
    return {"run": run.id, "target": run.place.target, "state": run.status.state, "reason": run.status.reason}


def _any_of(words: Collection[str]) -> str:
    return " or ".join(words)
