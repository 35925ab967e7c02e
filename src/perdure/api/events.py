"""Events: what has happened behind a number, and, for whoever has no WebSocket, what happens next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, TypeAlias

from litestar import get
from litestar.params import QueryParameter
from msgspec import Struct

from perdure.api.asking import Limit, Who, World
from perdure.api.caller import Caller
from perdure.api.failures import failures
from perdure.api.replies import PAGE
from perdure.api.world import ApiWorld
from perdure.daemon import protocol
from perdure.errors import UsageError
from perdure.live.event_row import EventRow, event_row
from perdure.live.whose import is_event_for
from perdure.model.event import EventKind, StoredEvent
from perdure.model.run import number_of
from perdure.store.store import Store

#: The longest that is waited for the next event, in seconds.
_LONGEST_WAIT = 60.0
#: Larger numbers than any event has.
_MOST = 1 << 53
#: How many pages of the log are read for one answer, at most, where much of it is not for the caller.
_PAGES = 10

After: TypeAlias = Annotated[int, QueryParameter(ge=0, le=_MOST, description="Only what came behind this number.")]
Going: TypeAlias = Annotated[
    str | None,
    QueryParameter(pattern="^[0-9]{1,15}$", description="`next` of the page before; it goes before `after`."),
]
Wait: TypeAlias = Annotated[
    float,
    QueryParameter(ge=0, le=_LONGEST_WAIT, description="Where nothing is there yet, wait for so many seconds."),
]
OfRun: TypeAlias = Annotated[str | None, QueryParameter(max_length=20, description="Only what is about this run.")]
Kinds: TypeAlias = Annotated[
    list[EventKind] | None, QueryParameter(max_items=len(EventKind), description="Only of these kinds.")
]


class EventPage(Struct, frozen=True, kw_only=True):
    """Events in their order. Whoever goes on behind `after` misses nothing and gets nothing twice."""

    items: list[EventRow]
    #: `after` as a text when there is more at this moment, to be given as `cursor`; else null.
    next: str | None
    #: How far was read: the number to go on behind, now or later.
    after: int
    #: The number of the last event there is.
    last: int


class _Asked(Struct, frozen=True, kw_only=True):
    run: str | None
    kinds: tuple[EventKind, ...]
    limit: int


@get("/api/events", responses=failures())
async def list_events(
    world: World,
    caller: Who,
    after: After = 0,
    limit: Limit = PAGE,
    run: OfRun = None,
    kind: Kinds = None,
    wait: Wait = 0.0,
    cursor: Going = None,
) -> EventPage:
    """What has happened behind a number, in order; with `wait`, as soon as something has."""
    if run is not None and number_of(run) is None:
        raise UsageError(f"{run!r} is not the id of a run, such as r7.")
    asked = _Asked(run=run, kinds=tuple(kind or ()), limit=limit)
    if cursor is not None:
        after = int(cursor)
    page = await _read(world, caller, asked, after)
    if page.items or page.next is not None or not wait:
        return page
    await _something(world, caller, asked, page.after, wait)
    return await _read(world, caller, asked, page.after)


async def _read(world: ApiWorld, caller: Caller, asked: _Asked, after: int) -> EventPage:
    owner = world.ground.me.uid

    def work(store: Store) -> EventPage:
        found: list[StoredEvent] = []
        at, is_more = after, True
        # Asked first: what is stored meanwhile is read the next time.
        last = store.last_event()
        for _ in range(_PAGES):
            page = store.read_events(after=at, limit=asked.limit, run=asked.run, kinds=asked.kinds)
            is_more = len(page) == asked.limit
            for each in page:
                if len(found) == asked.limit:
                    break
                at = each.seq
                if is_event_for(each.event, caller.uid, owner=owner):
                    found.append(each)
            if len(found) == asked.limit or not is_more:
                break
        if not is_more:
            # Everything up to there was looked at, and was of another kind.
            at = max(at, last)
        return EventPage(
            items=[event_row(each) for each in found],
            next=str(at) if is_more else None,
            after=at,
            # Of what was stored meanwhile some may be told already; a number beyond the end is nobody's.
            last=max(last, found[-1].seq if found else 0),
        )

    return await world.read(work)


async def _something(world: ApiWorld, caller: Caller, asked: _Asked, after: int, seconds: float) -> None:
    """Wait until something happens that is asked for, but not for longer."""

    async def read(behind: int) -> Sequence[StoredEvent]:
        # By the daemon: from then on it tells what others have written down, too.
        return await world.answers.read_events(protocol.Events(after=behind, run=asked.run, kinds=asked.kinds))

    def wants(stored: StoredEvent) -> bool:
        event = stored.event
        return (
            asked.run in (None, event.run)
            and (not asked.kinds or event.kind in asked.kinds)
            and is_event_for(event, caller.uid, owner=world.ground.me.uid)
        )

    with world.feed.subscribe(after, read, wants) as coming:
        try:
            async with asyncio.timeout(seconds):
                async for _ in coming:
                    return
        except TimeoutError:
            return


ROUTES = (list_events,)
