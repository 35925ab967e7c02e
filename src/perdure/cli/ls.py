"""`perdure ls`: every pane of the machine, and the conversation in it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perdure.cli._setup import Setup, add_server_arguments, with_setup

if TYPE_CHECKING:
    from perdure.cli.rows import PaneRow


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_server_arguments(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    questions = setup.ask(args)
    from perdure.cli.missed import report, unanswered
    from perdure.cli.render import print_json
    from perdure.cli.rows import pane_rows
    from perdure.host.clock import now
    from perdure.snapshots.look import Looked

    looked = setup.look(questions, now())
    captures = [each.capture for each in looked if isinstance(each, Looked)]
    missed = unanswered(looked)
    rows = [row for each in captures for row in pane_rows(each.server, each.topology, each.details)]
    if args.json:
        print_json({"panes": rows})
    elif rows:
        _print(rows)
    elif not missed:
        print("No tmux server is running. `perdure history` lists what was saved.")
    return report(missed, one_socket=args.socket is not None)


run = with_setup(_run)


def _print(rows: Sequence[PaneRow]) -> None:
    from perdure.cli.render import print_table

    home = os.path.expanduser("~")
    shown = {
        "user": [row.user for row in rows],
        "server": [os.path.basename(row.socket) for row in rows],
        "pane": [row.address for row in rows],
        "command": ["(dead)" if row.dead else row.command for row in rows],
        "agent": [row.agent for row in rows],
        "conversation": [(row.conversation or "unknown") if row.agent else None for row in rows],
        "known by": [_known_by(row) for row in rows],
        "context": [_context(row) for row in rows],
        "task": [row.task for row in rows],
        "cwd": [_at_home(row.cwd, home) for row in rows],
    }
    for name, value in (("user", "user"), ("server", "socket")):
        if len({getattr(row, value) for row in rows}) == 1:
            del shown[name]
    lines = list(zip(*shown.values(), strict=True))
    print_table(list(shown), lines, whole=("pane", "conversation"), spare=("cwd", "context", "command"))


def _known_by(row: PaneRow) -> str | None:
    """The evidence, with a question mark when it is only a guess, or that there is nothing to resume yet."""
    if row.evidence is None:
        return None
    if not row.certain:
        return f"{row.evidence} ?"
    return f"{row.evidence}, unused" if row.prompted is False else row.evidence


def _at_home(path: str, home: str) -> str:
    return "~" + path.removeprefix(home) if path == home or path.startswith(home + "/") else path


def _context(row: PaneRow) -> str | None:
    if row.context_used is None:
        return None
    used = f"{row.context_used / 1000:.0f}k" if row.context_used >= 1000 else str(row.context_used)
    return f"{used} ({row.context_pct}%)" if row.context_pct is not None else used
