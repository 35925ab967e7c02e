"""`perdure jobs log ID`: what a job printed, standard error to standard error."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator

from perdure.cli._setup import Setup, with_setup
from perdure.cli.jobs_setup import add_job_argument, jobs_of
from perdure.cli.render import print_json
from perdure.errors import UsageError
from perdure.host.clock import pause
from perdure.jobs import output
from perdure.jobs.reading import stretches_of
from perdure.jobs.service import Jobs
from perdure.jobs.shown import log_row
from perdure.model.job import Job, Output

#: How often it is looked whether there is more.
_EVERY = 0.1
_PIECE = 1 << 20


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_job_argument(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on with what it prints until it has ended")
    parser.add_argument("--offset", type=_lines, metavar="N", help="from line N on; the first is 0")
    parser.add_argument("--limit", type=_lines, metavar="N", help="so many lines from there on")
    parser.add_argument("--tail", type=_lines, metavar="N", help="the last so many lines")


def _lines(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 12):
        raise argparse.ArgumentTypeError(f"{text[:20]!r} is not a number of lines")
    return int(text)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    jobs = jobs_of(setup, only_look=True)
    job = jobs.find(args.job)
    if args.follow:
        return _follow(jobs, job, args)
    if args.json:
        print_json(log_row(jobs.log(job.id, offset=args.offset, limit=args.limit, tail=args.tail)))
    elif (args.offset, args.limit, args.tail) == (None, None, None):
        _print_pieces(jobs.path(job), 0, job.id, is_over=True)
    else:
        most = setup.config.jobs.log_bytes
        log = jobs.log(job.id, offset=args.offset, limit=args.limit, tail=args.tail, most=most)
        if args.tail is None and log.first > (args.offset or 0):
            _note(f"Lines before number {log.first} are no longer kept.")
        _print(log.stretches)
    return 0


run = with_setup(_run)


def _follow(jobs: Jobs, job: Job, args: argparse.Namespace) -> int:
    """Print what there is and what comes, until the job has ended and all of it is printed."""
    if args.offset is not None or args.limit is not None:
        raise UsageError("-f goes on to the end, and begins with the last lines (--tail) or with the first.")
    directory = jobs.path(job)
    at = 0
    if args.tail is not None:
        at = output.lines(directory, -1, args.tail, most=jobs.config.log_bytes).output.start
    while True:
        # Asked before it is read: what was printed up to the end is there then.
        is_over = not jobs.get(job.id).is_running
        at = (_print_texts if args.json else _print_pieces)(directory, at, job.id, is_over)
        if is_over:
            return 0
        pause(_EVERY)


def _print_texts(directory: str, at: int, id: str, is_over: bool) -> int:
    """Print what there is from a place on, one object a line, and return where the rest begins."""
    while (piece := output.read_text(directory, at, _PIECE, is_over=is_over)).end > at:
        print_json({"job": id, "start": piece.start, "end": piece.end, "output": piece.text})
        at = piece.end
    return at


def _print_pieces(directory: str, at: int, id: str, is_over: bool) -> int:
    """Print what there is from a place on, as it is, and return where the rest begins."""
    for piece in _pieces(directory, at):
        if piece.missing:
            _note(f"{piece.missing} bytes that were printed here are not kept.")
        _print(stretches_of(piece))
        at = piece.end
    return at


def _pieces(directory: str, start: int) -> Iterator[Output]:
    """Yield what is kept from a place on."""
    while (piece := output.read(directory, start, _PIECE)).data:
        yield piece
        start = piece.end


def _note(sentence: str) -> None:
    print(f"perdure: {sentence}", file=sys.stderr, flush=True)


def _print(stretches: Iterable[tuple[bool, bytes]]) -> None:
    for is_error, data in stretches:
        stream = (sys.stderr if is_error else sys.stdout).buffer
        stream.write(data)
        stream.flush()
