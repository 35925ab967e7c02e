"""Waiting for a run to come into a state, by what is published about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from perdure.errors import NoDaemon, NotReached, RunEnded, RunNotFound
from perdure.live.feed import Feed
from perdure.live.until import Outcome, checked, outcome
from perdure.model.event import Lagged, StoredEvent
from perdure.model.run import Run


async def await_state(
    feed: Feed, find: Callable[[str], Run | None], id: str, until: Collection[str], timeout: float | None
) -> Run:
    """Return the run once it is in one of these states, at once when it is already.

    Raises `RunNotFound`, `RunEnded`, or `NotReached` when the time is up. `find` is asked anew whenever something about
    the run is published: what it says is at least as new as that.
    """
    checked(until)
    last: Run | None = None
    try:
        async with asyncio.timeout(timeout):
            # Subscribed before the first look, so that nothing happens between the two. One that is dropped looks again.
            while not feed.is_closed:
                with feed.subscribe(0, _nothing, lambda stored: stored.event.run == id) as events:
                    last = _looked(find, id, until)
                    if outcome(last, until) is Outcome.REACHED:
                        return last
                    async for each in events:
                        last = _looked(find, id, until)
                        if outcome(last, until) is Outcome.REACHED:
                            return last
                        if isinstance(each, Lagged):
                            break
    except TimeoutError:
        raise not_reached(id, last, until, timeout) from None
    raise NoDaemon("The daemon ended before the run came that far.")


def ended(run: Run, until: Collection[str]) -> RunEnded:
    """Return the error for a run that has ended first."""
    return RunEnded(f"{run.id} has ended ({run.status.cause}) and was never {_any_of(until)}.", **facts(run))


def not_reached(id: str, run: Run | None, until: Collection[str], timeout: float | None) -> NotReached:
    """Return the error for a run that has not come that far in time."""
    word = run.status.word if run else "unknown"
    return NotReached(f"{id} is {word} and was not {_any_of(until)} within {timeout or 0:g} s.", **facts(run))


def facts(run: Run | None) -> dict[str, object]:
    """Return what an error says of a run besides its sentence."""
    return {} if run is None else {"run": run.id, "state": str(run.status.state), "reason": run.status.reason}


def _looked(find: Callable[[str], Run | None], id: str, until: Collection[str]) -> Run:
    run = find(id)
    if run is None:
        raise RunNotFound(f"There is no run {id!r}.")
    if outcome(run, until) is Outcome.ENDED:
        raise ended(run, until)
    return run


def _any_of(words: Collection[str]) -> str:
    return " or ".join(words)


async def _nothing(after: int) -> Sequence[StoredEvent]:
    return ()
