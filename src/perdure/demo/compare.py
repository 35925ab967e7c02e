"""What was there before, and what is there after: pane by pane. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from perdure.agents.generic import is_waiting_shell
from perdure.model.plan import Result


class Row(Struct, frozen=True, kw_only=True):
    """A pane as `perdure ls --json` tells it."""

    session: str
    window: int
    pane: int
    command: str
    agent: str | None
    conversation: str | None
    certain: bool | None
    task: str | None

    @property
    def address(self) -> str:
        """The pane as a person would name it."""
        return f"{self.session}:{self.window}.{self.pane}"

    @property
    def program(self) -> str:
        """What runs in it; one shell is as good as another."""
        return self.agent or ("shell" if is_waiting_shell((self.command,)) else self.command)


class Told(Struct, frozen=True, kw_only=True):
    """A step as `perdure restore --json` tells it."""

    target: str
    result: str
    why: str | None = None


class Line(Struct, frozen=True, kw_only=True):
    """One pane before and after."""

    pane: str
    program: str
    task: str | None = None
    #: The conversations, None where there is none.
    before: str | None = None
    after: str | None = None
    result: str
    #: What is wrong, "" when nothing is.
    why: str = ""

    @property
    def is_verified(self) -> bool:
        """Whether an agent is certainly back in its conversation."""
        return self.before is not None and self.result == Result.VERIFIED and not self.why


def compare(before: Sequence[Row], after: Sequence[Row], steps: Sequence[Told]) -> tuple[Line, ...]:
    """Return a line for every pane there was.

    An agent counts as verified when the restore says so and looking once more says the same.
    """
    now = {row.address: row for row in after}
    told = {step.target: step for step in steps}
    return tuple(_line(row, now.get(row.address), told.get(row.address)) for row in before)


def _line(was: Row, now: Row | None, step: Told | None) -> Line:
    return Line(
        pane=was.address,
        program=was.program,
        task=was.task,
        before=was.conversation,
        after=now.conversation if now else None,
        result=step.result if step else "",
        why=_wrong(was, now, step),
    )


def _wrong(was: Row, now: Row | None, step: Told | None) -> str:
    if step is None:
        return "the restore says nothing about it"
    if now is None:
        return step.why or "the pane is not there"
    if now.program != was.program:
        return step.why or f"{was.program} was there, now it is {now.program}"
    if was.agent is None:
        return ""
    if was.conversation is None:
        return "its conversation was not known before"
    if now.conversation != was.conversation:
        return step.why or "it is in another conversation"
    if not now.certain or step.result != Result.VERIFIED:
        return step.why or "it is not certain that this is the same conversation"
    return ""
