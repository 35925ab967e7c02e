"""`perdure save` as a timer or a hook runs it: a new process every time."""

from __future__ import annotations

import time

from bench.sandbox import BenchFailed, Sandbox, perdure, run
from bench.servers import Server
from bench.timing import Step

SAVE = "perdure save --no-scrollback"
SAVE_SCROLLBACK = "perdure save"
FIRST = "perdure save, first ever"


def steps(server: Server, sandbox: Sandbox) -> dict[str, Step]:
    """Return a save that finds everything as it was, without and with scrollback, and one that finds nothing."""
    # A state directory each: a save with scrollback must not find what one without it has left out.
    lean, full = sandbox.directory("state"), sandbox.directory("state")
    save(server, lean, "saved", "--no-scrollback")
    save(server, full, "saved")
    return {
        SAVE: lambda: save(server, lean, "unchanged", "--no-scrollback"),
        SAVE_SCROLLBACK: lambda: save(server, full, "unchanged"),
        FIRST: lambda: save(server, sandbox.directory("state"), "saved"),
    }


def save(server: Server, state: str, result: str, *options: str) -> float:
    """Return the seconds a save takes; raise unless it came to `result` with every pane in it."""
    argv, environ = [perdure(), "save", *options], {**server.environ, "PERDURE_STATE_DIR": state}
    start = time.perf_counter()
    said = run(argv, environ)
    seconds = time.perf_counter() - start
    if f": {result} " not in said or f"({server.panes} panes " not in said:
        raise BenchFailed(f"{' '.join(argv)}: expected {server.panes} panes {result}, but it said: {said.strip()}")
    return seconds
