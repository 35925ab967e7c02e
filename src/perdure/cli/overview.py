"""`perdure`: how things stand, and what to do next."""

from __future__ import annotations

import argparse

from perdure.cli._reading import name_unreadable
from perdure.cli._setup import Setup, with_setup
from perdure.cli.missed import report, unanswered
from perdure.cli.render import age, counted, print_json, printable
from perdure.host.clock import now
from perdure.model.snapshot import CAPTURED, SnapshotSummary
from perdure.snapshots.look import Looked


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: the bare command has no arguments of its own."""


def _run(setup: Setup, args: argparse.Namespace) -> int:
    at = now()
    looked = setup.look(setup.ask(argparse.Namespace(socket=None, all_users=False)), at)
    running = [each.capture.topology for each in looked if isinstance(each, Looked)]
    panes = sum(len(each.panes) for each in running)
    # One that is only kept for a pane does not run.
    known = [pane.identity for each in running for pane in each.panes if pane.identity and not pane.identity.is_kept]
    agents, certain = len(known), sum(identity.certain for identity in known)
    last = _last_per_server(setup.readable.list_snapshots())
    name_unreadable(setup.readable, last)
    newest = max((each.last_seen_at for each in last), default=None)
    if args.json:
        saved = {"panes": sum(each.panes for each in last), "agents": sum(each.agents for each in last)}
        live = {"servers": len(running), "panes": panes, "agents": agents, "certain": certain}
        print_json({"live": live, "saved": {**saved, "last_seen_at": newest}})
        return report(unanswered(looked))
    where = f"{counted(panes, 'pane')} on {counted(len(running), 'tmux server')}"
    print(f"Running: {where}, {counted(agents, 'agent')} ({certain} known for certain).")
    for each in last:
        where = printable(f"{each.server.user} {each.server.socket}")
        what = f"{counted(each.panes, 'pane')}, {counted(each.agents, 'agent')}"
        print(f"Saved:   {what} of {where}, {age(each.last_seen_at, at)} ({each.id}).")
    print(_advice(panes, newest is not None))
    return report(unanswered(looked))


run = with_setup(_run)


def _last_per_server(snapshots: tuple[SnapshotSummary, ...]) -> list[SnapshotSummary]:
    last: dict[str, SnapshotSummary] = {}
    for each in snapshots:
        if each.origin == CAPTURED:
            last.setdefault(each.server.key, each)
    return list(last.values())


def _advice(panes: int, saved: bool) -> str:
    if panes:
        return "Next:    `perdure save` keeps this now, `perdure ls` shows who is in which pane."
    if saved:
        return "Next:    `perdure restore` brings it back; `perdure restore --dry-run` shows how, and does nothing."
    return "Next:    start tmux, then `perdure save`."
