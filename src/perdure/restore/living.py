"""What is so now: who runs where, which directories are there, which conversations can still be resumed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from perdure.agents import Roster, agent_of
from perdure.host.directories import nearest
from perdure.host.processes import ProcessTable
from perdure.host.users import run_as
from perdure.model.decoding import decoder_of
from perdure.model.identity import Identity
from perdure.model.plan import Restore
from perdure.model.process import Process
from perdure.model.server import Server
from perdure.model.sighting import Seen
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.text import decode, encode
from perdure.model.topology import Pane
from perdure.model.user import User
from perdure.model.wrapped import Stage, read_wrapper
from perdure.ports import AgentAdapter, BeginsAnew, DeletesTranscripts, HostView
from perdure.restore.plan import Conversation, Holder, Living
from perdure.restore.refresh import Newer, Number, newer, renewed


def living(
    snapshot: Snapshot,
    captures: Sequence[Capture],
    table: Callable[[], ProcessTable],
    known: Roster,
    view: HostView,
    user: User,
    me: User,
    interrupted: Restore | None = None,
    taken: Collection[Conversation] = (),
    settled: Collection[Number] = (),
) -> tuple[Living, Mapping[str, Newer]]:
    """Return what a plan for this snapshot depends on, and what its agents did after they were saved.

    `captures` are all of the user's servers that answered, `taken` conversations that are promised to other panes, and
    `settled` agents that stay where they were saved, whatever they did after.
    """
    capture = next((each for each in captures if each.server.key == snapshot.server.key), None)
    # Who else is at work only matters to conversations.
    processes = table() if agents_of(snapshot) else None
    held = held_in_panes(captures, snapshot.server)
    # What a pane of an interrupted restore is in, it may be in because of a guess that is made again now.
    theirs = {key for key, holder in held.items() if interrupted is None or holder.pane is None}

    def look() -> bytes:
        others = theirs.union(taken)
        return msgspec.json.encode(_as_user(snapshot, captures, processes, known, view, user, others, settled))

    found = decoder_of(_Found).decode(look() if user.uid == me.uid else run_as(user, look))
    so_far = Living(
        topology=capture.topology if capture else None,
        held={**held_outside(found.outside), **held},
        directories=found.directories,
        lost=found.lost,
        asking=frozenset(asking_panes(capture)) if capture else frozenset(),
        home=user.home,
        interrupted=interrupted,
    )
    return so_far, found.newer


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """What only the user can see: their directories, transcripts and processes outside tmux."""

    directories: dict[str, str]
    lost: dict[str, str]
    outside: list[tuple[Process, Identity]]
    newer: dict[str, Newer]


def _as_user(
    snapshot: Snapshot,
    captures: Sequence[Capture],
    table: ProcessTable | None,
    known: Roster,
    view: HostView,
    user: User,
    theirs: Collection[Conversation],
    settled: Collection[Number],
) -> _Found:
    outside = [] if table is None else list(_outside(snapshot, captures, table, known, view))
    held = held_outside(outside).keys() | theirs
    since: dict[str, Newer] = {}
    if table is not None:
        alive = _processes(captures)
        since = newer(snapshot, known, view, table, held=held, alive=alive, settled=settled)
    snapshot = renewed(snapshot, since)
    return _Found(
        directories={path: nearest(path, user.home) for path in paths_of(snapshot)},
        lost=dict(_lost(snapshot, known.called(agents_of(snapshot)), view)),
        outside=outside,
        newer=since,
    )


def agents_of(snapshot: Snapshot) -> set[str]:
    """Return the names of the agents a snapshot has."""
    return {pane.identity.agent for pane in snapshot.topology.panes if pane.identity is not None}


def held_now(
    snapshot: Snapshot,
    captures: Sequence[Capture],
    table: ProcessTable,
    known: Roster,
    view: HostView,
    user: User,
    me: User,
) -> dict[Conversation, tuple[Holder, ...]]:
    """Return who is in which conversation of a user at this moment, in a pane or not; all of them, if there are several."""

    def look() -> bytes:
        return msgspec.json.encode(list(_outside(snapshot, captures, table, known, view)))

    found = decoder_of(list[tuple[Process, Identity]]).decode(look() if user.uid == me.uid else run_as(user, look))
    holders: dict[Conversation, tuple[Holder, ...]] = {}
    for held in (held_outside(found), held_in_panes(captures, snapshot.server)):
        for key, holder in held.items():
            holders[key] = (*holders.get(key, ()), holder)
    return holders


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
    """Return who is in which conversation in a pane; a guess counts too: two writers would be worse than none.

    A conversation that is only kept for a pane is nobody's.
    """
    held = {}
    for capture in captures:
        for pane in capture.topology.panes:
            key = conversation_of(pane.identity)
            if key is not None and pane.identity is not None and not pane.identity.is_kept:
                place = f"pane {pane.id} on {capture.server.socket}"
                held[key] = Holder(place=place, pane=pane.id if capture.server.key == server.key else None)
    return held


def held_outside(found: Iterable[tuple[Process, Identity]]) -> dict[Conversation, Holder]:
    """Return who is in which conversation outside tmux."""
    return {
        key: Holder(place=f"process {process.pid}, outside tmux", process=process)
        for process, identity in found
        if (key := conversation_of(identity)) is not None
    }


def asking_panes(capture: Capture) -> Iterable[str]:
    """Yield the panes in which something waits for Enter."""
    for pane, details in capture.details.panes.items():
        wrapped = read_wrapper(details.processes[0].argv) if details.processes else None
        if wrapped is not None and wrapped.asks and wrapped.stage is Stage.PRELUDE:
            yield pane


def conversation_of(identity: Identity | None) -> Conversation | None:
    """Return what nobody else may be in at the same time."""
    if identity is None or identity.conversation is None:
        return None
    return (identity.agent, identity.profile, identity.conversation)


def lost_now(
    snapshot: Snapshot, pane: str, adapters: Mapping[str, AgentAdapter], view: HostView, user: User, me: User
) -> str:
    """Return why the conversation of a pane cannot be resumed at this moment, "" when nothing speaks against it."""
    (found,) = (each for each in snapshot.topology.panes if each.id == pane)

    def look() -> bytes:
        return encode(_why_lost(snapshot, found, adapters, view))

    return decode(look() if user.uid == me.uid else run_as(user, look))


def _lost(snapshot: Snapshot, adapters: Mapping[str, AgentAdapter], view: HostView) -> Iterable[tuple[str, str]]:
    """Yield the panes whose conversation was written down and is not any more, with the sentence that says so."""
    for pane in snapshot.topology.panes:
        if why := _why_lost(snapshot, pane, adapters, view):
            yield pane.id, why


def _why_lost(snapshot: Snapshot, pane: Pane, adapters: Mapping[str, AgentAdapter], view: HostView) -> str:
    details = snapshot.details.panes.get(pane.id)
    identity = pane.identity
    written = details.agent.transcript if details and details.agent else None
    if identity is None or identity.conversation is None or written is None:
        return ""
    adapter = adapters.get(identity.agent)
    missing = _missing_in(written, identity, adapter, view)
    # Where an agent deletes them there may be a copy, which is put back before it is started.
    if not missing or isinstance(adapter, DeletesTranscripts):
        return ""
    # It may only have moved: some agents put it elsewhere when a worktree goes.
    if adapter is not None and _described(adapter, identity, _agent_process(snapshot, pane), view) is not None:
        return ""
    return f"the transcript of {identity.conversation} {missing} ({written})"


def _missing_in(transcript: str, identity: Identity, adapter: AgentAdapter | None, view: HostView) -> str:
    """Why there can be no conversation in a file, "" when there can: an empty one has lost what was said."""
    size = view.size(transcript)
    if size is None:
        return "is gone"
    if not identity.prompted:
        return ""
    if not size:
        return "is empty"
    # Others say so themselves, and end.
    is_bare = isinstance(adapter, BeginsAnew) and not adapter.has_turns(transcript, view)
    return "has nothing of what was said" if is_bare else ""


def _described(adapter: AgentAdapter, identity: Identity, process: Process | None, view: HostView) -> str | None:
    if process is None:
        return None
    try:
        found = adapter.describe(identity, process, view).transcript
    except Exception:  # one broken adapter costs only itself
        return None
    return found if found is not None and not _missing_in(found, identity, adapter, view) else None


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
) -> Iterable[tuple[Process, Identity]]:
    """Yield the conversations of agents that run in no pane, such as in another terminal.

    Not those of the snapshot's own agents: they outlive their server by some seconds, and are waited for.
    """
    inside = _processes((*captures, snapshot))
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
        yield from ((process, claim) for claim in claims[:1] if claim.conversation is not None and claim.certain)


def _processes(captures: Iterable[Capture | Snapshot]) -> set[Number]:
    """Numbers and start times of the processes in all panes."""
    return {
        (process.pid, process.start_ticks)
        for each in captures
        for pane in each.details.panes.values()
        for process in pane.processes
    }
