"""Panes as rows: what `ls` and `show` print, secrets aside."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from msgspec import Struct

from perdure.model.agent_row import agent_row
from perdure.model.secrets import redact_text
from perdure.model.server import Server
from perdure.model.topology import Details, Link, Pane, PaneDetails, Topology


class PaneRow(Struct, frozen=True, kw_only=True):
    """One pane, where it is first shown."""

    user: str
    socket: str
    session: str
    window: int
    window_name: str
    pane: int
    pane_id: str
    pid: int
    active: bool
    size: str
    cwd: str
    command: str
    title: str
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
    dead: bool

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
        yield _row(server, names[link.session], link, windows[pane.window].name, pane, known)


def _row(server: Server, session: str, link: Link, window_name: str, pane: Pane, known: PaneDetails) -> PaneRow:
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
        **agent_row(identity, known.agent),
        dead=pane.dead,
    )
