"""What the verbs of `perdure jobs` share."""

from __future__ import annotations

import argparse
import os
import shlex
from datetime import datetime
from typing import Any

from msgspec import Struct

from perdure.cli._setup import Setup
from perdure.host.clock import now
from perdure.jobs.reading import Printed
from perdure.jobs.service import Jobs
from perdure.jobs.standing import uptime
from perdure.model.job import Job, Order
from perdure.model.secrets import redact_argv, redact_text


class JobRow(Struct, frozen=True, kw_only=True):
    """One job, as `--json` shows it, secrets aside."""

    job: str
    status: str
    exit_code: int | None
    #: Its words, or the text for the shell.
    argv: tuple[str, ...] | None
    shell: str | None
    cwd: str
    owner: str | None
    backend: str
    pty: bool
    #: None before it has begun.
    pid: int | None
    ordered_at: datetime
    ended_at: datetime | None
    #: In seconds.
    uptime: float
    #: In words, when there is more to say than the code.
    why: str | None
    #: How many processes go on that it left behind when it ended.
    left: int


def jobs_of(setup: Setup, *, only_look: bool = False) -> Jobs:
    """Return the jobs of this user; to look at them, those that can only be read will do."""
    store = setup.readable if only_look else setup.store
    return Jobs(store.jobs, os.path.join(setup.state_dir, "jobs"), setup.config, now)


def add_job_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says which job is meant."""
    parser.add_argument("job", metavar="ID", help="a job's id, or the beginning of it")


def job_row(job: Job, at: datetime, left: int) -> JobRow:
    """Return a job for scripts, `left` of whose processes go on though it has ended."""
    order = job.order
    return JobRow(
        job=job.id,
        status=job.status.value,
        exit_code=job.exit_code,
        argv=None if order.argv is None else redact_argv(order.argv),
        shell=None if order.shell is None else redact_text(order.shell),
        cwd=order.cwd,
        owner=order.owner,
        backend=order.backend,
        pty=order.terminal is not None,
        pid=None if job.process is None else job.process.pid,
        ordered_at=job.ordered_at,
        ended_at=job.ended_at,
        uptime=round(uptime(job, at), 3),
        why=why_of(job, left),
        left=left,
    )


def why_of(job: Job, left: int = 0) -> str | None:
    """Return what there is to say of a job besides its status and code, secrets aside."""
    said = [] if job.why is None else [redact_text(job.why)]
    if job.is_running and job.began_at is None:
        said.append("It has not begun yet.")
    if left:
        said.append(
            f"{left} process{'' if left == 1 else 'es'} that it left behind still run{'s' if left == 1 else ''}."
        )
    return " ".join(said) or None


def answer(job: Job, printed: Printed, left: int = 0, **more: Any) -> dict[str, Any]:
    """Return how a job stands and what it printed, for scripts. What there is nothing to say about is left out."""
    facts = {
        "job": job.id,
        "status": job.status.value,
        "exit_code": job.exit_code,
        "output": printed.text,
        "truncated": printed.truncated,
    }
    also = {"why": why_of(job, left), "left": left or None, **more}
    return {**facts, **{name: value for name, value in also.items() if value is not None}}


def sentence(job: Job, left: int = 0) -> str:
    """Return how a job stands, for people."""
    code = "" if job.exit_code is None else f" ({job.exit_code})"
    why = why_of(job, left)
    return f"{job.id} {job.status}{code}{'' if why is None else f': {why}'}"


def command_line(order: Order) -> str:
    """Return what a job runs in one line, for people, secrets aside."""
    if order.shell is not None:
        return redact_text(order.shell)
    return shlex.join(redact_argv(order.argv or ()))
