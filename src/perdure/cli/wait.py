"""`perdure wait TARGET --until STATE`: return once a run is in one of these states."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

import msgspec
from msgspec import structs

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.ask import PATIENCE, ask_runs
from perdure.cli.render import print_json, printable
from perdure.cli.send import seconds
from perdure.daemon.call import call, daemon_there
from perdure.daemon.protocol import Wait
from perdure.errors import NoDaemon, NotFound, RunNotFound, RunReplaced
from perdure.host.clock import now, pause, ticking
from perdure.live.meant import meant_by, stranger
from perdure.live.until import WORDS, Outcome, ended, not_reached, outcome, words_of
from perdure.live.weigh import Track
from perdure.model.observation import Ended, Ending
from perdure.model.run import Run

if TYPE_CHECKING:
    from perdure.cli.aim import Aim
    from perdure.cli.watching import Watching
    from perdure.snapshots.look import Looked

#: How often the pane is looked at where nobody else does.
_EVERY = 0.5
#: How much longer than asked for the daemon may take to answer at all, or to say that the time is up.
_GRACE = 5.0


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
    run = _told(setup, args, until, deadline) or _looked(setup, args, until, deadline)
    if args.json:
        print_json({"run": run.id, "target": run.place.target, "pane": run.pane, **msgspec.to_builtins(run.status)})
    else:
        print(printable(f"{run.id} ({run.place.target}): {run.status.word}"))
    return 0


run = with_setup(_run)


def _told(
    setup: Setup, args: argparse.Namespace, until: tuple[str, ...], deadline: float | None, aimed: Aim | None = None
) -> Run | None:
    """Have the daemon say when; None where there is none, or it does not follow the pane (yet).

    One that ends meanwhile counts as none. The target is looked for unless it is known already.
    """
    from perdure.cli.aim import refuse_others, run_in, run_meant

    run: Run | Aim | None = None
    try:
        runs = ask_runs(setup, args, PATIENCE if deadline is None else min(PATIENCE, _left(deadline) + _GRACE))
        run = run_in(aimed, runs) if aimed is not None else run_meant(setup, args, runs)
        if not isinstance(run, Run) or (aimed is not None and aimed.run is not None and aimed.run.id != run.id):
            return None
        if run.id == args.target:
            refuse_others(setup, run)
        left = None if deadline is None else _left(deadline)
        patience = None if left is None else left + _GRACE
        answer = call(setup.state_dir, Wait(run=run.id, until=until, timeout=left), patience)
        return msgspec.convert(answer, type=Run)
    except NoDaemon:
        return None
    except RunNotFound:
        if isinstance(run, Run) and run.id != args.target:
            # It was let go of meanwhile, and whoever is in that place is meant.
            return None
        raise


def _left(deadline: float) -> float:
    return max(0.0, deadline - ticking())


def _looked(setup: Setup, args: argparse.Namespace, until: tuple[str, ...], deadline: float | None) -> Run:
    """Look until it is so. A daemon that comes to follow the pane meanwhile says so instead.

    One that knows of the pane and not yet whose it is would not say either: the run is called by its place then.
    """
    from perdure.cli.aim import aim, look_around, refuse_others
    from perdure.cli.watching import Watching

    there: list[Looked] = []
    try:
        there, missed = look_around(setup, args)
        aimed = aim(setup, args.target, there, missed)
    except NotFound:
        gone = _gone(setup, args, there)
        if gone is None or (settled := _settled(gone, until)) is None:
            raise
        return settled
    if aimed.run is not None:
        refuse_others(setup, aimed.run)
    watching = Watching(setup, aimed)
    is_watched = daemon_there(setup.state_dir)
    why = "No daemon follows it" if is_watched else "No daemon is at work"
    print(f"perdure: {why}; the pane is looked at twice a second.", file=sys.stderr, flush=True)
    while True:
        run = structs.replace(watching.run, id=watching.run.place.target) if is_watched else watching.run
        if aimed.run is not None and (why := _is_another(aimed.run, watching)):
            raise RunReplaced(f"{run.id} ({run.place.target}): {why}.")
        if watching.is_settled and (settled := _settled(run, until)) is not None:
            return settled
        if deadline is not None and ticking() >= deadline:
            raise not_reached(run, until)
        pause(_EVERY if deadline is None else min(_EVERY, _left(deadline)))
        if (told := _told(setup, args, until, deadline, aimed)) is not None:
            return told
        watching.look()


def _settled(run: Run, until: tuple[str, ...]) -> Run | None:
    """Return a run that is in one of the states, None when it may come into one. Raises `RunEnded` when it cannot."""
    stands = outcome(run, until)
    if stands is Outcome.ENDED:
        raise ended(run, until)
    return run if stands is Outcome.REACHED else None


def _gone(setup: Setup, args: argparse.Namespace, there: list[Looked]) -> Run | None:
    """Return the run whose id the target is as one that has ended, where its pane is gone for certain; else None."""
    from perdure.cli.aim import gone_run
    from perdure.live.advance import advance

    run = gone_run(setup, args, there)
    # That it is gone may not have been noted.
    return run if run is None or run.is_over else advance(Track(run=run), Ended(what=Ending.PANE), now())[0].run


def _is_another(meant: Run, watching: Watching) -> str:
    """Return why who is in the pane of an agent's run by now is not that agent, "" when it is, or nobody is."""
    there = watching.there
    if meant.identity is None or there.program is None:
        return ""
    return stranger(meant_by(meant), there, lambda: watching.run.identity)
