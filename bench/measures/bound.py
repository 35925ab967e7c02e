"""The lower bounds: tmux clients that ask for what a save asks for, and keep nothing."""

from __future__ import annotations

from bench.servers import Server
from bench.timing import Step, timed

LIST_PANES = "tmux list-panes -a"
CAPTURE = "tmux capture-pane of all"


def steps(server: Server) -> dict[str, Step]:
    """Return the step every other one is compared with, and what tmux itself needs to hand out all scrollback."""
    panes = server.tmux("list-panes", "-a", "-F", "#{pane_id}").split()
    script = "".join(f"capture-pane -epJ -S - -t {pane}\n" for pane in panes)
    return {
        LIST_PANES: lambda: timed(lambda: server.tmux("list-panes", "-a")),
        CAPTURE: lambda: timed(lambda: server.tmux("source-file", "-", script=script)),
    }
