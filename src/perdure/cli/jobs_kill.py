"""`perdure jobs kill ID`: end a job with everything it has started."""

from __future__ import annotations

import argparse

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import jobs_of, sentence
from perdure.cli.render import print_json, printable
from perdure.errors import UsageError
from perdure.jobs.shown import ended_row

#: Done in part: something is left that no signal ends.
_PARTLY = 4


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("job", metavar="ID", nargs="?", help="a job's id, or the beginning of it")
    parser.add_argument(
        "--owner",
        metavar="O",
        help="in place of ID: every running job of this chat or run, and what others left behind",
    )


def _run(setup: Setup, args: argparse.Namespace) -> int:
    if (args.job is None) is (args.owner is None):
        raise UsageError("Either the ID of a job or --owner O says what is to be ended.")
    jobs = jobs_of(setup)
    if args.owner is not None:
        ended = jobs.end_all(args.owner)
        if args.json:
            print_json({"jobs": [ended_row(each) for each in ended]})
    else:
        ended = (jobs.kill(jobs.find(args.job).id),)
        if args.json:
            print_json(ended_row(ended[0]))
    if not args.json:
        for each in ended:
            print(printable(f"{sentence(each.job)}{'; it had ended before' if each.was_over else ''}"))
        if not ended:
            print(f"No job of {printable(args.owner)} is running.")
    return _PARTLY if any(each.left or each.job.is_running for each in ended) else 0


run = with_setup(_run)
