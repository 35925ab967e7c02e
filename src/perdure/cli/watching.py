"""Following one pane from a command, where no daemon does: everything is looked at again and again."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import datetime
from itertools import count, islice

from msgspec import structs

from perdure.cli._setup import Setup
from perdure.cli.aim import Aim
from perdure.cli.standing import tenant_of
from perdure.daemon.seeing import at_prompt, on_screen, told
from perdure.errors import StoreUnusable
from perdure.host.clock import now
from perdure.live.meant import There
from perdure.live.supervise import Supervisor
from perdure.model.observation import Ended, Ending, Passed
from perdure.model.run import Reason, Run, RunState, Status, number_of
from perdure.model.snapshot import Capture, Miss
from perdure.snapshots.look import Looked
from perdure.tmux.glance import glance


class Watching:
    """One pane, what is known of its run, and what every look makes of it. Nothing of it is recorded."""

    def __init__(self, setup: Setup, aimed: Aim) -> None:
        self._setup = setup
        self._server = aimed.capture.server
        self._numbers = count()
        at = now()
        self._supervisor = Supervisor(_anew(run, at) for run in _known(setup))
        self._take_in(aimed.capture, at)
        found = self._supervisor.in_pane(self._server.key, aimed.pane.id)
        assert found is not None, "every pane of a capture has a run"
        self._id = found.id
        self._look_into(aimed.capture, found, at)

    @property
    def run(self) -> Run:
        """The run as of the last look; one that was never recorded is called by its place."""
        run = self._supervisor.get(self._id)
        assert run is not None
        return run if number_of(run.id) is not None else structs.replace(run, id=run.place.target)

    @property
    def there(self) -> There:
        """Who was in the pane at the last look."""
        run, track = self.run, self._supervisor.track(self._id)
        launchers = track.launchers if track is not None else ()
        return There(first=run.first, agent=run.agent, program=run.program, launchers=launchers)

    @property
    def is_settled(self) -> bool:
        """Whether what was seen last is its state, and not only about to be."""
        track = self._supervisor.track(self._id)
        return track is None or track.pending is None

    def look(self) -> None:
        """Look again. A server that does not answer changes nothing; one that is gone has ended."""
        question = argparse.Namespace(socket=self._server.socket, all_users=False)
        at = now()
        for each in self._setup.look(self._setup.ask(question), at):
            if isinstance(each, Looked):
                self._take_in(each.capture, at)
                run = self._supervisor.get(self._id)
                if run is not None and not run.is_over:
                    self._look_into(each.capture, run, at)
            elif each.reason in (Miss.NO_SERVER, Miss.EMPTY):
                self._supervisor.observe(self._id, Ended(what=Ending.SERVER), at)
        self._supervisor.observe(self._id, Passed(), at)

    def _take_in(self, capture: Capture, at: datetime) -> None:
        self._supervisor.discover([capture], self._unrecorded, at, reason="", at_once=True)

    def _unrecorded(self, many: int) -> list[str]:
        """Return names nothing is ever recorded under, each once."""
        return [f"?{number}" for number in islice(self._numbers, many)]

    def _look_into(self, capture: Capture, run: Run, at: datetime) -> None:
        pane = next((each for each in capture.topology.panes if each.id == run.pane), None)
        tenant = tenant_of(self._setup, capture, pane) if pane is not None and not pane.dead else None
        if tenant is None:
            reading, _ = at_prompt(run.first, at) if run.first is not None else (None, None)
            if reading is not None:
                self._supervisor.observe(run.id, reading, at)
            return
        for reading in told(tenant):
            self._supervisor.observe(run.id, reading, at)
        owner, timeout = self._setup.user_of(capture.server), self._setup.config.tmux.timeout_seconds
        seen = glance(capture.server.socket, owner, {run.pane: True}, timeout=timeout)
        glimpse = seen.panes.get(run.pane) if seen is not None else None
        if glimpse is not None and glimpse.lines is not None:
            self._supervisor.observe(run.id, on_screen(tenant, glimpse.lines, glimpse.title, at), at)


def _known(setup: Setup) -> Sequence[Run]:
    try:
        return setup.readable.list_runs(host=setup.host)
    except StoreUnusable:
        return ()


def _anew(run: Run, at: datetime) -> Run:
    """Return a run without what may have passed since it was recorded: only `done` and `exited` stay until something else."""
    if run.status.reason is Reason.DONE or run.status.state is RunState.EXITED:
        return run
    return structs.replace(run, status=Status(since=max(at, run.status.since)))
