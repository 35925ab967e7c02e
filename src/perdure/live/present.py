"""Who is in a pane at this very moment, by its processes; and whether that is who somebody means."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from os.path import basename

from msgspec import Struct

from perdure.agents import Roster, agent_of
from perdure.errors import RunReplaced
from perdure.host.processes import is_stopped, read_processes
from perdure.live.displaced import displaced_by, why_displaced
from perdure.live.meant import ANOTHER_PROGRAM, There, meant_as, program_of, stranger, there_in
from perdure.model.identity import Identity
from perdure.model.process import Process
from perdure.model.run import Program, Run
from perdure.model.server import Server
from perdure.model.sighting import Seen
from perdure.model.wrapped import read_wrapper
from perdure.ports import AgentAdapter, HostView
from perdure.tmux.act import Spot, end
from perdure.tmux.peek import Peeked, peek


class Present(Struct, frozen=True, kw_only=True):
    """Those who are in a pane."""

    tree: tuple[Process, ...]
    adapter: AgentAdapter | None
    process: Process | None
    there: There
    #: Why the agent hears nothing though it is there, in a sentence without its full stop; "" when it does.
    displaced: str = ""


def present_in(pane: Peeked, known: Roster) -> Present:
    """Return who is in a pane."""
    table = read_processes(known.environment)
    tree = table.tree(pane.pid, pane.tty)
    found = agent_of(tree, known)
    there = there_in(tree, found, known)
    if found is None:
        return Present(tree=tree, adapter=None, process=None, there=there)
    adapter, process = found
    holder = displaced_by(tree, process, (table.foreground(pane.pid), table.foreground(process.pid)))
    why = ""
    if holder is not None:
        why = why_displaced(tree, process, holder, name=adapter.name, is_stopped=is_stopped(process.pid))
    return Present(tree=tree, adapter=adapter, process=process, there=there, displaced=why)


def conversation_of(
    present: Present,
    spot: Spot,
    title: str,
    *,
    view: HostView | None,
    now: datetime,
    seen: tuple[Program, Identity] | None = None,
) -> Identity | None:
    """Return the conversation of who is there, as far as it can be told without a look at everybody.

    `seen` is who was found there by such a look. `view` are the files of the pane's user, None where they are not to be read.
    """
    agent, process = present.adapter, present.process
    if agent is None or process is None:
        return None
    if seen is not None and seen[0] == program_of(process):
        return seen[1]
    if view is None:
        return None
    server = Server(host="", user=spot.owner.name, uid=spot.owner.uid, socket=spot.socket)
    sighting = Seen(server=server, pane=spot.pane, title=title, process=process, tree=present.tree, at=now)
    try:
        return next(iter(agent.identify(sighting, view)), None)
    except Exception:  # an adapter that breaks has said nothing
        return None


def made_for(words: Sequence[str], known: Roster, now: datetime) -> str | None:
    """Return the agent that one of our panes was made for, by the words it was started with; None for any other pane."""
    wrapped = read_wrapper(words)
    if wrapped is None or not wrapped.argv:
        return None
    if wrapped.name in known.called({wrapped.name}):
        return wrapped.name
    comm = basename(wrapped.argv[0])
    process = Process(
        pid=0, ppid=0, start_ticks=0, started_at=now, pgid=0, foreground=True, comm=comm, argv=wrapped.argv
    )
    found = agent_of((process,), known)
    return found[0].name if found is not None else None


def refuse_strangers(
    run: Run,
    spot: Spot,
    *,
    known: Roster,
    view: HostView | None,
    now: Callable[[], datetime],
    who: str | None = None,
) -> int | None:
    """Return the first process of a run's pane, None when that is gone.

    Raises RunReplaced when another is in it than the one who was recorded, and Unanswered. `view` are the files of the
    pane's user, None where they are not to be read; `who` is the word that was handed back for who was shown, if any.
    """
    pane = peek(spot)
    if pane is None:
        return None
    here, meant = present_in(pane, known), meant_as(run, who)
    why = stranger(meant, here.there, lambda: conversation_of(here, spot, pane.title, view=view, now=now()))
    if why:
        raise RunReplaced(f"{run.id} ({run.place.target}): {why}.")
    return pane.pid


def end_run(
    run: Run,
    spot: Spot,
    *,
    known: Roster,
    view: HostView | None,
    now: Callable[[], datetime],
    who: str | None = None,
) -> bool:
    """End the pane of a run, False when it was gone already. Raises what `refuse_strangers` does: then nothing is ended."""
    first = refuse_strangers(run, spot, known=known, view=view, now=now, who=who)
    if first is None:
        return False
    # tmux compares it in the same breath: between a look and a command anybody may come.
    if end(spot._replace(first=first), "pane", spot.pane):
        return True
    if peek(spot) is not None:
        raise RunReplaced(f"{run.id} ({run.place.target}): {ANOTHER_PROGRAM}.")
    return False
