"""`perdure`: how things stand, who waits for somebody, and what to do next."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from perdure.cli._reading import name_unreadable
from perdure.cli._setup import Setup, with_setup
from perdure.cli.daemon_status import DaemonStatus, daemon_status
from perdure.cli.missed import report, unanswered
from perdure.cli.render import age, counted, lasting, print_json, printable
from perdure.cli.rows import PaneRow, pane_rows, row_of_run
from perdure.cli.standing import Standings, standings
from perdure.host.clock import now
from perdure.live.standing import Standing
from perdure.model.run import Reason, Run, RunState
from perdure.model.snapshot import CAPTURED, Capture, SnapshotSummary
from perdure.snapshots.look import Looked

#: Who is named before whom: what holds up work first, what is merely finished last.
_URGENCY = (
    *(Reason.PERMISSION, Reason.QUESTION, Reason.LOGIN, RunState.ERROR, Reason.LIMIT, Reason.STALLED, Reason.DONE),
)
#: How many of those who wait are named; `perdure ls` has all.
_NAMED = 6
#: The states in the order in which they are counted up.
_STATES = (RunState.BUSY, RunState.IDLE, RunState.ATTENTION, RunState.ERROR, RunState.EXITED, RunState.UNKNOWN)


class Live(Struct, frozen=True, kw_only=True):
    """What runs."""

    servers: int
    #: Those of them that do not answer: what is said of their panes is what the daemon last saw.
    silent: int
    panes: int
    agents: int
    #: Agents whose conversation is certain.
    certain: int
    #: How many agents are in each state.
    states: dict[str, int]


class Waiting(Struct, frozen=True, kw_only=True):
    """An agent that needs somebody."""

    target: str
    socket: str
    pane_id: str
    run: str | None
    agent: str | None
    state: str
    reason: str | None
    since: datetime | None

    @property
    def word(self) -> str:
        """What about."""
        return self.reason or self.state


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: the bare command has no arguments of its own."""


def _run(setup: Setup, args: argparse.Namespace) -> int:
    at = now()
    looked = setup.look(setup.ask(argparse.Namespace(socket=None, all_users=False)), at)
    captures = [each.capture for each in looked if isinstance(each, Looked)]
    rows = [row for each in captures for row in pane_rows(each.server, each.topology, each.details)]
    missed = unanswered(looked)
    stand, silent = standings(setup, captures, missed, at)
    rows += [row_of_run(run) for run in silent]
    live, waiting = _live(captures, silent, stand), who_waits(rows, stand)
    daemon = daemon_status(setup.state_dir)
    last = _last_per_server(setup.readable.list_snapshots())
    name_unreadable(setup.readable, last)
    newest = max((each.last_seen_at for each in last), default=None)
    if args.json:
        kept = {"panes": sum(each.panes for each in last), "agents": sum(each.agents for each in last)}
        saved = {**kept, "last_seen_at": newest}
        print_json({"live": live, "waiting": waiting, "daemon": daemon, "saved": saved})
        return report(missed)
    where = f"{counted(live.panes, 'pane')} on {counted(live.servers, 'tmux server')}{_unheard(live)}"
    print(f"Running: {where}, {counted(live.agents, 'agent')} ({live.certain} known for certain){_doing(live)}.")
    if waiting:
        print(f"Waiting: {printable(said_of(waiting, at))}.")
    for each in last:
        where = printable(f"{each.server.user} {each.server.socket}")
        what = f"{counted(each.panes, 'pane')}, {counted(each.agents, 'agent')}"
        print(f"Saved:   {what} of {where}, {age(each.last_seen_at, at)} ({each.id}).")
    print(f"Daemon:  {daemon.sentence(at) if daemon else 'nobody watches; what changes is saved when you save'}.")
    print(f"Next:    {_advice(live, waiting, daemon, saved=newest is not None)}")
    return report(missed)


run = with_setup(_run)


def _live(captures: Sequence[Capture], silent: Sequence[Run], stand: Standings) -> Live:
    # One that is only kept for a pane does not run.
    panes = [(each.server.socket, pane) for each in captures for pane in each.topology.panes]
    agents = [(socket, pane.id, pane.identity) for socket, pane in panes if pane.identity and not pane.identity.is_kept]
    agents += [(run.server.socket, run.pane, run.identity) for run in silent if run.program and run.identity]
    found = (stand.get((socket, id)) for socket, id, _ in agents)
    states = Counter(each.state if each else str(RunState.UNKNOWN) for each in found)
    unheard = len({run.server.socket for run in silent})
    return Live(
        servers=len(captures) + unheard,
        silent=unheard,
        panes=len(panes) + len(silent),
        agents=len(agents),
        certain=sum(identity.certain for _, _, identity in agents),
        states={state: states[state] for state in _STATES if states[state]},
    )


def who_waits(rows: Sequence[PaneRow], stand: Standings) -> list[Waiting]:
    """Return who needs somebody, the most urgent first, and of those alike who has waited longest."""
    found = []
    for row in rows:
        each = stand.get((row.socket, row.pane_id))
        if each is not None and each.state in (RunState.ATTENTION, RunState.ERROR):
            found.append(_waiting(row, each))
    return sorted(found, key=lambda each: (_urgency(each), each.since is None, each.since or 0))


def said_of(waiting: Sequence[Waiting], at: datetime) -> str:
    """Return `2 wait for you: api:0.0 permission 3 min, web:0.0 done 10 s`."""
    where = _servers(waiting)
    named = [" ".join([each.target, *where[each.socket], each.word, *_since(each, at)]) for each in waiting[:_NAMED]]
    more = [f"and {len(waiting) - _NAMED} more"] if len(waiting) > _NAMED else []
    return f"{len(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for you: {', '.join([*named, *more])}"


def _servers(waiting: Sequence[Waiting]) -> dict[str, list[str]]:
    """By socket what tells the servers apart that somebody waits on: nothing where it is one."""
    sockets = {each.socket for each in waiting}
    if len(sockets) < 2:
        return {socket: [] for socket in sockets}
    names = Counter(os.path.basename(socket) for socket in sockets)
    called = {socket: os.path.basename(socket) for socket in sockets}
    return {socket: ["on", name if names[name] == 1 else socket] for socket, name in called.items()}


def _since(each: Waiting, at: datetime) -> list[str]:
    return [lasting(each.since, at)] if each.since else []


def _waiting(row: PaneRow, each: Standing) -> Waiting:
    return Waiting(
        target=row.address,
        socket=row.socket,
        pane_id=row.pane_id,
        run=each.run,
        agent=row.agent,
        state=each.state,
        reason=each.reason,
        since=each.since,
    )


def _urgency(each: Waiting) -> int:
    return _URGENCY.index(each.word) if each.word in _URGENCY else len(_URGENCY)


def _unheard(live: Live) -> str:
    if not live.silent:
        return ""
    return f" ({live.silent} {'does' if live.silent == 1 else 'do'} not answer: as last seen there)"


def _doing(live: Live) -> str:
    words = [f"{number} {'waiting' if state == RunState.ATTENTION else state}" for state, number in live.states.items()]
    return f": {', '.join(words)}" if words else ""


def _last_per_server(snapshots: tuple[SnapshotSummary, ...]) -> list[SnapshotSummary]:
    last: dict[str, SnapshotSummary] = {}
    for each in snapshots:
        if each.origin == CAPTURED:
            last.setdefault(each.server.key, each)
    return list(last.values())


def _advice(live: Live, waiting: Sequence[Waiting], daemon: DaemonStatus | None, *, saved: bool) -> str:
    if waiting:
        return "`perdure ls` shows all of them, `perdure send TARGET` answers, `perdure seen TARGET` takes it as seen."
    if live.panes and daemon is not None:
        return "`perdure ls` shows who is in which pane, `perdure events --follow` tells what happens."
    if live.panes:
        return "`perdure up` watches and saves what changes, `perdure service install` does so from boot on."
    if saved:
        return "`perdure restore` brings it back; `perdure restore --dry-run` shows how, and does nothing."
    begin = "start tmux, or an agent with `perdure new`"
    return f"{begin}; `perdure up` watches and saves what changes." if daemon is None else f"{begin}."
