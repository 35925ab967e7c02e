"""What runs are doing: as the daemon knows it, else as their screens tell at this moment."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import structs

from perdure.agents import agent_of, roster
from perdure.cli._setup import Setup
from perdure.daemon import protocol
from perdure.daemon.call import call
from perdure.daemon.seeing import Tenant, at_a_halt, on_screen, told
from perdure.errors import NoDaemon, PerdureError
from perdure.live.advance import advance
from perdure.live.because import because
from perdure.live.standing import Standing, standing_of
from perdure.live.weigh import Track
from perdure.model.decoding import converted
from perdure.model.observation import Observation
from perdure.model.run import Health, Place, Program, Run, Status
from perdure.model.sighting import Seen
from perdure.model.snapshot import Capture, Miss, Missed
from perdure.model.topology import Pane
from perdure.tmux.glance import glance

#: How long the daemon may take to answer.
_PATIENCE = 5.0

#: By the socket and the pane's id.
Standings = Mapping[tuple[str, str], Standing]


def standings(
    setup: Setup, captures: Sequence[Capture], missed: Sequence[Missed], at: datetime
) -> tuple[Standings, list[Run]]:
    """Return how the panes stand, and the runs of servers that do not answer, as far as a daemon knows of them.

    What is said of those is how they were last seen, and none of them counts as healthy, whatever the daemon has noticed yet.
    """
    try:
        answer = call(setup.state_dir, protocol.AskRuns(), _PATIENCE)
        runs = converted(answer, list[Run], strict=False)
    except NoDaemon:
        return _seen_now(setup, captures, at), []
    except PerdureError as error:
        print(f"perdure: the daemon was asked how things stand: {error.message}", file=sys.stderr)
        return _seen_now(setup, captures, at), []
    silent = {each.server.key for each in missed if each.reason is not Miss.REFUSED}
    runs = [_unheard(run) if run.server.key in silent else run for run in runs]
    found = {(run.server.socket, run.pane): standing_of(run) for run in runs}
    return found, sorted((run for run in runs if run.server.key in silent), key=_whereabouts)


def _unheard(run: Run) -> Run:
    return structs.replace(run, health=Health.DEGRADED) if run.health is Health.HEALTHY else run


def _whereabouts(run: Run) -> tuple[str, str, int, int]:
    return run.server.socket, run.place.session, run.place.window, run.place.pane


def _seen_now(setup: Setup, captures: Sequence[Capture], at: datetime) -> Standings:
    found = {}
    for capture in captures:
        owner = setup.user_of(capture.server)
        agents = {pane.id: tenant for pane in capture.topology.panes if (tenant := tenant_of(setup, capture, pane))}
        wanted = dict.fromkeys(agents, True)
        timeout = setup.config.tmux.timeout_seconds
        seen = glance(capture.server.socket, owner, wanted, timeout=timeout) if wanted else None
        for id, glimpse in (seen.panes if seen is not None else {}).items():
            if glimpse.lines is not None:
                tenant = agents[id]
                halt = at_a_halt(tenant, at)
                readings = [*told(tenant), on_screen(tenant, glimpse.lines, glimpse.title, at), halt]
                found[capture.server.socket, id] = _of_status(_judged(tenant, readings, at))
    return found


def tenant_of(setup: Setup, capture: Capture, pane: Pane) -> Tenant | None:
    """Return the agent in a pane, None when none is."""
    details = capture.details.panes[pane.id]
    who = agent_of(details.processes, roster(setup.config.agents))
    if who is None:
        return None
    adapter, process = who
    seen = Seen(server=capture.server, pane=pane.id, title=details.title, process=process, tree=details.processes)
    mine = capture.server.uid == setup.me.uid
    view = setup.surroundings().view_of(setup.me) if mine else None
    return Tenant(adapter=adapter, seen=seen, view=view, claim=(None, False))


def _judged(tenant: Tenant, readings: Sequence[Observation], at: datetime) -> Status:
    process = tenant.seen.process
    track = Track(
        run=Run(
            id="",
            server=tenant.seen.server,
            place=Place(session="", window=0, pane=0),
            pane=tenant.seen.pane,
            status=Status(since=at),
            created_at=at,
            program=Program(pid=process.pid, start_ticks=process.start_ticks),
        )
    )
    for reading in readings:
        track, _ = advance(track, reading, at)
    return track.run.status if track.pending is None else _pending(track)


def _pending(track: Track) -> Status:
    """What would be its state if it stays so: there is no later moment to see whether it does."""
    assert track.pending is not None
    verdict = track.pending.verdict
    return Status(
        state=verdict.state,
        reason=verdict.reason,
        cause=verdict.cause,
        confidence=verdict.confidence,
        since=track.run.status.since,
    )


def _of_status(status: Status) -> Standing:
    return Standing(
        state=status.state,
        reason=status.reason,
        cause=status.cause,
        because=because(status.cause),
        confidence=status.confidence,
    )
