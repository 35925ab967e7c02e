"""`perdure jobs close ID`: let a job read the end of its input."""

from __future__ import annotations

import argparse

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import add_job_argument, jobs_of
from perdure.cli.render import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_job_argument(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    jobs = jobs_of(setup)
    job = jobs.find(args.job)
    jobs.close_stdin(job.id)
    if args.json:
        print_json({"job": job.id, "result": "closed"})
    return 0


run = with_setup(_run)
