"""Runs and events to write down."""

from __future__ import annotations

import msgspec

from perdure.model.event import Event, EventKind
from perdure.model.identity import AgentDetails
from perdure.model.run import Confidence, Place, Program, Reason, Run, RunState, Status
from perdure.model.server import ServerProcess
from perdure.model.thought import Cue, Delivery, Thought
from tests.builders import a_server, an_identity, at


def a_run(id: str = "r1", **changes: object) -> Run:
    """A run of which everything is known."""
    run = Run(
        id=id,
        server=a_server(),
        place=Place(session="work", window=1, pane=0, window_name="main"),
        pane="%3",
        status=Status(
            state=RunState.ATTENTION,
            reason=Reason.PERMISSION,
            cause="screen:asks",
            confidence=Confidence.HIGH,
            since=at(-5),
            observed_at=at(-1),
        ),
        created_at=at(-600),
        process=ServerProcess(pid=300, started_at=at(-3600), version="3.4"),
        first=Program(pid=4003, start_ticks=77),
        program=Program(pid=4100, start_ticks=88),
        previous=Status(state=RunState.BUSY, since=at(-60)),
        identity=an_identity(),
        details=AgentDetails(task="mend the roof", model="some-model"),
        command="some",
        cwd="/home/dev/roof",
        title="roof",
        last_activity_at=at(-2),
        attached=2,
        thought=Thought(at=at(-3), text="Looks for tiles", cues=(Cue.AWAITING_USER,), delivery=Delivery(seq=4)),
    )
    return msgspec.structs.replace(run, **changes)


def an_event(kind: EventKind = EventKind.STATE_CHANGED, *, run: str | None = "r1", **changes: object) -> Event:
    """Something that happened to a run at noon."""
    event = Event(kind=kind, at=at(0), run=run, server=a_server().key, data={"to": "busy", "from": "idle"})
    return msgspec.structs.replace(event, **changes)
