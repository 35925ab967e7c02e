"""How a run stands, in the words every front end shows; secrets aside. Pure."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure.live.because import because
from perdure.model.run import Run
from perdure.model.secrets import redact_text


class Standing(Struct, frozen=True, kw_only=True):
    """How a pane stands. Without a daemon nobody knows since when, or what it thinks."""

    state: str
    reason: str | None
    cause: str
    #: The cause in a sentence, for people.
    because: str
    confidence: str
    run: str | None = None
    since: datetime | None = None
    previous: str | None = None
    thought: str | None = None
    objective: str | None = None
    rest: str | None = None
    skill: str | None = None
    health: str | None = None
    theme: str | None = None
    #: Who was in the pane last, and in which conversation, where nobody is in it any more.
    last_agent: str | None = None
    last_conversation: str | None = None

    @property
    def word(self) -> str:
        """`idle`, `permission` …; with a question mark where it is not certain."""
        sure = "" if self.confidence == "high" else "?"
        return f"{self.reason or self.state}{sure}"


def standing_of(run: Run) -> Standing:
    """Return how a run stands."""
    status, thought = run.status, run.thought
    # What was asked of an agent, or used by it, is nothing of a shell that is left.
    is_left = run.identity is not None and run.tenant is None
    objective = thought.objective if thought and not is_left else None
    last = run.identity if is_left else None
    return Standing(
        state=status.state,
        reason=status.reason,
        cause=status.cause,
        because=because(status.cause),
        confidence=status.confidence if status.observed_at is not None else "low",
        run=run.id,
        since=status.since,
        previous=run.previous.word if run.previous else None,
        thought=redact_text(thought.text) if thought and thought.text else None,
        objective=redact_text(objective) if objective else None,
        rest=thought.rest if thought else None,
        skill=None if is_left else run.skill,
        health=run.health,
        theme=run.theme,
        last_agent=last.agent if last else None,
        last_conversation=last.conversation if last else None,
    )
