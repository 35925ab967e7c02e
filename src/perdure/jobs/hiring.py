"""Handing an order to somebody who looks after it: the foreman of a jobs directory, who is started when there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perdure.jobs.place import Began
from perdure.model.job import Terminal

#: How long the whole of it may take, in seconds.
PATIENCE = 30.0


def start(
    jobs_dir: str,
    id: str,
    *,
    argv: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    terminal: Terminal | None = None,
    cap: int,
    outside: tuple[str, ...] = (),
    patience: float = PATIENCE,
) -> Began | None:
    """Start a job, and return how it began: its command is running then, or was, or `JobPlace.ended` says why not.

    A command that cannot be started is a job that ended: code 127 when there is no such program or directory, 126 when
    it may not be run. None: it ended without ever becoming a process, for the reason `ended` gives. PERDURE_JOB=ID is
    added to `env`, which is otherwise all the command gets. The job outlives this process and, by the words `outside`
    (`host.scope.outside_service`), the service it belongs to. Asked a second time with the same id nothing is started
    twice: `Refused`. Raises PerdureError when nobody could be found to start it; then it will never run.
    """
    raise NotImplementedError
