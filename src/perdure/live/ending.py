"""Letting go of a run whose pane lives on, and what is said of runs that are over. Pure."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from perdure.model.event import Event, EventKind
from perdure.model.run import Health, Run

#: Why a run is gone that somebody asked to be gone.
ASKED = "api_delete"


def detached(run: Run, now: datetime) -> tuple[Run, Event]:
    """Return a run that is no longer followed, and what has happened. Its pane, and all in it, stays as it is."""
    over = structs.replace(run, ended_at=now, health=Health.DISCONNECTED, detached=True)
    data = {"reason": ASKED, "mode": "detach", "tmux_alive": True, "target": run.place.target}
    return over, Event(kind=EventKind.RUN_DELETED, at=now, run=run.id, server=run.server.key, data=data)


def why_over(run: Run) -> str:
    """Return in a sentence why nothing can be done to a run, and what can be instead."""
    if run.detached:
        where = f"its pane, {run.pane} ({run.place.target}), was left as it was"
        again = f"`perdure follow {run.id}` does so again"
        return f"{run.id} is not followed any more, as somebody asked for; {where}, and can be named by that; {again}."
    back = "`perdure restore` brings back what ended with its server, `perdure restore --from ID` what was closed"
    return f"The pane of {run.id} is gone; {back}."
