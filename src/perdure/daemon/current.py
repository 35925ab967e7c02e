"""The runs as they were last written down: a copy that never changes, for everybody who only wants to look."""

from __future__ import annotations

from collections.abc import Iterable

from perdure.model.run import Run


class Current:
    """A published state. Whoever holds one may look at it from any thread, for as long as they like."""

    def __init__(self, runs: Iterable[Run] = (), version: int = 0) -> None:
        #: Grows with every change; the same number is the same runs, as long as the daemon lives.
        self.version = version
        #: The runs whose panes are there, in the order of their ids.
        self.runs = tuple(runs)
        self._by_id = {run.id: run for run in self.runs}

    def get(self, id: str) -> Run | None:
        """Return a run whose pane is there."""
        return self._by_id.get(id)

    def follow(self, runs: Iterable[Run]) -> Current:
        """Return what is to be published next: this very one when nothing has changed."""
        fresh = tuple(runs)
        if len(fresh) == len(self.runs) and all(a is b for a, b in zip(fresh, self.runs, strict=True)):
            return self
        return Current(fresh, self.version + 1)
