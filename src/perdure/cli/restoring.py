"""How far a restore has come, for people and for scripts."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from perdure.cli.render import print_json
from perdure.model.plan import Action, Outcome, Result, Step
from perdure.restore.shown import ProgressLine, StepRow, step_row

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from perdure.restore.prepare import Prepared


def row_of(number: int, ready: Prepared, outcome: Outcome) -> StepRow:
    """Return the row of an outcome."""
    step = outcome.step
    width = next((pane.width for pane in ready.snapshot.topology.panes if pane.id == step.pane), 80)
    return step_row(number, ready.plan.server, outcome, width=width)


def planned_of(step: Step) -> Outcome:
    """Return how a step stands before anything is done."""
    is_left = step.action in (Action.KEEP, Action.LEAVE)
    return Outcome(step=step, result=Result.SKIPPED if is_left else Result.PLANNED, why=step.why)


class Lines:
    """How far a restore has come, as a line of JSON for the plan and for every step that is settled.

    `first` is the number of its first step that is told.
    """

    def __init__(self, first: int, is_told: Callable[[Step], bool]) -> None:
        self._first = first
        self._is_told = is_told
        self._numbers: dict[str, int] = {}
        self._ready: Prepared | None = None

    def plan(self, ready: Prepared) -> None:
        """Tell what will be done."""
        self._ready = ready
        steps = list(filter(self._is_told, ready.plan.steps))
        self._numbers = {step.pane: number for number, step in enumerate(steps, self._first)}
        rows = [row_of(self._numbers[step.pane], ready, planned_of(step)) for step in steps]
        print_json(ProgressLine(planned=tuple(rows)))

    def note(self, outcome: Outcome) -> None:
        """Tell how a step stands now."""
        if self._ready is not None and self._is_told(outcome.step):
            print_json(ProgressLine(step=row_of(self._numbers[outcome.step.pane], self._ready, outcome)))


def say(sentence: str) -> None:
    """Tell whoever follows a restore line by line why nothing happens."""
    print_json(ProgressLine(said=sentence))


class Progress:
    """How far a restore has come, as a bar on a terminal, and as nothing elsewhere."""

    def __init__(self, total: int, *, shown: bool) -> None:
        self._total = total
        self._shown = shown and sys.stderr.isatty()
        self._settled: set[str] = set()
        self._bar: Bar | None = None

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
            from rich.progress import Progress as Bar

            columns = (TextColumn("restoring"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[last]}"))
            self._bar = Bar(*columns, console=Console(stderr=True), transient=True)
            self._bar.start()
            self._task = self._bar.add_task("", total=self._total, last="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def note(self, outcome: Outcome) -> None:
        """Count a pane that is settled; a later word about the same one is no other pane."""
        self._settled.add(outcome.step.pane)
        if self._bar is not None:
            from rich.markup import escape

            self._bar.update(self._task, completed=len(self._settled), last=escape(outcome.step.target))
