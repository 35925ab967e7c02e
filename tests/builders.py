"""Nouns with sensible contents; a test names only what it is about."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import msgspec

from perdure.host.processes import Names
from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.process import Command, Process
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Details, Link, Pane, PaneDetails, Session, SessionDetails, Topology, Window

#: A moment to count from.
NOON = datetime(2026, 11, 15, 12, 0, 0, 123456, tzinfo=UTC)


def at(seconds: float) -> datetime:
    """A moment some seconds after noon, or before it."""
    return NOON + timedelta(seconds=seconds)


def a_server(name: str = "default", *, host: str = "laptop", user: str = "dev", uid: int = 1000) -> Server:
    """A tmux server by the name of its socket."""
    return Server(host=host, user=user, uid=uid, socket=f"/tmp/tmux-{uid}/{name}")


def a_process(pid: int = 4000, **changes: object) -> Process:
    """A living process."""
    process = Process(
        pid=pid,
        ppid=1,
        start_ticks=1000 + pid,
        started_at=NOON,
        pgid=pid,
        foreground=True,
        comm="bash",
        exe="/usr/bin/bash",
        argv=("bash",),
        cwd="/home/dev",
    )
    return msgspec.structs.replace(process, **changes)


def a_pane(number: int = 0, *, window: str = "@0", **changes: object) -> Pane:
    """A pane at its shell; its id is `%<number>`."""
    pane = Pane(
        id=f"%{number}",
        window=window,
        index=number,
        pid=4000 + number,
        tty=f"/dev/pts/{number}",
        width=80,
        height=24,
        active=number == 0,
        title="laptop",
        cwd="/home/dev",
        start_path="/home/dev",
        command="bash",
    )
    return msgspec.structs.replace(pane, **changes)


def an_identity(agent: str = "some", conversation: str | None = "c0ffee", **changes: object) -> Identity:
    """An agent in a conversation we are sure of."""
    identity = Identity(agent=agent, conversation=conversation, evidence=Evidence.REGISTRY, certain=True)
    return msgspec.structs.replace(identity, **changes)


def a_program(*argv: str, cwd: str = "/home/dev", environ: Mapping[str, str] | None = None) -> Command:
    """A command as it was started."""
    return Command(argv=argv or ("vim", "notes"), cwd=cwd, environ=environ or {})


def a_topology(panes: Sequence[Pane] | None = None, *, session: str = "work", pid: int = 300) -> Topology:
    """One session with one window that holds these panes; without any, one."""
    return Topology(
        process=ServerProcess(pid=pid, started_at=at(-3600), version="3.4"),
        sessions=(Session(id="$0", name=session, created_at=at(-3600), path="/home/dev"),),
        windows=(
            Window(
                id="@0", name="main", width=80, height=24, layout="b25d,80x24,0,0,0", visible_layout="b25d,80x24,0,0,0"
            ),
        ),
        links=(Link(session="$0", window="@0", index=0, active=True),),
        panes=tuple(panes) if panes is not None else (a_pane(),),
    )


def some_details(topology: Topology, scrollback: Mapping[str, str] | None = None) -> Details:
    """Details of every pane; `scrollback` gives digests by pane id."""
    return Details(
        sessions={session.id: SessionDetails(attached=1, activity_at=NOON) for session in topology.sessions},
        window_flags={window.id: "*" for window in topology.windows},
        panes={
            pane.id: PaneDetails(
                title=pane.title,
                history_size=100,
                processes=(a_process(pane.pid),),
                agent=AgentDetails(model="some-model") if pane.identity else None,
                scrollback=(scrollback or {}).get(pane.id),
            )
            for pane in topology.panes
        },
    )


def a_capture(
    panes: Sequence[Pane] | None = None,
    *,
    server: Server | None = None,
    seconds: float = 0,
    session: str = "work",
    scrollback: Mapping[str, str] | None = None,
    details: Details | None = None,
) -> Capture:
    """A complete reading of a server, some seconds after noon."""
    topology = a_topology(panes, session=session)
    return Capture(
        server=server or a_server(),
        taken_at=at(seconds),
        topology=topology,
        details=details or some_details(topology, scrollback),
    )


def a_snapshot(capture: Capture | None = None, *, id: str = "0123456789abcdef") -> Snapshot:
    """A capture as a snapshot that never saw a store."""
    capture = capture or a_capture()
    return Snapshot(
        id=id,
        server=capture.server,
        taken_at=capture.taken_at,
        last_seen_at=capture.taken_at,
        topology=capture.topology,
        details=capture.details,
    )


def a_text(text: str = "$ make\nok\n") -> tuple[str, bytes]:
    """A scrollback text and a digest for it."""
    raw = text.encode()
    return blake2b(raw, digest_size=16).hexdigest(), raw


def keeping(*names: str) -> Names:
    """Return what tells the process table to keep these variables of every process."""
    return lambda comm, exe, argv: frozenset(names)
