"""Small snapshots for the tests of exports: sessions of windows of panes, said in one line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from perdure.model.identity import Identity
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Details, Link, Pane, Session, Topology, Window

WHEN = datetime(2026, 4, 13, 21, 26, 3, tzinfo=UTC)
SERVER = Server(host="box", user="ann", uid=1000, socket="/tmp/tmux-1000/default")
UUID = "0b29d4f3-92a1-4c5e-8a77-0123456789ab"
OTHER_UUID = "7c3e1a90-1111-4222-8333-abcdefabcdef"


def a_pane(
    number: int,
    *,
    window: str = "@0",
    index: int = 0,
    active: bool = True,
    title: str = "box",
    cwd: str = "/home/dev",
    command: str = "bash",
    identity: Identity | None = None,
) -> Pane:
    return Pane(
        id=f"%{number}",
        window=window,
        index=index,
        pid=4000 + number,
        tty=f"/dev/pts/{number}",
        width=120,
        height=40,
        active=active,
        title=title,
        cwd=cwd,
        start_path=cwd,
        command=command,
        identity=identity,
    )


def a_topology(sessions: Sequence[Session], shows: Mapping[str, Sequence[Link]], panes: Sequence[Pane]) -> Topology:
    """Sessions, what each shows, and the panes; the windows follow from the panes."""
    return Topology(
        process=ServerProcess(pid=77, started_at=WHEN, version="3.3a"),
        sessions=tuple(sessions),
        windows=tuple(
            Window(id=id, name="w", width=120, height=40, layout="", visible_layout="")
            for id in dict.fromkeys(pane.window for pane in panes)
        ),
        links=tuple(link for links in shows.values() for link in links),
        panes=tuple(panes),
    )


def a_session(number: int, name: str, *, group: str = "", path: str = "") -> Session:
    return Session(id=f"${number}", name=name, created_at=WHEN, group=group, path=path)


def a_link(session: int, window: int, index: int = 0, *, active: bool = True) -> Link:
    return Link(session=f"${session}", window=f"@{window}", index=index, active=active)


def a_snapshot(topology: Topology, details: Details | None = None, *, server: Server = SERVER) -> Snapshot:
    return Snapshot(
        id="5e5e",
        server=server,
        taken_at=WHEN,
        last_seen_at=WHEN,
        topology=topology,
        details=details or Details(),
    )


def single(pane: Pane, *, name: str = "work", path: str = "") -> Snapshot:
    """One session with one window with one pane."""
    return a_snapshot(a_topology([a_session(0, name, path=path)], {"$0": [a_link(0, 0)]}, [pane]))


def as_snapshot(capture: Capture) -> Snapshot:
    """What the store would make of a capture."""
    return Snapshot(
        id="1a1a",
        server=capture.server,
        taken_at=capture.taken_at,
        last_seen_at=capture.taken_at,
        topology=capture.topology,
        details=capture.details,
    )
