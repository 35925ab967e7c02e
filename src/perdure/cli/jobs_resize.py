"""`perdure jobs resize ID ROWSxCOLUMNS`: give a job's terminal another size."""

from __future__ import annotations

import argparse
import re

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import add_job_argument, jobs_of
from perdure.cli.render import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_job_argument(parser)
    parser.add_argument("size", metavar="ROWSxCOLUMNS", type=_size, help="such as 40x120")


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", text, re.ASCII)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is no size such as 40x120")
    return int(found[1]), int(found[2])


def _run(setup: Setup, args: argparse.Namespace) -> int:
    jobs = jobs_of(setup)
    job = jobs.find(args.job)
    rows, columns = args.size
    jobs.resize(job.id, rows, columns)
    if args.json:
        print_json({"job": job.id, "rows": rows, "columns": columns})
    return 0


run = with_setup(_run)
