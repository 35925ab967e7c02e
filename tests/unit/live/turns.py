"""Turns as adapters tell them, for tests of what is made of them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import structs

from perdure.agents._records import turn
from perdure.model.identity import AgentDetails
from perdure.model.run import Program, Reason, Run, RunState
from tests.builders import an_identity
from tests.unit.live.events import a_run, a_status

Turn = Mapping[str, object]


def asked(text: str) -> Turn:
    """A person's words."""
    return turn("user", text)


def said(text: str, *, final: bool | None = None) -> Turn:
    """An agent's words."""
    return turn("assistant", text, final=final)


def called(tool: str, detail: str | None = None) -> Turn:
    """A call."""
    return turn("assistant", None, tool=tool, detail=detail)


def returned(tool: str, detail: str | None = None, *, failed: bool | None = False, text: str = "ok") -> Turn:
    """The answer to a call."""
    return turn("tool", text, tool=tool, detail=detail, failed=failed)


def done(tool: str, detail: str | None = None, *, failed: bool | None = False) -> list[Turn]:
    """A call and its answer."""
    return [called(tool, detail), returned(tool, detail, failed=failed)]


def an_agent(state: RunState = RunState.BUSY, reason: Reason | None = None, **changes: object) -> Run:
    """A run with an agent in it."""
    run = a_run(
        status=a_status(state, reason),
        identity=an_identity(),
        program=Program(pid=20, start_ticks=20),
        details=AgentDetails(transcript="/home/dev/c.jsonl"),
        cwd="/home/dev/work",
    )
    return structs.replace(run, **changes)
