"""`perdure jobs wait ID`: return once a job has ended."""

from __future__ import annotations

import argparse
import sys

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import add_job_argument, jobs_of, sentence
from perdure.cli.render import print_json, printable
from perdure.cli.send import seconds
from perdure.errors import NotReached
from perdure.jobs.shown import answer_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_job_argument(parser)
    parser.add_argument(
        "--timeout",
        type=seconds,
        metavar="S",
        help="give up after so many seconds (exit code 4); no longer than jobs.wait_seconds, which is what it is without",
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    jobs = jobs_of(setup)
    waited = jobs.wait(jobs.find(args.job).id, args.timeout)
    if waited.note:
        print(f"perdure: {waited.note}", file=sys.stderr)
    if args.json:
        print_json(answer_of(waited.job, waited.printed, note=waited.note))
    else:
        print(printable(sentence(waited.job)))
    return NotReached.exit_code if waited.job.is_running else 0


run = with_setup(_run)
