"""Panes as rows: what `ls` and `show` print, secrets aside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from perdure.live.meant import program_of, shown_in
from perdure.model.agent_row import agent_row
from perdure.model.run import Run
from perdure.model.secrets import redact_text
from perdure.model.server import Server, ServerProcess
from perdure.model.topology import Details, Link, Pane, PaneDetails, Topology
from perdure.model.who import Who, who_is


class PaneRow(Struct, frozen=True, kw_only=True):
    """One pane, where it is first shown."""

    user: str
    socket: str
    session: str
    window: int
    window_name: str
    pane: int
    pane_id: str
    #: None, like what else is, where the server does not answer and the daemon does not keep it.
    pid: int | None
    active: bool | None
    size: str | None
    cwd: str
    command: str
    title: str
    #: A word for the very program and conversation that are told of here.
    who: str
    agent: str | None
    conversation: str | None
    certain: bool | None
    evidence: str | None
    profile: str | None
    conversation_title: str | None
    parent: str | None
    began_at: datetime | None
    last_activity_at: datetime | None
    agent_version: str | None
    model: str | None
    provider: str | None
    context_used: int | None
    context_limit: int | None
    context_pct: int | None
    task: str | None
    transcript: str | None
    branch: str | None
    prompted: bool | None
    dead: bool | None

    @property
    def address(self) -> str:
        """The pane as a person would name it."""
        return f"{self.session}:{self.window}.{self.pane}"


def pane_rows(server: Server, topology: Topology, details: Details) -> Iterator[PaneRow]:
    """Yield every pane once, in the order of sessions, windows and panes.

    A window that several sessions show is listed under the one that had it first.
    """
    windows = {window.id: window for window in topology.windows}
    names = {session.id: session.name for session in topology.sessions}
    first: dict[str, Link] = {}
    for link in topology.links:
        first.setdefault(link.window, link)
    order = {window: place for place, window in enumerate(first)}
    for pane in sorted(topology.panes, key=lambda pane: (order[pane.window], pane.index)):
        link = first[pane.window]
        known = details.panes.get(pane.id, PaneDetails())
        shown = _shown(topology.process, pane, known)
        yield _row(server, names[link.session], link, windows[pane.window].name, pane, known, shown)


def row_of_run(run: Run) -> PaneRow:
    """Return the pane of a run as it was last seen, for when its server does not answer."""
    place, identity = run.place, run.tenant
    return PaneRow(
        user=run.server.user,
        socket=run.server.socket,
        session=place.session,
        window=place.window,
        window_name=place.window_name,
        pane=place.pane,
        pane_id=run.pane,
        pid=run.first.pid if run.first else None,
        active=None,
        size=None,
        cwd=run.cwd,
        command=run.command,
        title=redact_text(run.title),
        agent=identity.agent if identity else None,
        **agent_row(identity, run.details if identity else None, shown_in(run)),
        dead=None,
    )


def _shown(process: ServerProcess, pane: Pane, known: PaneDetails) -> Who:
    tree = {each.pid: program_of(each) for each in known.processes}
    agent = known.agent_pid if pane.identity and not pane.identity.is_kept else None
    return who_is(process, tree.get(pane.pid), tree.get(agent) if agent is not None else None, pane.identity)


def _row(
    server: Server, session: str, link: Link, window_name: str, pane: Pane, known: PaneDetails, shown: Who
) -> PaneRow:
    identity = pane.identity
    return PaneRow(
        user=server.user,
        socket=server.socket,
        session=session,
        window=link.index,
        window_name=window_name,
        pane=pane.index,
        pane_id=pane.id,
        pid=pane.pid,
        active=pane.active,
        size=f"{pane.width}x{pane.height}",
        cwd=pane.cwd,
        command=pane.command,
        title=redact_text(known.title or pane.title),
        agent=identity.agent if identity else None,
        **agent_row(identity, known.agent, shown),
        dead=pane.dead,
    )
