"""`perdure ls`: every pane of the machine, and the conversation in it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from perdure.cli._setup import Setup, add_server_arguments, with_setup

if TYPE_CHECKING:
    from datetime import datetime

    from perdure.cli.rows import PaneRow
    from perdure.cli.standing import Standings
    from perdure.live.standing import Standing


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_server_arguments(parser)


def _run(setup: Setup, args: argparse.Namespace) -> int:
    questions = setup.ask(args)
    from perdure.cli.missed import report, unanswered
    from perdure.cli.render import print_json, printable
    from perdure.cli.rows import pane_rows, row_of_run
    from perdure.cli.standing import standings
    from perdure.errors import NotFound
    from perdure.host.clock import now
    from perdure.model.snapshot import Miss, Missed
    from perdure.snapshots.look import Looked

    looked = setup.look(questions, now())
    captures = [each.capture for each in looked if isinstance(each, Looked)]
    missed = unanswered(looked)
    if args.socket is not None:
        for each in looked:
            if isinstance(each, Missed) and each.reason is Miss.NO_SERVER:
                raise NotFound(printable(each.message))
    rows = [row for each in captures for row in pane_rows(each.server, each.topology, each.details)]
    at = now()
    stand, silent = standings(setup, captures, missed, at)
    rows += [row_of_run(run) for run in silent]
    if args.json:
        print_json({"panes": [_told(row, stand) for row in rows]})
    elif rows:
        _print(rows, stand, {run.server.socket for run in silent}, at)
    elif not missed:
        print("No tmux server is running. `perdure history` lists what was saved.")
    return report(missed, one_socket=args.socket is not None)


run = with_setup(_run)


def _told(row: PaneRow, stand: Standings) -> dict[str, object]:
    """The pane's row, with how it stands: null where nobody can tell."""
    import msgspec

    each = stand.get((row.socket, row.pane_id))
    known = msgspec.structs.asdict(each) if each is not None else dict.fromkeys(_STANDING)
    return {**msgspec.structs.asdict(row), **known}


_STANDING = (
    *("run", "state", "reason", "cause", "because", "confidence", "since", "previous"),
    *("thought", "objective", "rest", "skill", "health", "theme", "last_agent", "last_conversation"),
)


def _print(rows: Sequence[PaneRow], stand: Standings, silent: Collection[str], at: datetime) -> None:
    from perdure.cli.render import age, print_table

    home = os.path.expanduser("~")
    stands = [stand.get((row.socket, row.pane_id)) for row in rows]
    shown: dict[str, Sequence[object]] = {
        "user": [row.user for row in rows],
        "server": [os.path.basename(row.socket) for row in rows],
        "pane": [row.address for row in rows],
        "run": [each.run if each else None for each in stands],
        "state": [_state(each, unheard=row.socket in silent) for row, each in zip(rows, stands, strict=True)],
        "since": [age(each.since, at) if each and each.since else None for each in stands],
        "command": ["(dead)" if row.dead else row.command for row in rows],
        "agent": [row.agent for row in rows],
        "conversation": [(row.conversation or "unknown") if row.agent else None for row in rows],
        "known by": [_known_by(row) for row in rows],
        "context": [_context(row) for row in rows],
        "doing": [(each.thought if each else None) or row.task for row, each in zip(rows, stands, strict=True)],
        "cwd": [_at_home(row.cwd, home) for row in rows],
    }
    for name, value in (("user", "user"), ("server", "socket")):
        if len({getattr(row, value) for row in rows}) == 1:
            del shown[name]
    for name in ("run", "state", "since", "context"):
        if not any(shown[name]):
            del shown[name]
    lines = list(zip(*shown.values(), strict=True))
    print_table(list(shown), lines, whole=("pane", "conversation"), spare=("cwd", "context", "command", "run"))


def _state(each: Standing | None, *, unheard: bool) -> str | None:
    """The state; of a server that does not answer it is the one that was last seen."""
    if each is None:
        return None
    return f"{each.word} (no answer)" if unheard else each.word


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
    return f"{_bar(row.context_pct)} {row.context_pct}%" if row.context_pct is not None else used


def _bar(percent: int) -> str:
    """Five cells, full from the left."""
    full = min(5, (max(0, percent) + 10) // 20)
    return "▓" * full + "░" * (5 - full)
