"""Waiting for a run to come into a state, by what is published about it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection

from perdure.errors import NoDaemon, RunNotFound
from perdure.live.ending import why_over
from perdure.live.feed import Feed
from perdure.live.until import Outcome, checked, ended, not_reached, outcome
from perdure.model.run import Run


async def await_state(
    feed: Feed, find: Callable[[], Awaitable[Run]], id: str, until: Collection[str], timeout: float | None
) -> Run:
    """Return the run once it is in one of these states, at once when it is already.

    Raises what `find` raises, `RunEnded`, `RunNotFound` when it was let go of, `NotReached` when the time is up, and `NoDaemon` when the feed closes. `find`
    is asked anew whenever something about the run is published: what it says is at least as new as that.
    """
    checked(until)
    try:
        async with asyncio.timeout(timeout):
            # Subscribed before the first look, so that nothing happens between the two; one that is dropped looks again.
            while not feed.is_closed:
                with feed.listen(lambda stored: stored.event.run == id) as events:
                    if (run := await _arrived(find, until)) is not None:
                        return run
                    async for _ in events:
                        if (run := await _arrived(find, until)) is not None:
                            return run
    except TimeoutError:
        # With next to no time nothing was looked at yet, and what is so already is so.
        run = await find()
        if _has_arrived(run, until):
            return run
        raise not_reached(run, until) from None
    raise NoDaemon("The daemon ended before the run came that far.")


async def _arrived(find: Callable[[], Awaitable[Run]], until: Collection[str]) -> Run | None:
    run = await find()
    return run if _has_arrived(run, until) else None


def _has_arrived(run: Run, until: Collection[str]) -> bool:
    if run.detached:
        raise RunNotFound(why_over(run))
    stands = outcome(run, until)
    if stands is Outcome.ENDED:
        raise ended(run, until)
    return stands is Outcome.REACHED
