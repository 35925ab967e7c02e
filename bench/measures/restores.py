"""Restores of a server that has ended: in a process that has everything loaded, and as the program people run."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack

from bench.sandbox import BenchFailed, perdure, run
from bench.timing import Step, timed
from bench.vacant import Vacant
from perdure.cli._setup import Setup
from perdure.cli.restore import ground_of
from perdure.model.plan import Result
from perdure.restore.plan import Policy
from perdure.restore.prepare import prepare
from perdure.restore.run import restore

WARM = "restore in process"
WARM_SCROLLBACK = "restore in process, scrollback"
COLD = "perdure restore, no scrollback"
COLD_SCROLLBACK = "perdure restore"
AGAIN = "perdure restore, nothing to do"
ALL = (WARM, WARM_SCROLLBACK, COLD, COLD_SCROLLBACK, AGAIN)


def steps(vacant: Vacant, stack: ExitStack) -> dict[str, Step]:
    """Return the restores without and with scrollback, both ways, and one that finds everything there."""
    lean, full = Restorer(vacant, vacant.lean), Restorer(vacant, vacant.full)
    for restorer in (lean, full):
        stack.callback(restorer.setup.close)
    return {
        WARM: lambda: vacant.timed(lean.restore),
        WARM_SCROLLBACK: lambda: vacant.timed(full.restore),
        COLD: lambda: vacant.timed(lambda: command(vacant, vacant.lean)),
        COLD_SCROLLBACK: lambda: vacant.timed(lambda: command(vacant, vacant.full)),
        AGAIN: lambda: _again(vacant, lean),
    }


def command(vacant: Vacant, state: str) -> None:
    """Run `perdure restore`."""
    said = run([perdure(), "restore"], {**vacant.server.environ, "PERDURE_STATE_DIR": state})
    if f"{vacant.server.panes} panes made" not in said:
        raise BenchFailed(f"perdure restore: expected {vacant.server.panes} panes made, but it said: {said.strip()}")


def _again(vacant: Vacant, restorer: Restorer) -> float:
    with vacant.alone():
        restorer.restore()
        # Shells that are still starting would be measured, too.
        time.sleep(1)
        argv, environ = [perdure(), "restore"], {**vacant.server.environ, "PERDURE_STATE_DIR": vacant.lean}
        said: list[str] = []
        seconds = timed(lambda: said.append(run(argv, environ)))
        if "Nothing to do" not in said[0]:
            raise BenchFailed(f"perdure restore: expected nothing to do, but it said: {said[0].strip()}")
        return seconds


class Restorer:
    """Everything loaded, the store open."""

    def __init__(self, vacant: Vacant, state: str) -> None:
        os.environ.update(vacant.server.environ, PERDURE_STATE_DIR=state)
        self.setup = Setup()
        self._panes = vacant.server.panes
        self._ground = ground_of(self.setup)
        self._snapshot = self.setup.store.list_snapshots()[0].id

    def restore(self) -> None:
        """Read the snapshot, plan, make everything, verify it; raise when a pane did not come back."""
        snapshot = self.setup.store.get_snapshot(self._snapshot)
        policy = Policy(programs=frozenset(self.setup.config.restore.programs))
        _, outcomes = restore(
            snapshot.server,
            lambda: prepare(snapshot, self.setup.me, policy, self._ground),
            self._ground,
            most=self.setup.config.restore.max_parallel,
            report=lambda outcome: None,
        )
        if [outcome.result for outcome in outcomes] != [Result.DONE] * self._panes:
            raise BenchFailed(f"expected {self._panes} panes done, but the restore came to {outcomes}")
