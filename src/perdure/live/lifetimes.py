"""How a run begins, comes back, and is remembered. Pure. How it ends is an observation like others: `advance`."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from perdure.live.outlived import outlived
from perdure.live.recognise import Found
from perdure.live.weigh import Track
from perdure.model.event import Event, EventKind
from perdure.model.run import Health, Reason, Run, Status

#: Why there is a new run: it was there when Perdure began to look, it came later, or it was asked for.
AT_START, NOTICED, ASKED_FOR = "startup_discovery", "periodic_tmux_reconcile", "api_create"


def begun(id: str, found: Found, now: datetime, reason: str) -> tuple[Track, tuple[Event, ...]]:
    """Return a new run in a pane, of which nothing was observed yet."""
    run = Run(
        id=id,
        server=found.server,
        process=found.process,
        pane=found.pane,
        place=found.place,
        first=found.first,
        program=found.program,
        identity=found.identity,
        status=Status(since=now),
        created_at=now,
    )
    return Track(run=run), (_event(EventKind.RUN_CREATED, run, found, now, reason=reason),)


def returned(run: Run, found: Found, now: datetime) -> tuple[Track, tuple[Event, ...]]:
    """Return a run that was recognised in a pane that it was not known to be in: it had ended, or its pane or server had.

    It keeps what makes it this run, and what is known of its conversation; what it is doing is neither known nor said any
    more.
    """
    status = Status(cause="returned", since=max(now, run.status.since))
    back: Run = structs.replace(
        run,
        server=found.server,
        process=found.process,
        pane=found.pane,
        place=found.place,
        first=found.first,
        program=found.program,
        status=status,
        previous=run.status,
        thought=outlived(run.thought, run.status, status, now),
        attached=0,
        health=Health.HEALTHY,
        stale=False,
        unseen=run.unseen or run.status.reason is Reason.DONE,
        exit_status=None,
        exit_signal=None,
        ended_at=None,
        detached=False,
    )
    words = {"from": run.status.word, "to": status.word}
    return Track(run=back), (_event(EventKind.RUN_RETURNED, back, found, now, **words),)


def remembered(run: Run) -> Run:
    """Return a stored run as it counts until it is seen again: known, and not known to be there."""
    if run.is_over:
        return run
    status = structs.replace(run.status, observed_at=None)
    return structs.replace(run, status=status, attached=0, health=Health.DISCONNECTED, stale=True)


def _event(kind: EventKind, run: Run, found: Found, now: datetime, **more: str) -> Event:
    identity = found.identity
    data = {
        "target": run.place.target,
        "agent": identity.agent if identity else None,
        "conversation": identity.conversation if identity else None,
        **more,
    }
    return Event(kind=kind, at=now, run=run.id, server=run.server.key, data=data)
