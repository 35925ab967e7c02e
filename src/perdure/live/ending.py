"""Letting go of a run whose pane lives on. Pure."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from perdure.model.event import Event, EventKind
from perdure.model.run import Health, Run

#: Why a run is gone that somebody asked to be gone.
ASKED = "api_delete"


def detached(run: Run, now: datetime) -> tuple[Run, Event]:
    """Return a run that is no longer followed, and what has happened. Its pane, and all in it, stays as it is."""
    over = structs.replace(run, ended_at=now, health=Health.DISCONNECTED)
    data = {"reason": ASKED, "mode": "detach", "tmux_alive": True, "target": run.place.target}
    return over, Event(kind=EventKind.RUN_DELETED, at=now, run=run.id, server=run.server.key, data=data)
