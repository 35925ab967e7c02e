"""Who may see what: root everything, everybody else what is about their own servers. Pure."""

from __future__ import annotations

from perdure.model.event import Event
from perdure.model.run import Run

#: Who sees everything.
ROOT = 0


def is_run_of(run: Run, uid: int) -> bool:
    """Return whether a run may be shown to a user, or told something by them."""
    return uid in (ROOT, run.server.uid)


def is_event_for(event: Event, uid: int) -> bool:
    """Return whether an event may be shown to a user. One about a run that does not say whose is shown to root alone."""
    if uid == ROOT:
        return True
    if event.server is None:
        return event.run is None
    # A server's key is HOST/UID and the path of its socket, which begins with a slash.
    _, _, rest = event.server.partition("/")
    owner, _, _ = rest.partition("/")
    return owner == str(uid)
