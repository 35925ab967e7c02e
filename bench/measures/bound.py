"""The lower bound: one tmux client that lists the panes and keeps nothing."""

from __future__ import annotations

from bench.servers import Server
from bench.timing import Step, timed

LIST_PANES = "tmux list-panes -a"


def steps(server: Server) -> dict[str, Step]:
    """Return the step every other one is compared with."""
    return {LIST_PANES: lambda: timed(lambda: server.tmux("list-panes", "-a"))}
