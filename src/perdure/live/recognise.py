"""Which run each pane is. Pure.

A run outlives its process, its server and its machine. In this order a pane is taken for the run that

1. was in this very pane of this very server process;
2. was in the same conversation, and is nowhere else;
3. was in the same place of the same server: session, window and pane by name and number, and is nowhere else.

Nobody takes the id of a run whose pane is still there, and no run becomes two panes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.run import Place, Program, Run
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture
from perdure.model.topology import Link

#: Agent, profile and conversation.
Conversation = tuple[str, str | None, str]


class Found(Struct, frozen=True, kw_only=True):
    """A pane that is there now."""

    server: Server
    process: ServerProcess
    pane: str
    place: Place
    shell: Program | None = None
    #: The agent's process.
    program: Program | None = None
    identity: Identity | None = None


class Recognised(Struct, frozen=True, kw_only=True):
    """Every pane with its run, None for a new one; and the runs of these servers that have no pane any more."""

    panes: tuple[tuple[Found, Run | None], ...]
    gone: tuple[Run, ...]


def recognise(found: Sequence[Found], runs: Sequence[Run], servers: Iterable[str]) -> Recognised:
    """Return which pane is which run. `servers` are the keys of those that were looked at: only their runs can be gone."""
    known: dict[int, Run] = {}
    free = {run.id: run for run in runs}

    def claim(keyed: Callable[[Found], object], of: Callable[[Run], object]) -> None:
        # Latest first: a run that was here more recently is more likely to be this one.
        candidates: dict[object, Run] = {}
        for run in sorted(free.values(), key=_recency):
            candidates[of(run)] = run
        for index, each in enumerate(found):
            key = keyed(each)
            taken = candidates.get(key) if key is not None and index not in known else None
            if taken is not None and taken.id in free:
                known[index] = free.pop(taken.id)

    claim(_same_pane, _pane_of)
    looked_at = frozenset(servers)
    # Of a server that was not looked at nobody knows whether its panes are gone.
    for id in [id for id, run in free.items() if not run.is_over and run.server.key not in looked_at]:
        del free[id]
    gone = {id: run for id, run in free.items() if not run.is_over}
    claim(lambda each: _conversation(each.identity), lambda run: _conversation(run.identity))
    claim(_same_place, _place_of)
    return Recognised(
        panes=tuple((each, known.get(index)) for index, each in enumerate(found)),
        gone=tuple(run for id, run in gone.items() if id in free),
    )


def found_in(capture: Capture) -> list[Found]:
    """Return the panes of a capture, each once, by the first session that shows it."""
    topology, details = capture.topology, capture.details.panes
    sessions = {session.id: session for session in topology.sessions}
    windows = {window.id: window for window in topology.windows}
    links: dict[str, Link] = {}
    for each in sorted(topology.links, key=lambda link: (int(link.session[1:]), link.index)):
        links.setdefault(each.window, each)
    found = []
    for pane in topology.panes:
        link = links.get(pane.window)
        if link is None:
            continue
        more = details.get(pane.id)
        tree = {process.pid: process for process in (more.processes if more else ())}
        found.append(
            Found(
                server=capture.server,
                process=topology.process,
                pane=pane.id,
                place=Place(
                    session=sessions[link.session].name,
                    window=link.index,
                    pane=pane.index,
                    window_name=windows[pane.window].name,
                ),
                shell=_program(tree, pane.pid),
                program=_program(
                    tree, more.agent_pid if more and pane.identity and not pane.identity.is_kept else None
                ),
                identity=pane.identity,
            )
        )
    return found


def next_name(names: Iterable[str]) -> str:
    """Return the number above the highest that is the name of a session, as a name."""
    numbers = [int(name) for name in names if name.isascii() and name.isdecimal() and len(name) < 19]
    return str(max(numbers, default=-1) + 1)


def _program(tree: Mapping[int, Process], pid: int | None) -> Program | None:
    process = tree.get(pid) if pid is not None else None
    return None if process is None else Program(pid=process.pid, start_ticks=process.start_ticks)


def _recency(run: Run) -> tuple[bool, float]:
    ended = run.ended_at
    return (ended is None, (ended or run.status.since).timestamp())


def _same_pane(each: Found) -> object:
    return (each.server.key, each.process.pid, each.process.started_at, each.pane)


def _pane_of(run: Run) -> object:
    if run.process is None or run.is_over:
        return None
    return (run.server.key, run.process.pid, run.process.started_at, run.pane)


def _conversation(identity: Identity | None) -> Conversation | None:
    # A guess may be wrong, and would give one run's id to another.
    if identity is None or identity.conversation is None or identity.evidence is Evidence.GUESS:
        return None
    return (identity.agent, identity.profile, identity.conversation)


def _same_place(each: Found) -> object:
    return (each.server.key, each.place.session, each.place.window, each.place.pane)


def _place_of(run: Run) -> object:
    return (run.server.key, run.place.session, run.place.window, run.place.pane)
