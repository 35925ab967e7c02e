"""`perdure jobs poll ID`: how a job stands, and what it printed since it was last polled."""

from __future__ import annotations

import argparse
import sys

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import add_job_argument, jobs_of, sentence
from perdure.cli.render import print_json, printable
from perdure.errors import StoreUnusable
from perdure.jobs.shown import answer_of


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_job_argument(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    jobs = jobs_of(setup, only_look=True)
    polled = jobs.poll(jobs.find(args.job).id, keep=True)
    job, printed = polled.job, polled.printed
    left = jobs.left(job)
    if args.json:
        print_json(answer_of(job, printed, left))
    else:
        sys.stdout.write(printed.text)
        sys.stdout.flush()
        print(f"perdure: {printable(sentence(job, left))}", file=sys.stderr)
    try:
        # Only now: whoever is killed before this gets it again the next time.
        jobs.given(job.id, printed.end)
    except StoreUnusable as error:
        print(f"perdure: The next poll gives this again: {error.message}", file=sys.stderr)
    return 0


run = with_setup(_run)
