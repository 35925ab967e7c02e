"""Runs: what every pane is doing, why that is known, what it shows and what it has been through."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, TypeAlias

from litestar import Response, get
from litestar.params import QueryParameter
from msgspec import Struct

from perdure.api.asking import Asked, Cursor, Id, Limit, Who, World
from perdure.api.commands import answered
from perdure.api.failures import UNCHANGED, failures
from perdure.api.panes import run_with_pane, spot_of
from perdure.api.replies import (
    PAGE,
    Page,
    Rank,
    cursor_of,
    encoded,
    etag_of,
    is_known,
    number_in,
    page_of,
    tagged,
    unchanged,
    unless_known,
    with_zone,
)
from perdure.api.run_rows import RunRow
from perdure.live.event_row import EventRow, event_row
from perdure.live.prompts import Choice, prompt_on
from perdure.live.whose import is_run_of
from perdure.model.event import EventKind, StoredEvent
from perdure.model.masked import without_keys
from perdure.model.run import Reason, Run, RunState, number_of
from perdure.model.secrets import redact_text
from perdure.model.thought import Cue, Rest, ThoughtSource, ThoughtState
from perdure.snapshots.explain import Explanation
from perdure.store.store import Store
from perdure.tmux.shown import Shown, read_shown

#: What a run has been through, of all that happens.
_TIMELINE = (
    EventKind.RUN_CREATED,
    EventKind.RUN_DELETED,
    EventKind.RUN_RETURNED,
    EventKind.STATE_CHANGED,
    EventKind.IDENTITY_CHANGED,
    EventKind.SKILL_CHANGED,
    EventKind.SEEN,
    EventKind.SENT,
)
#: How many events are read for one answer, at once and at most.
_AT_ONCE, _MOST_READ = 1000, 20_000
_LONGEST_SCROLLBACK = 50_000

States: TypeAlias = Annotated[
    list[RunState] | None, QueryParameter(name="state", max_items=10, description="Only in these states.")
]
Reasons: TypeAlias = Annotated[
    list[Reason] | None, QueryParameter(max_items=10, description="Only those that want attention for one of these.")
]
Agent: TypeAlias = Annotated[str | None, QueryParameter(max_length=100, description="Only this agent's.")]
Session: TypeAlias = Annotated[str | None, QueryParameter(max_length=500, description="Only in this session.")]
Words: TypeAlias = Annotated[
    str | None, QueryParameter(max_length=500, description="Only with all these words in what is shown of them.")
]
Over: TypeAlias = Annotated[bool, QueryParameter(description="Also those whose panes are gone.")]
EndedAfter: TypeAlias = Annotated[
    datetime | None,
    QueryParameter(description="Also those whose panes were gone later than this moment, which needs its zone."),
]
Colours: TypeAlias = Annotated[bool, QueryParameter(description="With the colours, as a terminal is told them.")]
Lines: TypeAlias = Annotated[
    int, QueryParameter(ge=1, le=_LONGEST_SCROLLBACK, description="How many lines above the visible ones, at most.")
]


class ThoughtRow(Struct, frozen=True, kw_only=True):
    """What a run is doing and why, in a line; secrets aside."""

    run: str
    at: datetime
    text: str | None
    objective: str | None
    objective_changed_at: datetime | None
    state: ThoughtState
    source: ThoughtSource
    rest: Rest
    commit_candidate: bool
    cues: tuple[Cue, ...]


class Place(Struct, frozen=True, kw_only=True):
    """A column and a line, from 0."""

    x: int
    y: int


class ScreenText(Struct, frozen=True, kw_only=True):
    """What a pane shows. As it is: whatever is on the screen is in here."""

    run: str
    cols: int
    rows: int
    cursor: Place
    title: str
    #: Whether its program has the whole screen to itself: what is above is not its own.
    alternate: bool
    #: How many lines have scrolled away and are still there.
    history: int
    lines: tuple[str, ...]


class PromptRow(Struct, frozen=True, kw_only=True):
    """What a run asks, as its screen shows it; keys on it are stars. To be handed back with the answer."""

    run: str
    #: Who asks, by the word that is in the run's row too; to be handed back with the answer.
    who: str
    state: RunState
    reason: Reason | None
    prompt: str
    #: The answers that can be told from the screen; none where that is not clear.
    choices: tuple[Choice, ...]


@get("/api/runs", responses={**failures(), **UNCHANGED})
async def list_runs(
    world: World,
    caller: Who,
    request: Asked,
    limit: Limit = PAGE,
    cursor: Cursor = None,
    states: States = None,
    reason: Reasons = None,
    agent: Agent = None,
    session: Session = None,
    q: Words = None,
    over: Over = False,
    ended_after: EndedAfter = None,
) -> Response[Page[RunRow]]:
    """Every run whose pane is there, in the order of their ids."""
    ended_after = with_zone(ended_after)
    over = over or ended_after is not None
    current = world.current
    # What the answer is made of, where that is all in memory: told without making it.
    etag = etag_of(encoded((world.began_at, current.version, caller.uid, str(request.url.query))))
    if not over and is_known(request, etag):
        return unchanged(etag)
    runs: Sequence[Run] = [run for run in current.runs if is_run_of(run, caller.uid)]
    if over:
        gone = await world.read(lambda store: store.list_runs(host=world.host, over=True, ended_after=ended_after))
        runs = [*runs, *(run for run in gone if is_run_of(run, caller.uid) and current.get(run.id) is None)]
    runs = [
        run
        for run in runs
        if (not states or run.status.state in states)
        and (not reason or run.status.reason in reason)
        and agent in (None, run.tenant and run.tenant.agent)
        and session in (None, run.place.session)
    ]
    rows = [world.rows.of(run) for run in runs]
    if q:
        words = q.lower().split()
        rows = [row for row in rows if all(word in _said_of(row) for word in words)]
    page = page_of(rows, _rank_of, limit=limit, cursor=cursor)
    return unless_known(request, page) if over else tagged(page, etag)


def _rank_of(row: RunRow) -> Rank:
    return Rank((float(number_of(row.id) or 0),), row.id)


@get("/api/runs/{id:str}", responses=failures(404))
async def one_run(world: World, caller: Who, id: Id) -> RunRow:
    """One run, over or not."""
    return world.rows.of(await world.run(id, caller))


@get("/api/runs/{id:str}/explain", responses=failures(404, 504))
async def explain(world: World, caller: Who, id: Id) -> Explanation:
    """Why a run is taken for what it is: every sign that was looked at, and what would bring it back."""
    run = await run_with_pane(world, id, caller)
    return await answered(world, Explanation, "explain", run.id, "--socket", run.server.socket, "--json")


@get("/api/runs/{id:str}/timeline", responses=failures(404))
async def timeline(world: World, caller: Who, id: Id, limit: Limit = PAGE, cursor: Cursor = None) -> Page[EventRow]:
    """What a run has been through, the latest first: its states with their reasons, its conversations, what it was told."""
    run = await world.run(id, caller)
    before = number_in(cursor)
    found = await world.read(lambda store: _timeline(store, run.id))
    older = [each for each in found if not before or each.seq < before]
    items = [event_row(each) for each in reversed(older[-limit:])]
    return Page(items=items, next=cursor_of(items[-1].seq) if len(older) > limit else None)


@get("/api/runs/{id:str}/thought", responses=failures(404))
async def thought(world: World, caller: Who, id: Id) -> ThoughtRow | None:
    """What a run is doing and why; null while nothing was thought about it."""
    run = await world.run(id, caller)
    known = run.thought
    if known is None:
        return None
    return ThoughtRow(
        run=run.id,
        at=known.at,
        text=redact_text(known.text) if known.text else None,
        objective=redact_text(known.objective) if known.objective else None,
        objective_changed_at=known.objective_changed_at,
        state=known.state,
        source=known.source,
        rest=known.rest,
        commit_candidate=known.commit_candidate,
        cues=known.cues,
    )


@get("/api/runs/{id:str}/screen", responses=failures(404, 504))
async def screen(world: World, caller: Who, id: Id, colours: Colours = False) -> ScreenText:
    """What a run's pane shows at this moment."""
    run = await run_with_pane(world, id, caller)
    return _text(run, await world.do(lambda: read_shown(spot_of(world, run), colours=colours)))


@get("/api/runs/{id:str}/scrollback", responses=failures(404, 504))
async def scrollback(world: World, caller: Who, id: Id, lines: Lines = 2000, colours: Colours = False) -> ScreenText:
    """What a run's pane shows, and what has scrolled away above it."""
    run = await run_with_pane(world, id, caller)
    return _text(run, await world.do(lambda: read_shown(spot_of(world, run), above=lines, colours=colours)))


@get("/api/runs/{id:str}/prompt", responses=failures(404, 504))
async def prompt(world: World, caller: Who, id: Id) -> PromptRow:
    """What a run asks, as its screen shows it at this moment, and the answers that can be told from it."""
    run = await run_with_pane(world, id, caller)
    shown = await world.do(lambda: read_shown(spot_of(world, run)))
    asked = prompt_on(without_keys(shown.lines, shown.cols))
    return PromptRow(
        run=run.id,
        # Of who was there before the screen was looked at: an answer that is meant for another is given to nobody.
        who=world.rows.of(run).who,
        state=run.status.state,
        reason=run.status.reason,
        prompt=asked.text,
        choices=asked.choices,
    )


def _timeline(store: Store, run: str) -> list[StoredEvent]:
    found: list[StoredEvent] = []
    after = 0
    while len(found) < _MOST_READ:
        page = store.read_events(after=after, limit=_AT_ONCE, run=run, kinds=_TIMELINE)
        found += page
        if len(page) < _AT_ONCE:
            break
        after = page[-1].seq
    return found


def _text(run: Run, shown: Shown) -> ScreenText:
    x, y = shown.cursor
    return ScreenText(
        run=run.id,
        cols=shown.cols,
        rows=shown.rows,
        cursor=Place(x=x, y=y),
        title=shown.title,
        alternate=shown.alternate,
        history=shown.history,
        lines=shown.lines,
    )


def _said_of(row: RunRow) -> str:
    said = (row.id, row.target, row.agent, row.title, row.cwd, row.command, row.user, row.branch)
    more = (row.thought, row.objective, row.task, row.conversation_title, row.state, row.reason)
    return " ".join(each for each in (*said, *more) if each).lower()


ROUTES = (list_runs, one_run, explain, timeline, thought, screen, scrollback, prompt)
