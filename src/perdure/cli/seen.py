"""`perdure seen TARGET`: say that you have seen how a run stands, so that `done` becomes idle."""

from __future__ import annotations

import argparse

import msgspec

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.aim import Aim, let_go_of, refuse_others, run_in, run_meant
from perdure.cli.ask import PATIENCE, ask_runs, on_socket
from perdure.cli.render import print_json, printable
from perdure.daemon.call import call
from perdure.daemon.protocol import MarkSeen
from perdure.errors import NoDaemon, RunNotFound
from perdure.host.clock import now, pause, ticking
from perdure.live.advance import advance
from perdure.live.ending import why_over
from perdure.live.weigh import Track
from perdure.model.observation import Watched
from perdure.model.run import Reason, Run

#: How long a daemon may not know of a pane: it waits so long for an agent to say whether it goes on with what was there.
_UNKNOWN = 15.0
#: How often it is asked meanwhile.
_EVERY = 0.3


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", metavar="TARGET", help="a run's id, a pane's id or SESSION[:WINDOW[.PANE]]")
    add_server_arguments(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    try:
        before, after = _told(setup, args)
    except NoDaemon:
        before, after = _recorded(setup, args)
    is_seen = before.status.reason is Reason.DONE and after.status.reason is not Reason.DONE
    if args.json:
        print_json({"run": after.id, "target": after.place.target, "seen": is_seen, "state": after.status.word})
    elif is_seen:
        print(printable(f"{after.id} ({after.place.target}): seen, and {after.status.word} now."))
    else:
        print(printable(f"{after.id} ({after.place.target}): {after.status.word}; there was nothing new to see."))
    return 0


run = with_setup(_run)


def _told(setup: Setup, args: argparse.Namespace) -> tuple[Run, Run]:
    meant = run_meant(setup, args, ask_runs(setup, args))
    before = _noticed(setup, args, meant) if isinstance(meant, Aim) else _the_same(setup, args, meant)
    answer = call(setup.state_dir, MarkSeen(run=before.id), PATIENCE)
    return before, msgspec.convert(answer, type=Run)


def _the_same(setup: Setup, args: argparse.Namespace, run: Run) -> Run:
    """Return the run somebody has seen.

    Raises `RunNotFound` when it is over, and `RunReplaced` when the screen of that id is another's by now.
    """
    if run.is_over:
        raise RunNotFound(why_over(run))
    if run.id == args.target:
        refuse_others(setup, run)
    return run


def _noticed(setup: Setup, args: argparse.Namespace, aimed: Aim) -> Run:
    """Return the run of a pane that has just been made, once the daemon knows it. Raises `RunNotFound` if it never does."""
    until = ticking() + _UNKNOWN
    while True:
        runs = ask_runs(setup, args)
        run = run_in(aimed, runs)
        if run is not None:
            return run
        if let_go_of(aimed, runs) is not None or ticking() >= until:
            raise RunNotFound(f"The daemon does not follow {args.target!r}: of {aimed.pane.id} nothing is known.")
        pause(_EVERY)


def _recorded(setup: Setup, args: argparse.Namespace) -> tuple[Run, Run]:
    """Write it down where the next daemon finds it."""
    meant = run_meant(setup, args, on_socket(list(setup.readable.list_runs(host=setup.host)), args))
    if isinstance(meant, Aim):
        raise RunNotFound(f"There is no run {args.target!r}: no daemon has recorded what is in {meant.pane.id}.")
    before = _the_same(setup, args, meant)
    if before.status.reason is not Reason.DONE:
        return before, before
    track, events = advance(Track(run=before), Watched(), now())
    setup.store.record([track.run], events)
    return before, track.run
