"""Who may see what: root everything, everybody else what is about their own servers, or in a store of their own. Pure."""

from __future__ import annotations

from perdure.model.event import Event, EventKind
from perdure.model.run import Run

#: Who sees everything.
ROOT = 0
#: What is nobody's in particular.
_EVERYBODYS = (EventKind.DAEMON_STARTED, EventKind.DAEMON_STOPPED)


def is_run_of(run: Run, uid: int) -> bool:
    """Return whether a run may be shown to a user, or told something by them."""
    return uid in (ROOT, run.server.uid)


def is_event_for(event: Event, uid: int, *, owner: int) -> bool:
    """Return whether an event may be shown to a user, `owner` being whose store it is in.

    What is about no server, chats and jobs say, is the owner's.
    """
    if uid == ROOT:
        return True
    if event.server is None:
        return event.kind in _EVERYBODYS or uid == owner
    # A server's key is HOST/UID and the path of its socket, which begins with a slash.
    _, _, rest = event.server.partition("/")
    its, _, _ = rest.partition("/")
    return its == str(uid)
