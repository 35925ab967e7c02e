"""Chats of a gateway: which there are, what was said in them, what they are called; and beginning one anew."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, TypeAlias

from litestar import get, post, put
from litestar.params import JSONBody, QueryParameter
from msgspec import Meta, Struct

from perdure.api.asking import Cursor, Id, Limit, Who, World
from perdure.api.failures import failures
from perdure.api.replies import PAGE, Page, cursor_of, number_in, value_in, with_zone
from perdure.api.world import ApiWorld
from perdure.chats.mirror import mirror_in
from perdure.chats.naming import tip_of
from perdure.chats.ownership import Asker
from perdure.chats.service import Chats
from perdure.chats.shown import (
    Ancestor,
    ChatRow,
    FoundRow,
    ancestors,
    chat_row,
    found_row,
    last_turns,
    title_of,
    turn_row,
)
from perdure.chats.targets import find_chat
from perdure.chats.titles import clean_title
from perdure.errors import Conflict, PerdureError, UsageError
from perdure.model.chat import Chat, Turn
from perdure.model.secrets import redact_data
from perdure.store.store import Store
from perdure.store.words import wanted

log = logging.getLogger(__name__)

#: Positions are never larger.
_MOST = 1 << 53
#: How many turns a page has at most: they may be long.
_MOST_TURNS = 500
#: A year, in minutes.
_YEAR = 525_600

Word: TypeAlias = Annotated[str | None, QueryParameter(min_length=1, max_length=200)]
Active: TypeAlias = Annotated[
    int | None, QueryParameter(ge=1, le=_YEAR, description="Only those used within so many minutes.")
]
Query: TypeAlias = Annotated[
    str,
    QueryParameter(
        min_length=1,
        max_length=1000,
        description='All of them: words, "phrases", beginnings*, one OR another, NOT this.',
    ),
]
Best: TypeAlias = Annotated[int, QueryParameter(ge=1, le=200, description="The best so many.")]
Turns: TypeAlias = Annotated[int, QueryParameter(ge=1, le=_MOST_TURNS, description="How many turns at most.")]
Before: TypeAlias = Annotated[
    int | None, QueryParameter(ge=1, le=_MOST, description="The last turns before this position.")
]
IsLast: TypeAlias = Annotated[bool, QueryParameter(description="The last turns, instead of the first.")]
IsHidden: TypeAlias = Annotated[bool, QueryParameter(description="What was taken back, too.")]
When: TypeAlias = Annotated[datetime | None, QueryParameter(description="A moment, with its zone.")]


class Which(StrEnum):
    """Which chats are meant."""

    OPEN = "open"
    CLOSED = "closed"
    ALL = "all"


class Flush(Struct, frozen=True, kw_only=True):
    """Whether what was said was handed on."""

    flushed_at: datetime | None
    failures: int


class ChatShown(Struct, frozen=True, kw_only=True):
    """One chat, and where it comes from."""

    chat: ChatRow
    lineage: list[Ancestor]
    #: The chat it goes on in, when it was made shorter.
    continued_in: str | None
    extra: dict[str, Any]
    flush: Flush


class TurnPage(Struct, frozen=True, kw_only=True):
    """What was said, in order."""

    items: list[Turn]
    #: Asks for what was said behind these; null: nothing was.
    next: str | None
    #: Give it as `before` for what was said before these; null: nothing was.
    before: int | None


class Title(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a chat is to be called; null: nothing."""

    title: Annotated[str, Meta(min_length=1, max_length=400)] | None


class Titled(Struct, frozen=True, kw_only=True):
    """What a chat is called."""

    id: str
    title: str | None


class Renewed(Struct, frozen=True, kw_only=True):
    """The chat that was closed, and the one that was begun in its place."""

    closed: ChatRow
    begun: ChatRow


class _Place(Struct, frozen=True, array_like=True):
    """Where in the list a page ended, and how many came before."""

    used_at: datetime
    id: str
    count: int


@get("/api/chats", responses=failures())
async def list_chats(
    world: World,
    caller: Who,
    which: Annotated[Which, QueryParameter(name="state")] = Which.OPEN,
    platform: Word = None,
    user: Word = None,
    active: Active = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Page[ChatRow]:
    """Chats, the one that was used last first."""
    if not world.owners_only(caller):
        return Page(items=[])
    place = value_in(cursor, _Place)
    since = None if active is None else world.now() - timedelta(minutes=active)
    is_open = {Which.OPEN: True, Which.CLOSED: False, Which.ALL: None}[which]

    def is_meant(chat: Chat) -> bool:
        source = chat.source
        names = (source.user_id, source.user_id_alt, source.user_name)
        return platform in (None, source.platform) and (user is None or user in names) and _is_behind(chat, place)

    def work(store: Store) -> Page[ChatRow]:
        # One more than wanted, and some for those that were used since the last page. Where that is not enough, all.
        most: int | None = (place.count if place else 0) + limit + 1 + 100
        found = store.chats.list_chats(is_open=is_open, since=since, limit=most)
        meant = [chat for chat in found if is_meant(chat)]
        if len(meant) <= limit and len(found) == most:
            meant = [chat for chat in store.chats.list_chats(is_open=is_open, since=since) if is_meant(chat)]
        meant.sort(key=_order, reverse=True)
        given = meant[:limit]
        last = _Place(given[-1].touched_at, given[-1].id, (place.count if place else 0) + limit) if given else None
        return Page(items=[chat_row(chat) for chat in given], next=cursor_of(last) if len(meant) > limit else None)

    return await world.read(work)


@get("/api/chats/search", responses=failures(404))
async def search_chats(
    world: World,
    caller: Who,
    q: Query,
    platform: Word = None,
    user: Word = None,
    chat: Word = None,
    role: Word = None,
    since: When = None,
    until: When = None,
    limit: Best = 20,
) -> Page[FoundRow]:
    """What was said, by words, the best first."""
    if not world.owners_only(caller):
        return Page(items=[])
    since, until = with_zone(since), with_zone(until)
    if since is not None and until is not None and since >= until:
        raise UsageError("`since` is not before `until`.")
    terms = [term for group in wanted(q).groups for term in group]

    def work(store: Store) -> Page[FoundRow]:
        found = store.chats.search_turns(
            q,
            platform=platform,
            participant=user,
            chat=None if chat is None else find_chat(store.chats, chat).id,
            role=role,
            since=since,
            until=until,
            limit=limit,
        )
        rows = (found_row(store.chats, each, terms) for each in found)
        return Page(items=[row for row in rows if row is not None])

    return await world.read(work)


@get("/api/chats/{id:str}", responses=failures(404))
async def one_chat(world: World, caller: Who, id: Id) -> ChatShown:
    """One chat, by its id, the beginning of it, its title or its key."""
    world.refuse_others(caller, "chats")

    def work(store: Store) -> ChatShown:
        chat = find_chat(store.chats, id)
        further = store.chats.continuation_of(chat.id)
        extra = redact_data(dict(chat.extra))
        return ChatShown(
            chat=chat_row(chat),
            lineage=list(ancestors(store.chats, chat)),
            continued_in=None if further is None else further.id,
            extra=extra if isinstance(extra, dict) else {},
            flush=Flush(flushed_at=chat.flushed_at, failures=chat.flush_failures),
        )

    return await world.read(work)


@get("/api/chats/{id:str}/transcript", responses=failures(404))
async def transcript(
    world: World,
    caller: Who,
    id: Id,
    limit: Turns = 100,
    cursor: Cursor = None,
    before: Before = None,
    last: IsLast = False,
    hidden: IsHidden = False,
) -> TurnPage:
    """What was said in a chat, in order: from the beginning, or the last of it, or the last before a position."""
    world.refuse_others(caller, "chats")
    if cursor is not None and (last or before is not None):
        raise UsageError("It is either gone on behind a page, or begun at the end or before a position.")
    start = number_in(cursor) or 1

    def work(store: Store) -> TurnPage:
        chat = find_chat(store.chats, id)
        if last or before is not None:
            found = last_turns(store.chats, chat.id, limit, hidden=hidden, before=before)
        else:
            found = store.chats.load_turns(chat.id, start=start, limit=limit, hidden=hidden).turns
        behind = found[-1].position + 1 if found else (before or start)
        is_more = bool(store.chats.load_turns(chat.id, start=behind, limit=1, hidden=hidden).turns)
        first = found[0].position if found else 1
        is_less = first > 1 and bool(last_turns(store.chats, chat.id, 1, hidden=hidden, before=first))
        return TurnPage(
            items=[turn_row(turn) for turn in found],
            next=cursor_of(behind) if is_more else None,
            before=first if is_less else None,
        )

    return await world.read(work)


@put("/api/chats/{id:str}/title", responses=failures(404, 409))
async def set_title(world: World, caller: Who, id: Id, data: JSONBody[Title]) -> Titled:
    """Give a chat a title, or take it away. Another chat of the same person that has it is a conflict."""
    world.refuse_others(caller, "chats")
    if data.title is not None and clean_title(data.title) is None:
        raise UsageError("Nothing is left of this title; null takes one away.")

    def work() -> Titled:
        chats = _chats(world)
        chat = chats.set_title(Asker.OPERATOR, find_chat(chats.store, id).id, data.title or "")
        return Titled(id=chat.id, title=title_of(chat))

    titled = await world.do(work)
    world.logs.audit(caller, "chat_title", titled.id)
    return titled


@post("/api/chats/{id:str}/reset", status_code=200, responses=failures(404, 409))
async def reset(world: World, caller: Who, id: Id) -> Renewed:
    """Close an open chat, and begin another in its place."""
    world.refuse_others(caller, "chats")

    def work() -> Renewed:
        chats = _chats(world)
        chat = tip_of(chats.store, find_chat(chats.store, id))
        if not chat.is_open:
            raise Conflict(f"Chat {chat.id} is closed already.", chat=chat.id)
        begun = chats.renew(Asker.OPERATOR, chat.id)
        _follow_in_mirror(world)
        return Renewed(closed=chat_row(chats.store.get_chat(chat.id)), begun=chat_row(begun))

    renewed = await world.do(work)
    world.logs.audit(caller, "chat_reset", renewed.closed.id, begun=renewed.begun.id)
    return renewed


def _chats(world: ApiWorld) -> Chats:
    """Return the chats to be changed. Those whose jobs run are kept from being reset by themselves."""
    return Chats(world.store().chats, world.config, world.now, has_jobs=world.jobs().has_running)


def _follow_in_mirror(world: ApiWorld) -> None:
    """Bring the configured mirror up to date. What was asked for is done by then, whatever becomes of this."""
    config = world.config.chats
    if not config.legacy_dir:
        return
    try:
        mirror = mirror_in(config.legacy_dir, world.store().chats, config.keys, state_dir=world.ground.state_dir)
        failed = mirror.catch_up().failures
    except PerdureError as error:
        failed = (error.message,)
    for sentence in failed:
        log.warning("the mirror of the chats is not up to date: %s", sentence)


def _order(chat: Chat) -> tuple[datetime, str]:
    return chat.touched_at, chat.id


def _is_behind(chat: Chat, place: _Place | None) -> bool:
    return place is None or _order(chat) < (place.used_at, place.id)


ROUTES = (list_chats, search_chats, one_chat, transcript, set_title, reset)
