"""A restore as programs get to see it: what `perdure restore --json` prints, and how far it has come meanwhile."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class StepRow(Struct, frozen=True, kw_only=True):
    """What becomes of one pane, or became of it, secrets aside."""

    n: int
    target: str
    action: str
    agent: str | None
    conversation: str | None
    argv: tuple[str, ...]
    cwd: str
    result: str
    why: str
    user: str
    socket: str
    #: The pane's id now.
    pane: str | None
    #: The last lines of a pane something is wrong with.
    screen: tuple[str, ...]


class Summary(Struct, frozen=True, kw_only=True):
    """How many panes came to what."""

    panes: int = 0
    created: int = 0
    resumed: int = 0
    verified: int = 0
    skipped: int = 0
    failed: int = 0


class Trouble(Struct, frozen=True, kw_only=True):
    """Why nothing is brought back on one server; it is nobody else's trouble."""

    user: str
    socket: str
    message: str
    code: int


class Restored(Struct, frozen=True, kw_only=True):
    """What a restore came to, or would come to."""

    #: The first of `snapshots`.
    snapshot: str | None
    snapshots: tuple[str, ...]
    steps: tuple[StepRow, ...]
    summary: Summary
    errors: tuple[Trouble, ...]


class ProgressLine(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A line of `--progress`: exactly one of these is there.

    What is planned takes the place of everything planned from the same number on.
    """

    planned: tuple[StepRow, ...] | None = None
    step: StepRow | None = None
    #: The last line.
    restored: Restored | None = None
    #: The last line instead, when it could not be done.
    error: dict[str, Any] | None = None
