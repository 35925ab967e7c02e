"""Conversations known on this machine: which agent's, what about, and where each lives now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeAlias

import msgspec
from litestar import Response, get
from litestar.params import QueryParameter
from msgspec import Struct

from perdure.api.asking import Asked, Cursor, Limit, Who, World
from perdure.api.failures import UNCHANGED, failures
from perdure.api.replies import PAGE, Page, Rank, encoded, page_of, unless_known
from perdure.live.whose import is_run_of
from perdure.model.identity import AgentDetails, Identity
from perdure.model.run import Run
from perdure.model.secrets import redact_text
from perdure.model.snapshot import Snapshot
from perdure.model.topology import PaneDetails
from perdure.store.store import Store

#: Servers nobody has seen for longer are not searched.
_LATELY = timedelta(days=90)
_LONG_AGO = datetime.min.replace(tzinfo=UTC)

Words: TypeAlias = Annotated[
    str | None,
    QueryParameter(max_length=500, description="Only those with all of these words in title, task, place or id."),
]
OfAgent: TypeAlias = Annotated[str | None, QueryParameter(max_length=100, description="Only of this agent.")]
IsLive: TypeAlias = Annotated[
    bool | None, QueryParameter(description="Only those somebody is in now (true), or nobody is (false).")
]


class Home(Struct, frozen=True, kw_only=True):
    """Where a conversation lives at this moment."""

    run: str
    user: str
    socket: str
    #: `SESSION:WINDOW.PANE`
    target: str
    pane_id: str
    state: str
    reason: str | None


class Kept(Struct, frozen=True, kw_only=True):
    """The last snapshot that has a conversation, and the pane it was in."""

    snapshot: str
    pane_id: str
    last_seen_at: datetime


class ConversationRow(Struct, frozen=True, kw_only=True):
    """One conversation. What is not known is null."""

    agent: str
    conversation: str
    #: A config home of the agent's that is not the usual one.
    profile: str | None
    user: str
    #: Whether it is certain that it was this one, where it was seen last; and how that is known.
    certain: bool
    evidence: str | None
    title: str | None
    #: The last thing a person asked for.
    task: str | None
    model: str | None
    branch: str | None
    cwd: str
    transcript: str | None
    began_at: datetime | None
    last_activity_at: datetime | None
    #: null: nobody is in it now.
    now: Home | None
    #: Every run that was in it, the latest first.
    runs: tuple[str, ...]
    kept: Kept | None


@get("/api/conversations", responses={**failures(), **UNCHANGED})
async def list_conversations(
    world: World,
    caller: Who,
    request: Asked,
    q: Words = None,
    agent: OfAgent = None,
    live: IsLive = None,
    limit: Limit = PAGE,
    cursor: Cursor = None,
) -> Response[Page[ConversationRow]]:
    """Conversations of runs and of the last snapshots, the one that was active last first."""
    current = world.runs(caller)
    own = world.ground.me.uid if world.owners_only(caller) else caller.uid

    def work(store: Store) -> list[ConversationRow]:
        there = {run.id for run in current}
        over = [run for run in store.list_runs(host=world.host, over=True) if is_run_of(run, caller.uid)]
        runs = [*current, *(run for run in reversed(over) if run.id not in there)]
        uids = {own, *(run.server.uid for run in current)}
        since = world.now() - _LATELY
        servers = [each for uid in sorted(uids) for each in store.servers(host=world.host, uid=uid, seen_since=since)]
        snapshots = [found for each in servers if (found := store.latest_snapshot(each)) is not None]
        return _merged([*_of_runs(runs, there), *_of_snapshots(snapshots)])

    words = (q or "").casefold().split()
    rows = [
        row
        for row in await world.read(work)
        if agent in (None, row.agent) and live in (None, row.now is not None) and _has(row, words)
    ]
    return unless_known(request, page_of(rows, _rank_of, limit=limit, cursor=cursor))


def _of_runs(runs: Iterable[Run], there: set[str]) -> Iterator[ConversationRow]:
    for run in runs:
        identity = run.identity
        if identity is None or identity.conversation is None:
            continue
        is_in_it = run.id in there and run.program is not None and not identity.is_kept
        row = _row(identity, run.details or AgentDetails(), run.server.user, run.cwd)
        home = Home(
            run=run.id,
            user=run.server.user,
            socket=run.server.socket,
            target=run.place.target,
            pane_id=run.pane,
            state=run.status.state.value,
            reason=run.status.reason.value if run.status.reason else None,
        )
        yield msgspec.structs.replace(row, now=home if is_in_it else None, runs=(run.id,))


def _of_snapshots(snapshots: Iterable[Snapshot]) -> Iterator[ConversationRow]:
    for snapshot in snapshots:
        for pane in snapshot.topology.panes:
            identity = pane.identity
            if identity is None or identity.conversation is None:
                continue
            details = snapshot.details.panes.get(pane.id, PaneDetails()).agent or AgentDetails()
            row = _row(identity, details, snapshot.server.user, pane.cwd)
            kept = Kept(snapshot=snapshot.id, pane_id=pane.id, last_seen_at=snapshot.last_seen_at)
            yield msgspec.structs.replace(row, kept=kept)


def _row(identity: Identity, details: AgentDetails, user: str, cwd: str) -> ConversationRow:
    return ConversationRow(
        agent=identity.agent,
        conversation=identity.conversation or "",
        profile=identity.profile,
        user=user,
        certain=identity.certain,
        evidence=identity.evidence.value if identity.evidence else None,
        title=redact_text(details.title) if details.title else None,
        task=redact_text(details.task) if details.task else None,
        model=details.model,
        branch=details.branch,
        cwd=identity.home or cwd,
        transcript=details.transcript,
        began_at=details.began_at,
        last_activity_at=details.last_activity_at,
        now=None,
        runs=(),
        kept=None,
    )


def _merged(rows: Iterable[ConversationRow]) -> list[ConversationRow]:
    """Return each conversation once: what the first row of it tells, and what only later ones do."""
    found: dict[tuple[str, str, str | None, str], ConversationRow] = {}
    for row in rows:
        key = (row.user, row.agent, row.profile, row.conversation)
        before = found.get(key)
        if before is None:
            found[key] = row
            continue
        told = {name: getattr(before, name) for name in row.__struct_fields__}
        more = {name: getattr(row, name) for name, value in told.items() if value is None}
        latest = max(filter(None, (before.last_activity_at, row.last_activity_at)), default=None)
        more |= {"runs": (*before.runs, *row.runs), "last_activity_at": latest}
        found[key] = msgspec.structs.replace(before, **more)
    return list(found.values())


def _rank_of(row: ConversationRow) -> Rank:
    seen = row.last_activity_at or (row.kept.last_seen_at if row.kept else None) or _LONG_AGO
    id = encoded((row.conversation, row.agent, row.user, row.profile)).decode()
    return Rank((float(row.now is None), -seen.timestamp()), id)


def _has(row: ConversationRow, words: list[str]) -> bool:
    texts = (row.agent, row.conversation, row.title, row.task, row.cwd, row.branch, row.model, row.user)
    text = "\n".join(filter(None, texts)).casefold()
    return all(word in text for word in words)


ROUTES = (list_conversations,)
