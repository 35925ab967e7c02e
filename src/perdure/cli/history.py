"""`perdure history`: the snapshots that are kept, newest first."""

from __future__ import annotations

import argparse

from perdure.cli._reading import name_unreadable
from perdure.cli._setup import Setup, count_argument, with_setup
from perdure.cli.render import local, print_json, print_table
from perdure.model.snapshot import SnapshotSummary
from perdure.snapshots.shown import snapshot_row


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--limit", type=count_argument, metavar="N", help="only the newest N")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    snapshots = setup.readable.list_snapshots(limit=args.limit)
    is_lacking = name_unreadable(setup.readable, snapshots)
    if args.json:
        print_json({"snapshots": [snapshot_row(each) for each in snapshots]})
    elif snapshots:
        columns = ["snapshot", "user", "socket", "taken", "last seen", "sessions", "windows", "panes", "agents", "from"]
        print_table(columns, [_cells(each) for each in snapshots], whole=["snapshot"])
    elif is_lacking:
        print("Nothing that is saved can be read. `perdure check` says more.")
    else:
        print("Nothing is saved yet. `perdure save` keeps what runs now.")
    return 0


run = with_setup(_run)


def _cells(each: SnapshotSummary) -> list[object]:
    times = [local(each.taken_at), local(each.last_seen_at)]
    counts = [each.sessions, each.windows, each.panes, each.agents]
    return [each.id, each.server.user, each.server.socket, *times, *counts, each.origin]
