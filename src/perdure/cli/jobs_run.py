"""`perdure jobs run -- ARGV…`: start a command that goes on when whoever started it is gone."""

from __future__ import annotations

import argparse
import os
import sys

from perdure.cli._setup import Setup, path_argument, with_setup
from perdure.cli.jobs_setup import jobs_of
from perdure.cli.render import print_json, printable
from perdure.cli.send import seconds
from perdure.errors import PerdureError, UsageError
from perdure.jobs.ordering import accepted
from perdure.model.job import LOCAL, Job, JobStatus, Notify, Order, Terminal
from perdure.model.secrets import redact_text

#: What comes behind `--` is the command.
REST = True


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "perdure jobs run [OPTIONS] (-- ARGV … | --shell TEXT)"
    parser.add_argument("--shell", metavar="TEXT", help="a text for your own shell, in place of the words behind --")
    parser.add_argument("--pty", action="store_true", help="on a terminal of its own, as interactive programs want it")
    parser.add_argument("--cwd", metavar="D", type=path_argument, help="the directory it runs in; this one, without it")
    parser.add_argument("--owner", metavar="O", help="whose it is: the key of a chat or the id of a run")
    parser.add_argument(
        "--backend", metavar="B", default=LOCAL, help="where it runs: local, this machine, or one of [jobs.backends]"
    )
    parser.add_argument(
        "--env",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_variable,
        help="a variable for it, may be given several times; others that look like secrets are not passed on",
    )
    parser.add_argument("--notify-exit", action="store_true", help="have its owner told when it ends")
    parser.add_argument(
        "--notify-on",
        metavar="TEXT",
        action="append",
        default=[],
        help="have its owner told when a line has this in it, may be given several times",
    )
    parser.add_argument(
        "--every", metavar="SECONDS", type=seconds, help="have its owner told what is new so often (at least 30)"
    )


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        # Not repeated: it may be a secret.
        raise argparse.ArgumentTypeError("a variable is given as NAME=VALUE")
    return name, value


def _run(setup: Setup, args: argparse.Namespace) -> int:
    order, notes = accepted(_order(args))
    for note in notes:
        print(f"perdure: {note}", file=sys.stderr)
    job = jobs_of(setup).spawn(order)
    if args.json:
        print_json({"job": job.id})
    else:
        print(job.id)
    if _could_not_begin(job):
        print(f"perdure: {printable(redact_text(job.why or 'It could not be started.'))}", file=sys.stderr)
        return PerdureError.exit_code
    return 0


run = with_setup(_run)


def _order(args: argparse.Namespace) -> Order:
    if args.rest and args.shell is not None:
        raise UsageError("Either --shell TEXT or the words behind -- are run, not both.")
    if not args.rest and args.shell is None:
        raise UsageError("What is to be run stands behind --, as in `perdure jobs run -- make test`.")
    return Order(
        argv=tuple(args.rest) if args.rest else None,
        shell=args.shell,
        cwd=_directory(args),
        env=dict(args.env),
        terminal=Terminal() if args.pty else None,
        owner=args.owner,
        backend=args.backend,
        notify=Notify(on_exit=args.notify_exit, patterns=tuple(args.notify_on), every_seconds=args.every),
    )


def _directory(args: argparse.Namespace) -> str:
    """Where it runs. Another machine knows nothing of where we are."""
    if args.backend != LOCAL:
        return args.cwd or ""
    return os.path.abspath(args.cwd or os.getcwd())


def _could_not_begin(job: Job) -> bool:
    return job.status is JobStatus.EXITED and job.why is not None and job.exit_code in (None, 126, 127)
