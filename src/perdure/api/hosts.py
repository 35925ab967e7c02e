"""The machine the daemon watches: whose servers it has, how they are, and the colours of its repositories."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from litestar import Response, get
from msgspec import Struct

from perdure import __version__
from perdure.api.asking import Asked, Cursor, Limit, Who, World
from perdure.api.caller import Caller
from perdure.api.failures import UNCHANGED, failures
from perdure.api.replies import PAGE, Page, Rank, page_of, unless_known
from perdure.api.world import ApiWorld
from perdure.live.theme import made_up, theme_of
from perdure.model.run import Health, Run
from perdure.model.server import Server
from perdure.model.theme import RepoTheme
from perdure.store.store import Store

#: A server nobody has seen for longer is not listed.
_LATELY = timedelta(days=30)
#: How many repositories' colours are told.
_MOST_THEMES = 500


class ServerRow(Struct, frozen=True, kw_only=True):
    """A tmux server: one that answers, or one that did and is kept."""

    #: What events call it.
    key: str
    socket: str
    alive: bool
    #: healthy, degraded, overloaded or disconnected; null of one that is gone.
    health: Health | None
    #: Of tmux.
    version: str | None
    pid: int | None
    panes: int
    agents: int
    #: How many of its runs want somebody.
    attention: int
    #: The last that was kept of it.
    snapshot: str | None
    last_seen_at: datetime | None


class UserRow(Struct, frozen=True, kw_only=True):
    """Somebody who has servers here."""

    user: str
    uid: int
    servers: list[ServerRow]


class HostRow(Struct, frozen=True, kw_only=True):
    """A machine."""

    #: Its name in the store.
    host: str
    version: str
    #: Whose daemon it is.
    user: str
    users: list[UserRow]
    #: Those that `theme` of a run names, by their directory.
    themes: list[RepoTheme]


@get("/api/hosts", responses={**failures(), **UNCHANGED})
async def list_hosts(
    world: World, caller: Who, request: Asked, limit: Limit = PAGE, cursor: Cursor = None
) -> Response[Page[HostRow]]:
    """This machine, with its users, their servers, and the colours of repositories that are worked in."""
    runs = world.runs(caller)

    def work(store: Store) -> HostRow:
        servers = {run.server.key: run.server for run in runs}
        uids = {run.server.uid for run in runs} | {_own(world, caller)}
        since = world.now() - _LATELY
        known = [each for uid in uids for each in store.servers(host=world.host, uid=uid, seen_since=since)]
        servers |= {each.key: each for each in known if each.key not in servers}
        return HostRow(
            host=world.host,
            version=__version__,
            user=world.ground.me.name,
            users=_users(store, servers.values(), runs),
            themes=_themes(world, runs),
        )

    return unless_known(
        request, page_of([await world.read(work)], lambda row: Rank((), row.host), limit=limit, cursor=cursor)
    )


def _own(world: ApiWorld, caller: Caller) -> int:
    return world.ground.me.uid if world.owners_only(caller) else caller.uid


def _users(store: Store, servers: Iterable[Server], runs: list[Run]) -> list[UserRow]:
    rows: dict[int, UserRow] = {}
    for server in sorted(servers, key=lambda each: (each.uid, each.socket)):
        row = rows.setdefault(server.uid, UserRow(user=server.user, uid=server.uid, servers=[]))
        row.servers.append(_server(store, server, [run for run in runs if run.server.key == server.key]))
    return list(rows.values())


def _server(store: Store, server: Server, runs: list[Run]) -> ServerRow:
    last = next(iter(store.list_snapshots(server=server, limit=1)), None)
    process = next((run.process for run in runs if run.process is not None), None)
    health = {run.health for run in runs}
    worst = next((each for each in reversed(Health) if each in health), None)
    return ServerRow(
        key=server.key,
        socket=server.socket,
        alive=bool(runs) and worst is not Health.DISCONNECTED,
        health=worst,
        version=process.version if process else None,
        pid=process.pid if process else None,
        panes=len(runs),
        agents=sum(run.program is not None for run in runs),
        attention=sum(run.status.state == "attention" for run in runs),
        snapshot=last.id if last else None,
        last_seen_at=last.last_seen_at if last else None,
    )


def _themes(world: ApiWorld, runs: list[Run]) -> list[RepoTheme]:
    """The colours of the repositories runs work in. Of other people's files nothing is read: theirs are made up."""
    roots = {run.theme: run.server.uid for run in runs if run.theme is not None}
    view = world.around.view_of(world.ground.me)
    found = []
    for root in sorted(roots)[:_MOST_THEMES]:
        theme = theme_of(root, view) if roots[root] == world.ground.me.uid else None
        found.append(theme if theme is not None and theme.root == root else made_up(root))
    return found


ROUTES = (list_hosts,)
