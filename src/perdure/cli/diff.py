"""`perdure diff A [B]`: what differs between two snapshots, or between one and now."""

from __future__ import annotations

import argparse

from perdure.cli._setup import Setup, with_setup
from perdure.cli.find import add_latest_argument, find_snapshot
from perdure.cli.render import print_json, printable
from perdure.errors import Unanswered
from perdure.host.clock import now
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Topology
from perdure.snapshots.diff import Change, as_text
from perdure.snapshots.shown import shown_changes


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("a", metavar="A", help="a snapshot's id, the beginning of one, or 'latest'")
    parser.add_argument("b", nargs="?", metavar="B", help="another; left out: what runs now")
    add_latest_argument(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    before = find_snapshot(setup.readable, args.a, uid=setup.me.uid, socket=args.socket)
    later = None if args.b is None else find_snapshot(setup.readable, args.b, uid=setup.me.uid, socket=args.socket)
    after = _live(setup, before) if later is None else later.topology
    changes = shown_changes(before.topology, after, setup.config.restore.environment)
    if args.json:
        print_json({"a": before.id, "b": later and later.id, "changes": changes})
        return 0
    print(printable(_heading(before, later)))
    for change in changes:
        print(printable(_sentence(change)))
    if not changes:
        print("No difference.")
    return 0


run = with_setup(_run)


def _heading(before: Snapshot, later: Snapshot | None) -> str:
    """Say what is compared with what: whose server, and whether it is the same one."""
    left, right = f"{before.id} of {before.server.user} {before.server.socket}", "now"
    if later is not None:
        same = later.server == before.server
        right = later.id if same else f"{later.id} of another server, {later.server.user} {later.server.socket}"
    return f"{left} -> {right}"


def _live(setup: Setup, snapshot: Snapshot) -> Topology:
    """Return what runs now on the server the snapshot is of; no server is an empty one, no answer a failure."""
    from perdure.model.snapshot import Miss, Missed

    question = setup.ask(argparse.Namespace(socket=snapshot.server.socket, all_users=False))
    looked = setup.look(question, now())[0]
    if not isinstance(looked, Missed):
        return looked.capture.topology
    if looked.reason in (Miss.NO_SERVER, Miss.EMPTY):
        return Topology(process=snapshot.topology.process)
    raise Unanswered(looked.message)


def _sentence(change: Change) -> str:
    if change.change != "changed":
        return f"{'-' if change.change == 'gone' else '+'} {change.kind} {change.target}"
    return f"~ {change.kind} {change.target} {change.property}: {as_text(change.before)} -> {as_text(change.after)}"
