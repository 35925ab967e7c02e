"""`perdure seen TARGET`: say that you have seen how a run stands, so that `done` becomes idle."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import msgspec

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.aim import refuse_others
from perdure.cli.ask import PATIENCE, ask_runs, on_socket
from perdure.cli.render import print_json, printable
from perdure.daemon.call import call
from perdure.daemon.protocol import MarkSeen
from perdure.errors import NoDaemon
from perdure.host.clock import now
from perdure.live.advance import advance
from perdure.live.find import find_run
from perdure.live.weigh import Track
from perdure.model.observation import Watched
from perdure.model.run import Reason, Run


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", metavar="TARGET", help="a run's id, a pane's id or SESSION[:WINDOW[.PANE]]")
    add_server_arguments(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    try:
        before, after = _told(setup, args)
    except NoDaemon:
        before, after = _recorded(setup, args)
    was_done = before.status.reason is Reason.DONE
    if args.json:
        print_json({"run": after.id, "target": after.place.target, "seen": was_done, "state": after.status.word})
    elif was_done:
        print(printable(f"{after.id} ({after.place.target}): seen, and {after.status.word} now."))
    else:
        print(printable(f"{after.id} ({after.place.target}): {after.status.word}; there was nothing new to see."))
    return 0


run = with_setup(_run)


def _told(setup: Setup, args: argparse.Namespace) -> tuple[Run, Run]:
    before = _meant(setup, args, ask_runs(setup, args))
    answer = call(setup.state_dir, MarkSeen(run=before.id), PATIENCE)
    return before, msgspec.convert(answer, type=Run)


def _meant(setup: Setup, args: argparse.Namespace, runs: Sequence[Run]) -> Run:
    """Return the run somebody has seen. Raises `RunReplaced` when the screen of that id is another's by now."""
    run = find_run(runs, args.target)
    if run.id == args.target:
        refuse_others(setup, run)
    return run


def _recorded(setup: Setup, args: argparse.Namespace) -> tuple[Run, Run]:
    """Write it down where the next daemon finds it."""
    before = _meant(setup, args, on_socket(list(setup.readable.list_runs(host=setup.host)), args))
    if before.status.reason is not Reason.DONE:
        return before, before
    track, events = advance(Track(run=before), Watched(), now())
    setup.store.record([track.run], events)
    return before, track.run
