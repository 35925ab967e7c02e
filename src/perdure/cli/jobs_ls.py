"""`perdure jobs ls`: jobs, the one that was started last first."""

from __future__ import annotations

import argparse

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import command_line, jobs_of
from perdure.cli.render import age, lasting, print_json, print_table
from perdure.errors import StoreUnusable
from perdure.host.clock import now
from perdure.jobs.shown import job_row, why_of
from perdure.jobs.upkeep import recover

#: As much of a command is shown, in characters; `--json` has all of it.
_LONGEST = 200


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--owner", metavar="O", help="only jobs of this chat or run")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--running", dest="is_running", action="store_const", const=True, help="only those that run")
    which.add_argument("--ended", dest="is_running", action="store_const", const=False, help="only those that ended")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    jobs = jobs_of(setup, only_look=True)
    try:
        recover(jobs)
    except StoreUnusable:
        pass  # what is written down can be listed all the same
    at = now()
    found = jobs.list(owner=args.owner, is_running=args.is_running)
    if args.json:
        print_json({"jobs": [job_row(job, at, jobs.left(job)) for job in found]})
        return 0
    if not found:
        print("There is no job like that. `perdure jobs run -- COMMAND` starts one.")
        return 0
    rows = [
        (
            job.id,
            job.status,
            job.exit_code,
            age(job.ended_at, at) if job.ended_at else f"for {lasting(job.began_at or job.ordered_at, at)}",
            job.order.owner,
            _shortened(command_line(job.order)),
            why_of(job, jobs.left(job)),
        )
        for job in found
    ]
    columns = ("job", "status", "code", "since", "owner", "command", "why")
    print_table(columns, rows, whole=("job", "status", "code", "since"), spare=("why", "owner"))
    return 0


run = with_setup(_run)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
