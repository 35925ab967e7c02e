"""Restores: what one would do, one that is done, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal, TypeAlias

from litestar import Response, get, post
from litestar.params import JSONBody
from msgspec import Meta, Struct, structs

from perdure.api.asking import Asked, Cursor, Id, Limit, Who, World
from perdure.api.caller import Caller
from perdure.api.commands import answered
from perdure.api.failures import UNCHANGED, failures
from perdure.api.past import Past, past_of
from perdure.api.replies import PAGE, Page, Rank, Reply, newest_first, page_of, unless_known
from perdure.api.restoring import Asked as Wanted
from perdure.api.restoring import Restoring, State, state_after
from perdure.api.snapshots import find, may_see
from perdure.api.world import ApiWorld
from perdure.errors import NotFound, Refused, UsageError
from perdure.live.whose import is_event_for
from perdure.model.plan import Action, Restore
from perdure.model.server import Server
from perdure.restore.shown import LeftOut, Restored, StepRow, Summary, Trouble, step_row, summary_of
from perdure.store.store import Store

#: How many restores of the journal are looked at: what happened before is seldom asked for.
_MOST = 200
#: What is done about a pane that nothing has to be done about.
_LEFT_ALONE = (Action.KEEP, Action.LEAVE)

Text: TypeAlias = Annotated[str, Meta(min_length=1, max_length=1000)]


class Order(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be brought back: everything that is missing, unless it is said otherwise."""

    #: The id of a snapshot, or the beginning of it; null: the last good one of every server.
    snapshot: Annotated[str, Meta(pattern="^[0-9a-f]{1,16}$")] | None = None
    #: Only the server on this socket; with a snapshot, the server it is brought back on.
    socket: Annotated[str, Meta(pattern="^/", max_length=4096)] | None = None
    #: Only these: SESSION[:WINDOW[.PANE]].
    targets: Annotated[tuple[Text, ...], Meta(max_length=256)] = ()
    #: Let every agent wait in its pane until Enter is pressed.
    lazy: bool = False
    #: Start every program again, or none; null: those that are configured.
    programs: Literal["all", "none"] | None = None
    max_parallel: Annotated[int, Meta(ge=1, le=64)] | None = None


class RestoreRow(Struct, frozen=True, kw_only=True):
    """A restore: one that was asked for here, or one of the journal, whoever asked for it."""

    id: str
    state: State
    #: Asked for here, over HTTP; else it is known from the journal alone.
    here: bool
    #: Who asked, where that is known.
    user: str | None
    #: The first of `snapshots`.
    snapshot: str | None
    snapshots: tuple[str, ...]
    targets: tuple[str, ...]
    began_at: datetime
    ended_at: datetime | None
    #: How many steps came to their end, of how many.
    settled: int
    total: int
    #: null until it has ended.
    summary: Summary | None
    #: Why it could not be done, or for what it waits while it runs, in a sentence.
    message: str


class RestoreShown(RestoreRow, frozen=True, kw_only=True):
    """A restore with what became of every pane."""

    steps: tuple[StepRow, ...]
    #: The servers that could not be brought back.
    errors: tuple[Trouble, ...]
    #: The conversations that are not brought back; the journal does not tell of them.
    left_out: tuple[LeftOut, ...] = ()


@post("/api/restores/plan", status_code=200, responses=failures(404, 504))
async def plan(world: World, caller: Who, data: JSONBody[Order]) -> Restored:
    """What a restore would do, pane by pane. Nothing is done."""
    wanted = await _wanted(world, caller, data)
    return await answered(world, Restored, *_words(data, "--dry-run"), "--", *wanted.targets)


@post("/api/restores", status_code=202, responses=failures(404, 409))
async def begin(world: World, caller: Who, data: JSONBody[Order]) -> Response[RestoreShown]:
    """Bring back what is missing, in the background: `GET /api/restores/{id}`, or events, tell how far it has come."""
    wanted = await _wanted(world, caller, data)
    one = world.restores.begin(wanted)
    world.logs.audit(caller, "restore", data.snapshot or "latest", restore=one.id, socket=data.socket)
    return Reply(shown(one), headers={"Location": f"/api/restores/{one.id}"}, media_type="application/json")


def _rank_of(row: RestoreRow) -> Rank:
    return newest_first(row.began_at, row.id)


@get("/api/restores", responses={**failures(), **UNCHANGED})
async def list_restores(
    world: World, caller: Who, request: Asked, limit: Limit = PAGE, cursor: Cursor = None
) -> Response[Page[RestoreRow]]:
    """Restores, the one that was begun last first: those asked for here, and those of the journal."""
    here = world.restores.known(caller)

    def work(store: Store) -> list[RestoreRow]:
        kept = store.list_restores(limit=_MOST)
        told = [
            _journalled(each)
            for each in kept
            if may_see(world, caller, each.server) and not any(_is_of(each, one, kept) for one in here)
        ]
        return [*map(_row, here), *(_without_steps(each) for each in told)]

    return unless_known(request, page_of(await world.read(work), _rank_of, limit=limit, cursor=cursor))


@get("/api/restores/{id:str}", responses={**failures(404), **UNCHANGED})
async def one_restore(world: World, caller: Who, request: Asked, id: Id) -> Response[RestoreShown]:
    """One restore, with what became of every pane so far."""
    one = world.restores.find(id, caller)
    if one is not None:
        return unless_known(request, shown(one))

    def work(store: Store) -> RestoreShown:
        kept = [each for each in store.list_restores(limit=_MOST) if may_see(world, caller, each.server)]
        for each in kept:
            if each.id == id:
                return _journalled(each)
        owner = world.ground.me.uid
        past = past_of(store, id, lambda event: is_event_for(event, caller.uid, owner=owner))
        if past is None:
            raise NotFound(f"There is no restore {id[:40]!r}.")
        return _told_of(id, past, [each for each in kept if _is_of_past(each, past, owner, kept)])

    return unless_known(request, await world.read(work))


async def _wanted(world: ApiWorld, caller: Caller, order: Order) -> Wanted:
    """Return what is to be done, once it is known that the caller may. Raises `SnapshotNotFound`, and `UsageError`."""
    if any("\0" in word for word in (*order.targets, order.socket or "")):
        raise UsageError("No target and no socket has a NUL character in it.")
    id, server = order.snapshot, None
    if id is not None:
        wanted = id
        snapshot = await world.read(lambda store: find(world, caller, store, wanted))
        id, server = snapshot.id, snapshot.server
        if order.socket not in (None, server.socket) and not world.owners_only(caller):
            # What has to be made for a socket is made by whoever runs the daemon.
            raise Refused("A snapshot of yours is brought back on its own socket only.")
    elif not world.owners_only(caller):
        # Without one it would be about whoever runs the daemon.
        raise UsageError("Say which snapshot is to be brought back.")
    uid = world.ground.me.uid if server is None else server.uid
    if server is None and order.socket is not None:
        server = Server(host=world.host, user=world.ground.me.name, uid=uid, socket=order.socket)
    return Wanted(
        words=(*_words(order, "--progress"), "--", *order.targets),
        by=caller,
        uid=uid,
        snapshot=id,
        targets=order.targets,
        server=None if server is None else server.key,
    )


def _words(order: Order, how: str) -> tuple[str, ...]:
    """Return the command, up to the targets."""
    said = {
        "--from": order.snapshot,
        "--socket": order.socket,
        "--programs": order.programs,
        "--max-parallel": order.max_parallel,
    }
    words = [f"{name}={value}" for name, value in said.items() if value is not None]
    return ("restore", "--json", how, *(["--lazy"] if order.lazy else []), *words)


def shown(one: Restoring) -> RestoreShown:
    """Return a restore that was asked for here, as far as it has come."""
    return RestoreShown(
        id=one.id,
        state=one.state,
        here=True,
        user=one.asked.by.user,
        snapshot=next(iter(one.snapshots), None),
        snapshots=one.snapshots,
        targets=one.asked.targets,
        began_at=one.began_at,
        ended_at=one.ended_at,
        settled=one.settled,
        total=len(one.steps),
        summary=one.summary,
        message=one.message,
        steps=tuple(one.steps),
        errors=one.errors,
        left_out=one.left_out,
    )


def _row(one: Restoring) -> RestoreRow:
    return _without_steps(shown(one))


def _without_steps(whole: RestoreShown) -> RestoreRow:
    return RestoreRow(**{name: getattr(whole, name) for name in RestoreRow.__struct_fields__})


def _journalled(restore: Restore) -> RestoreShown:
    """Return a restore as the journal has it. One that has no end there was interrupted, or somebody is at it."""
    outcomes = sorted(restore.outcomes.values(), key=lambda each: each.step.n)
    rows = [
        step_row(n, restore.server, outcome, width=max(map(len, outcome.screen), default=80))
        for n, outcome in enumerate(outcomes, 1)
    ]
    is_over = restore.ended_at is not None
    summary = summary_of([(restore.making, outcomes)])
    return RestoreShown(
        id=restore.id,
        state=State.INTERRUPTED if not is_over else State.PARTLY if summary.failed else State.DONE,
        here=False,
        user=restore.server.user,
        snapshot=restore.snapshot,
        snapshots=(restore.snapshot,),
        targets=(),
        began_at=restore.began_at,
        ended_at=restore.ended_at,
        settled=len(rows),
        total=max(len(rows), sum(id.startswith("%") for id in restore.making)),
        summary=summary if is_over else None,
        message="",
        steps=tuple(rows),
        errors=(),
    )


def _told_of(id: str, past: Past, journalled: Sequence[Restore]) -> RestoreShown:
    """Return a restore of a daemon that has ended: as it was told of, with what the journal has of it."""
    parts = [_journalled(each) for each in reversed(journalled)]
    steps = [step for part in parts for step in part.steps]
    is_over = bool(parts) and all(part.summary is not None for part in parts)
    if past.ended_at is not None:
        state = state_after(past.exit_code, has_result=past.summary is not None)
    else:
        # Another has gone on from there, or nobody has.
        states = {part.state for part in parts}
        state = State.INTERRUPTED if not is_over else State.PARTLY if State.PARTLY in states else State.DONE
    snapshots = tuple(dict.fromkeys(part.snapshot for part in parts if part.snapshot is not None))
    return RestoreShown(
        id=id,
        state=state,
        here=False,
        user=next((part.user for part in parts), None),
        snapshot=next(iter(snapshots), None),
        snapshots=snapshots,
        targets=(),
        began_at=past.began_at,
        ended_at=past.ended_at or (max(part.ended_at or past.began_at for part in parts) if is_over else None),
        settled=len(steps),
        total=max(len(steps), sum(part.total for part in parts)),
        summary=past.summary,
        message=past.message,
        steps=tuple(structs.replace(step, n=n) for n, step in enumerate(steps, 1)),
        errors=(),
    )


def _is_of_past(journalled: Restore, past: Past, owner: int, kept: Sequence[Restore]) -> bool:
    is_then = _is_within(journalled, past.began_at, past.until, kept)
    is_there = journalled.server.uid == owner if past.server is None else journalled.server.key == past.server
    return is_then and is_there and past.planned


def _is_of(journalled: Restore, one: Restoring, kept: Sequence[Restore]) -> bool:
    """Return whether what the journal tells is told already, by whoever asked for it here."""
    is_then = _is_within(journalled, one.began_at, one.ended_at, kept)
    if not is_then or journalled.server.uid != one.asked.uid:
        return False
    if one.state is State.RUNNING and not one.steps:
        # It may have begun in this very moment.
        return True
    # What is planned for a server is told once nobody else can be at work for its user. One that came too late for that,
    # or for which nothing was left to do, was not the one that is written down.
    there = [step.action for step in one.steps if step.socket == journalled.server.socket]
    is_gone_on_with = journalled.began_at < one.began_at
    return bool(there) and (is_gone_on_with or any(each not in _LEFT_ALONE for each in there))


def _is_within(journalled: Restore, since: datetime, until: datetime | None, kept: Sequence[Restore]) -> bool:
    """Return whether a restore was begun in this time, or was gone on with in it.

    What was interrupted ends either way when the next one works on its server. Where that has begun anew, it was not
    gone on with, and stays what it came to.
    """

    def is_then(at: datetime | None) -> bool:
        return at is not None and since <= at and (until is None or at <= until)

    if is_then(journalled.began_at):
        return True
    anew = (each for each in kept if each.id != journalled.id and each.server.key == journalled.server.key)
    return is_then(journalled.ended_at) and not any(is_then(each.began_at) for each in anew)


ROUTES = (plan, begin, list_restores, one_restore)
