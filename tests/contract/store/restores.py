"""Restores to write down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from perdure.model.plan import Action, Kept, Outcome, Restore, Result, Step
from perdure.model.server import Server, ServerProcess
from tests.builders import NOON, a_server, at


def an_outcome(number: int = 0, result: Result = Result.DONE, *, kept: Kept | None = None, **said: str) -> Outcome:
    """What came of pane `%<number>`."""
    step = Step(
        n=number,
        pane=f"%{number}",
        target=f"work:0.{number}",
        action=Action.RESUME,
        agent="some",
        conversation="c0ffee",
        argv=("some", "--resume", "c0ffee"),
        environ={"SOME_HOME": "/home/dev/.some"},
        cwd="/home/dev",
        active_at=NOON,
    )
    return Outcome(step=step, result=result, pane=f"%{number + 40}", screen=("> hello", ""), kept=kept, **said)


def a_restore(
    id: str = "r1",
    *,
    snapshot: str = "0123456789abcdef",
    server: Server | None = None,
    seconds: float = 0,
    ended_at: datetime | None = None,
    outcomes: Mapping[str, Outcome] | None = None,
) -> Restore:
    """A restore that began some seconds after noon."""
    return Restore(
        id=id,
        snapshot=snapshot,
        server=server or a_server(),
        began_at=at(seconds),
        process=ServerProcess(pid=300, started_at=at(-60), version="3.4"),
        making=frozenset({"$0", "@0", "%0", "%1"}),
        ended_at=ended_at,
        outcomes=outcomes or {},
    )
