"""`perdure show SNAPSHOT [TARGET] [--scrollback]`: one snapshot, as it was kept."""

from __future__ import annotations

import argparse
import sys

import msgspec

from perdure.agents import environment_names
from perdure.cli._setup import Setup, with_setup
from perdure.cli.find import add_latest_argument, find_snapshot, panes_at
from perdure.cli.render import local, print_json, print_table, printable
from perdure.cli.rows import pane_rows
from perdure.errors import ScrollbackNotFound, UsageError
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Pane
from perdure.snapshots.redact import Discretion, redacted


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("snapshot", metavar="SNAPSHOT", help="an id, the beginning of one, or 'latest'")
    parser.add_argument("target", nargs="?", metavar="TARGET", help="SESSION[:WINDOW[.PANE]] or a pane id")
    parser.add_argument("--scrollback", action="store_true", help="print what the one pane of TARGET showed")
    add_latest_argument(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    snapshot = find_snapshot(setup.readable, args.snapshot, uid=setup.me.uid, socket=args.socket)
    panes = panes_at(snapshot.topology, args.target) if args.target is not None else snapshot.topology.panes
    if args.scrollback:
        return _print_scrollback(setup, snapshot, panes, as_json=args.json)
    harmless, private = environment_names(setup.config.agents), frozenset(setup.config.restore.environment)
    shown = redacted(snapshot, Discretion(harmless=harmless, private=private))
    ids = {pane.id for pane in panes}
    if args.json:
        print_json({"snapshot": _only(shown, ids) if args.target is not None else shown})
        return 0
    print(f"{shown.id}  {shown.server.user} {printable(shown.server.socket)}  tmux {shown.topology.process.version}")
    print(f"taken {local(shown.taken_at)}, last seen {local(shown.last_seen_at)}, from {shown.origin}\n")
    rows = [row for row in pane_rows(shown.server, shown.topology, shown.details) if row.pane_id in ids]
    columns = ["pane", "window", "command", "agent", "conversation", "size", "title", "cwd"]
    print_table(
        columns,
        [
            [row.address, row.window_name, row.command, row.agent, row.conversation, row.size, row.title, row.cwd]
            for row in rows
        ],
    )
    return 0


run = with_setup(_run)


def _only(snapshot: Snapshot, panes: set[str]) -> Snapshot:
    """Return the snapshot with nothing but these panes and what they are in."""
    topology = snapshot.topology
    kept = tuple(pane for pane in topology.panes if pane.id in panes)
    windows = {pane.window for pane in kept}
    links = tuple(link for link in topology.links if link.window in windows)
    sessions = {link.session for link in links}
    return msgspec.structs.replace(
        snapshot,
        topology=msgspec.structs.replace(
            topology,
            sessions=tuple(each for each in topology.sessions if each.id in sessions),
            windows=tuple(each for each in topology.windows if each.id in windows),
            links=links,
            panes=kept,
        ),
        details=msgspec.structs.replace(
            snapshot.details,
            sessions={id: each for id, each in snapshot.details.sessions.items() if id in sessions},
            window_flags={id: each for id, each in snapshot.details.window_flags.items() if id in windows},
            window_activity={id: each for id, each in snapshot.details.window_activity.items() if id in windows},
            panes={id: each for id, each in snapshot.details.panes.items() if id in panes},
        ),
    )


def _print_scrollback(setup: Setup, snapshot: Snapshot, panes: tuple[Pane, ...], *, as_json: bool) -> int:
    if len(panes) != 1:
        raise UsageError(f"--scrollback shows one pane, and {len(panes)} are meant; name one as SESSION:WINDOW.PANE.")
    details = snapshot.details.panes.get(panes[0].id)
    if details is None or details.scrollback is None:
        raise ScrollbackNotFound(f"No scrollback was kept of pane {panes[0].id} in snapshot {snapshot.id}.")
    text = setup.readable.read_scrollback(details.scrollback)
    if as_json:
        print_json({"snapshot": snapshot.id, "pane_id": panes[0].id, "scrollback": text.decode(errors="replace")})
    else:
        sys.stdout.buffer.write(text)
        sys.stdout.flush()
    return 0
