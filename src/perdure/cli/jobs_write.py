"""`perdure jobs write ID TEXT`: write to a job's standard input."""

from __future__ import annotations

import argparse
import os
import sys

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import add_job_argument, jobs_of
from perdure.cli.render import print_json
from perdure.errors import UsageError

#: What comes behind `--` is text, whatever it looks like.
REST = True
#: Done in part: the job does not read, and no more can wait for it.
_PARTLY = 4


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_job_argument(parser)
    parser.add_argument("text", metavar="TEXT", nargs="?", help="what is written; `-`: what comes in here")


def write(setup: Setup, args: argparse.Namespace, *, submits: bool) -> int:
    """Write what the arguments say, as a line if it `submits`, and say how much of it was taken."""
    jobs = jobs_of(setup)
    data = _data(args)
    job = jobs.find(args.job)
    taken = (jobs.submit if submits else jobs.write)(job.id, data)
    whole = len(data) + submits
    if args.json:
        print_json({"job": job.id, "bytes_written": taken})
    elif taken < whole:
        print(f"perdure: Only {taken} of {whole} bytes were taken: the job does not read.", file=sys.stderr)
    return 0 if taken >= whole else _PARTLY


def _data(args: argparse.Namespace) -> bytes:
    words = [*([] if args.text is None else [args.text]), *(args.rest or ())]
    if len(words) != 1:
        raise UsageError("One text is written: quote it, and put -- before it when it begins with a dash.")
    return sys.stdin.buffer.read() if words == ["-"] and not args.rest else os.fsencode(words[0])


def _run(setup: Setup, args: argparse.Namespace) -> int:
    return write(setup, args, submits=False)


run = with_setup(_run)
