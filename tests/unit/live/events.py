"""Events and runs for tests of what is live."""

from __future__ import annotations

import msgspec

from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Confidence, Place, Reason, Run, RunState, Status
from tests.builders import NOON, a_server, at


def an_event(
    seq: int, kind: EventKind = EventKind.TITLE_CHANGED, *, run: str | None = "r1", uid: int = 1000
) -> StoredEvent:
    """An event about a run of a user's server."""
    server = a_server(uid=uid).key
    return StoredEvent(seq=seq, event=Event(kind=kind, at=at(seq), run=run, server=server, data={"title": f"t{seq}"}))


def a_status(state: RunState = RunState.IDLE, reason: Reason | None = None) -> Status:
    """A status we are sure of."""
    return Status(
        state=state, reason=reason, cause="screen:prompt", confidence=Confidence.HIGH, since=NOON, observed_at=NOON
    )


def a_run(id: str = "r1", *, session: str = "work", window: int = 0, pane: int = 0, **changes: object) -> Run:
    """A run in a pane of the default server; the pane's id is `%<number of the run>`."""
    run = Run(
        id=id,
        server=a_server(),
        place=Place(session=session, window=window, pane=pane, window_name="main"),
        pane=f"%{id[1:]}",
        status=a_status(),
        created_at=NOON,
    )
    return msgspec.structs.replace(run, **changes)
