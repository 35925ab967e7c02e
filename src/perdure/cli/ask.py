"""The runs there are, as the daemon knows them."""

from __future__ import annotations

import argparse

from perdure.cli._setup import Setup
from perdure.daemon.call import call
from perdure.daemon.protocol import AskRuns
from perdure.model.decoding import converted
from perdure.model.run import Run
from perdure.tmux.sockets import canonical

#: How long the daemon may take: it may just be saving everything.
PATIENCE = 30.0


def ask_runs(setup: Setup, args: argparse.Namespace, patience: float = PATIENCE) -> list[Run]:
    """Return the runs, those that are over too; of one socket where the arguments name it.

    Raises `NoDaemon`, and `Unanswered` after so many seconds.
    """
    runs = converted(call(setup.state_dir, AskRuns(over=True), patience), list[Run])
    return on_socket(runs, args)


def on_socket(runs: list[Run], args: argparse.Namespace) -> list[Run]:
    """Return those of the runs that the arguments may mean."""
    if args.socket is None:
        return runs
    socket = canonical(args.socket)
    return [run for run in runs if run.server.socket == socket]
