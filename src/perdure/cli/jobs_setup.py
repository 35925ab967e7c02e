"""What the verbs of `perdure jobs` share."""

from __future__ import annotations

import argparse
import os
import shlex

from perdure.cli._setup import Setup
from perdure.host.clock import now
from perdure.jobs.service import Jobs
from perdure.jobs.shown import why_of
from perdure.model.job import Job, Order
from perdure.model.secrets import redact_argv, redact_text


def jobs_of(setup: Setup, *, only_look: bool = False) -> Jobs:
    """Return the jobs of this user; to look at them, those that can only be read will do."""
    store = setup.readable if only_look else setup.store
    return Jobs(store.jobs, os.path.join(setup.state_dir, "jobs"), setup.config, now)


def add_job_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says which job is meant."""
    parser.add_argument("job", metavar="ID", help="a job's id, or the beginning of it")


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
