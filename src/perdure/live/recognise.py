"""Which run each pane is. Pure.

A run outlives its process, its server and its machine. In this order a pane is taken for the run that

1. was in this very pane of this very server process, unless it is a shell that was new just now, and a restore says only
   then which conversation it has kept for that pane;
2. was certainly in the same conversation, and is nowhere else; a restore that has just started an agent in it is enough;
3. was the last in the same place of the same server: session, window and pane by name and number, and is nowhere else.

Nobody takes the id of a run whose pane is still there, and no run becomes two panes. A run that was certainly in a
conversation comes back with that and not with its place, and one of which a conversation was only guessed with none but that
in its place: whoever knows the id would talk to the wrong one, and the conversation could not have it back where it comes
back. An agent that is still starting there may be in it all the same and not say so yet: such panes are `unsaid`. Nor does a
place make an agent's run of what opens there later, unless a restore has made the pane and the agent is only about to start.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence

from msgspec import Struct

from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.run import Place, Program, Run, number_of
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture
from perdure.model.topology import Link
from perdure.model.wrapped import Wrapped, read_wrapper


class Found(Struct, frozen=True, kw_only=True):
    """A pane that is there now."""

    server: Server
    process: ServerProcess
    pane: str
    place: Place
    first: Program | None = None
    #: The agent's process.
    program: Program | None = None
    #: The processes between the pane's first one and the agent's.
    launchers: tuple[Program, ...] = ()
    identity: Identity | None = None
    #: A restore has made it, and what was in it is only about to start, or has just been started.
    restored: bool = False
    #: It has started an agent there in the very conversation that this one is said to be in.
    resumed: bool = False


class Recognised(Struct, frozen=True, kw_only=True):
    """Every pane with its run, None for a new one; and the runs of these servers that have no pane any more."""

    panes: tuple[tuple[Found, Run | None], ...]
    gone: tuple[Run, ...]
    #: Panes without a run that may turn out to be the one that was in their place, once they say in which conversation.
    unsaid: tuple[Found, ...] = ()


def recognise(
    found: Sequence[Found], runs: Sequence[Run], servers: Iterable[str], *, young: Container[str] = ()
) -> Recognised:
    """Return which pane is which run. `servers` are the keys of those that were looked at: only their runs can be gone.

    `young` are the ids of shells that were new just now: a conversation may turn out to be kept for their panes.
    """
    known: dict[int, Run] = {}
    free = {run.id: run for run in sorted(runs, key=_recency)}
    # Whoever says it best comes first, in whichever order they were found.
    ordered = sorted(enumerate(found), key=lambda pair: _standing(pair[1]))

    def claim(key: Callable[[Found | Run], object], may_be: Callable[[Found, Run], bool] = _always) -> None:
        # Where several were the same, the latest.
        candidates = {key(run): run for run in free.values()}
        for index, each in ordered:
            own = key(each)
            run = candidates.get(own) if own is not None and index not in known else None
            if run is not None and run.id in free and may_be(each, run):
                known[index] = free.pop(run.id)

    lost = {_conversation(run) for run in runs if run.is_over}
    claim(_pane, lambda each, run: not (run.id in young and _is_kept_for(each, lost)))
    looked_at = frozenset(servers)
    # Of a server that was not looked at nobody knows whether its panes are gone.
    for id in [id for id, run in free.items() if not run.is_over and run.server.key not in looked_at]:
        del free[id]
    claim(_conversation)
    claim(_resumed)
    claim(_place, _may_be_there)
    last = {_place(run): run for run in free.values()}
    nobody = [each for index, each in enumerate(found) if index not in known]
    gone = (run for run in free.values() if not run.is_over)
    return Recognised(
        panes=tuple((each, known.get(index)) for index, each in enumerate(found)),
        gone=tuple(sorted(gone, key=_number)),
        unsaid=tuple(each for each in nobody if (run := last.get(_place(each))) and _may_turn_out(each, run)),
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
        agent = more.agent_pid if more and pane.identity and not pane.identity.is_kept else None
        first = tree.get(pane.pid)
        wrapped = read_wrapper(first.argv) if first is not None else None
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
                first=_program(tree, pane.pid),
                program=_program(tree, agent),
                launchers=_launchers(tree, agent, pane.pid),
                identity=pane.identity,
                restored=wrapped is not None,
                resumed=wrapped is not None and _resumes(wrapped, pane.identity),
            )
        )
    return found


#: The most digits of a number; Python reads no longer one.
_LONGEST_NUMBER = 4000


def next_name(names: Iterable[str]) -> str:
    """Return the number above the highest that is the name of a session, as a name that no session has."""
    taken = frozenset(names)
    numbers = [int(name) for name in taken if name.isascii() and name.isdecimal() and len(name) <= _LONGEST_NUMBER]
    number = max(numbers, default=-1) + 1
    while str(number) in taken:
        number += 1
    return str(number)


def sure_conversation(identity: Identity | None) -> tuple[str, str | None, str] | None:
    """Return what tells a conversation from all others: agent, profile and id. None where none is certain."""
    if identity is None or identity.conversation is None or not identity.certain or identity.evidence is Evidence.GUESS:
        return None
    return (identity.agent, identity.profile, identity.conversation)


def _program(tree: Mapping[int, Process], pid: int | None) -> Program | None:
    process = tree.get(pid) if pid is not None else None
    return None if process is None else Program(pid=process.pid, start_ticks=process.start_ticks)


def _resumes(wrapped: Wrapped, identity: Identity | None) -> bool:
    # What stands on no command line may be a guess from what is newest, and that another's.
    conversation = identity.conversation if identity is not None else None
    return conversation is not None and not wrapped.is_guess and any(conversation in word for word in wrapped.argv)


def _launchers(tree: Mapping[int, Process], pid: int | None, first: int | None) -> tuple[Program, ...]:
    found: dict[int, Program] = {}
    process = None if pid is None else tree.get(pid)
    while process is not None and process.ppid not in (first, *found):
        process = tree.get(process.ppid)
        if process is not None:
            found[process.pid] = Program(pid=process.pid, start_ticks=process.start_ticks)
    return tuple(found.values())


def _recency(run: Run) -> tuple[bool, float, int, str]:
    ended = run.ended_at
    return (ended is None, (ended or run.status.since).timestamp(), *_number(run))


def _number(run: Run) -> tuple[int, str]:
    number = number_of(run.id)
    return (-1 if number is None else number, run.id)


def _standing(each: Found) -> tuple[int, str, int, str]:
    evidence = each.identity.evidence if each.identity else None
    return (len(Evidence) if evidence is None else evidence.rank, each.server.key, len(each.pane), each.pane)


def _always(each: Found, run: Run) -> bool:
    return True


def _pane(each: Found | Run) -> object:
    return _process(each) and (each.server.key, _process(each), each.pane)


def _process(each: Found | Run) -> object:
    return each.process and (each.process.pid, each.process.started_at)


def _conversation(each: Found | Run) -> object:
    # A guess may be wrong, and would give one run's id to another.
    return sure_conversation(each.identity)


def _is_kept_for(each: Found, lost: Container[object]) -> bool:
    """Whether a conversation that was in a run which is over is kept for this pane, and no agent is in it."""
    own = _conversation(each)
    return own is not None and each.identity is not None and each.identity.is_kept and own in lost


def _resumed(each: Found | Run) -> object:
    # An agent may take longer to show itself than anybody waits; what it was started with is known from the beginning.
    if isinstance(each, Run):
        return _conversation(each)
    return _named(each) if each.resumed else None


def _place(each: Found | Run) -> object:
    return (each.server.key, each.place.session, each.place.window, each.place.pane)


def _may_be_there(each: Found, run: Run) -> bool:
    if run.identity is None:
        return True
    if _conversation(run) is not None or _is_another_agent(each, run):
        return False
    return _may_follow(each, run) and (_named(run) is None or _named(run) == _named(each))


def _may_turn_out(each: Found, run: Run) -> bool:
    if _named(run) is None or _conversation(each) is not None:
        return False
    return not _is_another_agent(each, run) and _may_follow(each, run)


def _is_another_agent(each: Found, run: Run) -> bool:
    return each.identity is not None and run.identity is not None and each.identity.agent != run.identity.agent


def _named(each: Found | Run) -> object:
    """Return the conversation it is said to be in, by whatever evidence."""
    identity = each.identity
    return identity and identity.conversation and (identity.agent, identity.profile, identity.conversation)


def _may_follow(each: Found, run: Run) -> bool:
    """Whether it may be the agent that was there in a server that is no more."""
    return _process(run) != _process(each) and (each.restored or each.identity is not None)
