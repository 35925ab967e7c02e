"""What is so now: who runs where, which directories are there, which conversations can still be resumed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from perdure.agents import Roster, agent_of
from perdure.host.directories import nearest
from perdure.host.processes import ProcessTable
from perdure.host.users import run_as
from perdure.model.identity import Identity
from perdure.model.plan import Restore
from perdure.model.process import Process
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Pane
from perdure.model.user import User
from perdure.ports import AgentAdapter, DeletesTranscripts, HostView
from perdure.restore.plan import Conversation, Holder, Living
from perdure.snapshots.identify import Seen


def living(
    snapshot: Snapshot,
    captures: Sequence[Capture],
    table: Callable[[], ProcessTable],
    known: Roster,
    view: HostView,
    user: User,
    me: User,
    interrupted: Restore | None = None,
) -> Living:
    """Return what a plan for this snapshot depends on. `captures` are all of the user's servers that answered."""
    capture = next((each for each in captures if each.server.key == snapshot.server.key), None)
    # Who else is at work only matters to conversations.
    processes = table() if any(conversation_of(pane.identity) for pane in snapshot.topology.panes) else None

    def look() -> bytes:
        return msgspec.json.encode(_as_user(snapshot, captures, processes, known, view, user))

    found = msgspec.json.decode(look() if user.uid == me.uid else run_as(user, look), type=_Found)
    return Living(
        topology=capture.topology if capture else None,
        held={**held_outside(found.outside), **held_in_panes(captures, snapshot.server)},
        directories=found.directories,
        lost=found.lost,
        home=user.home,
        interrupted=interrupted,
    )


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """What only the user can see: their directories, transcripts and processes outside tmux."""

    directories: dict[str, str]
    lost: dict[str, str]
    outside: list[tuple[int, Identity]]


def _as_user(
    snapshot: Snapshot,
    captures: Sequence[Capture],
    table: ProcessTable | None,
    known: Roster,
    view: HostView,
    user: User,
) -> _Found:
    return _Found(
        directories={path: nearest(path, user.home) for path in paths_of(snapshot)},
        lost=dict(_lost(snapshot, known.called(agents_of(snapshot)), view)),
        outside=[] if table is None else list(_outside(snapshot, captures, table, known, view)),
    )


def agents_of(snapshot: Snapshot) -> set[str]:
    """Return the names of the agents a snapshot has."""
    return {pane.identity.agent for pane in snapshot.topology.panes if pane.identity is not None}


def paths_of(snapshot: Snapshot) -> set[str]:
    """Return every directory something of the snapshot may start in."""
    paths: set[str] = {session.path for session in snapshot.topology.sessions}
    for pane in snapshot.topology.panes:
        paths |= {pane.cwd, pane.start_path}
        if pane.program is not None:
            paths.add(pane.program.cwd)
        if pane.identity is not None and pane.identity.home is not None:
            paths.add(pane.identity.home)
    return paths - {""}


def held_in_panes(captures: Iterable[Capture], server: Server) -> dict[Conversation, Holder]:
    """Return who is in which conversation in a pane; a guess counts too: two writers would be worse than none."""
    held = {}
    for capture in captures:
        for pane in capture.topology.panes:
            key = conversation_of(pane.identity)
            if key is not None:
                place = f"pane {pane.id} on {capture.server.socket}"
                held[key] = Holder(place=place, pane=pane.id if capture.server.key == server.key else None)
    return held


def held_outside(found: Iterable[tuple[int, Identity]]) -> dict[Conversation, Holder]:
    """Return who is in which conversation outside tmux."""
    return {
        key: Holder(place=f"process {pid}, outside tmux")
        for pid, identity in found
        if (key := conversation_of(identity)) is not None
    }


def conversation_of(identity: Identity | None) -> Conversation | None:
    """Return what nobody else may be in at the same time."""
    if identity is None or identity.conversation is None:
        return None
    return (identity.agent, identity.profile, identity.conversation)


def _lost(snapshot: Snapshot, adapters: Mapping[str, AgentAdapter], view: HostView) -> Iterable[tuple[str, str]]:
    """Yield the panes whose conversation was written down and is not any more, with the sentence that says so."""
    for pane in snapshot.topology.panes:
        details = snapshot.details.panes.get(pane.id)
        identity = pane.identity
        written = details.agent.transcript if details and details.agent else None
        if identity is None or identity.conversation is None or written is None or view.size(written) is not None:
            continue
        adapter = adapters.get(identity.agent)
        if isinstance(adapter, DeletesTranscripts):
            continue  # there may be a copy, which is put back before the agent is started
        # It may only have moved: some agents put it elsewhere when a worktree goes.
        if adapter is None or _described(adapter, identity, _agent_process(snapshot, pane), view) is None:
            yield pane.id, f"the transcript of {identity.conversation} is gone ({written})"


def _described(adapter: AgentAdapter, identity: Identity, process: Process | None, view: HostView) -> str | None:
    if process is None:
        return None
    try:
        found = adapter.describe(identity, process, view).transcript
    except Exception:  # one broken adapter costs only itself
        return None
    return found if found is not None and view.size(found) is not None else None


def _agent_process(snapshot: Snapshot, pane: Pane) -> Process | None:
    details = snapshot.details.panes.get(pane.id)
    if details is None:
        return None
    return next((process for process in details.processes if process.pid == details.agent_pid), None)


def agent_process(snapshot: Snapshot, pane: str) -> Process | None:
    """Return the process of the agent that was in a pane of the snapshot, None when that is not known."""
    found = next((each for each in snapshot.topology.panes if each.id == pane), None)
    return None if found is None else _agent_process(snapshot, found)


def _outside(
    snapshot: Snapshot, captures: Sequence[Capture], table: ProcessTable, known: Roster, view: HostView
) -> Iterable[tuple[int, Identity]]:
    """Yield the conversations of agents that run in no pane, such as in another terminal.

    Not those of the snapshot's own agents: they outlive their server by some seconds, and are waited for.
    """
    inside = {
        (process.pid, process.start_ticks)
        for details in (*(each.details for each in captures), snapshot.details)
        for pane in details.panes.values()
        for process in pane.processes
    }
    for process in table.of_user(snapshot.server.uid):
        if (process.pid, process.start_ticks) in inside:
            continue
        found = agent_of((process,), known)
        if found is None:
            continue
        seen = Seen(server=snapshot.server, pane="", title="", process=process, tree=(process,))
        try:
            claims = found[0].identify(seen, view)
        except Exception:  # one broken adapter costs only itself
            continue
        yield from ((process.pid, claim) for claim in claims[:1] if claim.conversation is not None and claim.certain)
