"""`perdure follow TARGET`: follow a run again that was let go of, under the id it had."""

from __future__ import annotations

import argparse

import msgspec

from perdure.cli._setup import Setup, add_server_arguments, with_setup
from perdure.cli.aim import aim, let_go_of, look_around, run_by_id, run_of
from perdure.cli.ask import PATIENCE
from perdure.cli.render import print_json, printable
from perdure.daemon.call import call
from perdure.daemon.protocol import Follow
from perdure.errors import NoDaemon, NotFound
from perdure.model.run import Run


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("target", metavar="TARGET", help="a run's id, a pane's id or SESSION[:WINDOW[.PANE]]")
    add_server_arguments(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    before = run_by_id(setup, args) or _there(setup, args)
    try:
        after = msgspec.convert(call(setup.state_dir, Follow(run=before.id), PATIENCE), type=Run)
    except NoDaemon as error:
        why = "No daemon is at work here, and nobody follows anything; `perdure up` follows it again by itself."
        raise NoDaemon(why) from error
    if args.json:
        facts = {"run": after.id, "target": after.place.target, "pane": after.pane, "socket": after.server.socket}
        result = "followed" if before.detached else "already"
        print_json({"result": result, **facts, "state": after.status.word})
        return 0
    what = "followed again" if before.detached else "is followed already"
    print(printable(f"{after.id} ({after.place.target}): {what}."))
    return 0


run = with_setup(_run)


def _there(setup: Setup, args: argparse.Namespace) -> Run:
    """Return the run of the pane that is meant, whether it is followed or was let go of."""
    there, missed = look_around(setup, args)
    aimed = aim(setup, args.target, there, missed)
    found = run_of(setup, aimed) or let_go_of(aimed, setup.readable.list_runs(host=setup.host, over=True))
    if found is None:
        raise NotFound(f"Nobody has let go of {args.target!r}: what `perdure up` watches is followed by itself.")
    return found
