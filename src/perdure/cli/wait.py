"""`perdure wait TARGET --until STATE`: return once a run is in one of these states."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.ask import ask_runs
from perdure.cli.render import print_json, printable
from perdure.cli.send import seconds
from perdure.daemon.call import call
from perdure.daemon.protocol import Wait
from perdure.errors import NoDaemon, RunReplaced
from perdure.host.clock import pause, ticking
from perdure.live.find import find_run
from perdure.live.meant import meant_by, stranger
from perdure.live.until import WORDS, Outcome, ended, not_reached, outcome, words_of
from perdure.model.run import Run

if TYPE_CHECKING:
    from perdure.cli.watching import Watching

#: How often the pane is looked at where nobody else does.
_EVERY = 0.5
#: How much longer than asked for the daemon may take to say that the time is up.
_GRACE = 10.0


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", metavar="TARGET", help="a run's id, a pane's id or SESSION[:WINDOW[.PANE]]")
    add_server_arguments(parser)
    parser.add_argument(
        "--until",
        required=True,
        action="append",
        metavar="STATE[,STATE…]",
        help=f"what to wait for: {', '.join(WORDS)}; idle is also what has been done and not been seen",
    )
    parser.add_argument("--timeout", type=seconds, metavar="S", help="give up after so many seconds (exit code 4)")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    until = words_of(",".join(args.until))
    deadline = None if args.timeout is None else ticking() + args.timeout
    try:
        run = _told(setup, args, until)
    except NoDaemon:
        run = _looked(setup, args, until, deadline)
    if args.json:
        print_json({"run": run.id, "target": run.place.target, "pane": run.pane, **msgspec.to_builtins(run.status)})
    else:
        print(printable(f"{run.id} ({run.place.target}): {run.status.word}"))
    return 0


run = with_setup(_run)


def _told(setup: Setup, args: argparse.Namespace, until: tuple[str, ...]) -> Run:
    """Have the daemon say when. One that ends meanwhile counts as none."""
    from perdure.cli.aim import refuse_others

    run = find_run(ask_runs(setup, args), args.target)
    if run.id == args.target:
        refuse_others(setup, run)
    patience = None if args.timeout is None else args.timeout + _GRACE
    answer = call(setup.state_dir, Wait(run=run.id, until=until, timeout=args.timeout), patience)
    return msgspec.convert(answer, type=Run)


def _looked(setup: Setup, args: argparse.Namespace, until: tuple[str, ...], deadline: float | None) -> Run:
    """Look until it is so."""
    from perdure.cli.aim import aim, look_around, refuse_others
    from perdure.cli.watching import Watching

    there, missed = look_around(setup, args)
    aimed = aim(setup, args.target, there, missed)
    if aimed.run is not None:
        refuse_others(setup, aimed.run)
    watching = Watching(setup, aimed)
    print("perdure: No daemon is at work; the pane is looked at twice a second.", file=sys.stderr, flush=True)
    while True:
        run = watching.run
        if aimed.run is not None and (why := _is_another(aimed.run, watching)):
            raise RunReplaced(f"{run.id} ({run.place.target}): {why}.")
        stands = outcome(run, until) if watching.is_settled else Outcome.WAITING
        if stands is Outcome.REACHED:
            return run
        if stands is Outcome.ENDED:
            raise ended(run, until)
        if deadline is not None and ticking() >= deadline:
            raise not_reached(run, until)
        pause(_EVERY if deadline is None else max(0.0, min(_EVERY, deadline - ticking())))
        watching.look()


def _is_another(meant: Run, watching: Watching) -> str:
    """Return why who is in the pane of an agent's run by now is not that agent, "" when it is, or nobody is."""
    there = watching.there
    if meant.identity is None or there.program is None:
        return ""
    return stranger(meant_by(meant), there, lambda: watching.run.identity)
