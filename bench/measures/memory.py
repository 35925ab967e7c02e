"""The most memory a cold save or restore ever holds, beside that of a Python that does nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from bench.measures import cold, restores, startup
from bench.sandbox import BenchFailed, Sandbox, perdure, run
from bench.servers import Server
from bench.vacant import Vacant

# A process inherits the peak of the one that started it, up to its exec. So it is not started by us, with all the
# program loaded, but by the smallest Python there is.
_PEAK = """
import os, sys
silent = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=silent)
_, status, usage = os.wait4(child, 0)
print(status, usage.ru_maxrss)
"""


def of_saves(server: Server, sandbox: Sandbox) -> dict[str, int]:
    """Return the peaks of saves in KiB."""
    state = {**server.environ, "PERDURE_STATE_DIR": sandbox.directory("state")}
    return {
        startup.BARE: _peak([sys.executable, "-c", "pass"], server.environ),
        cold.SAVE: _peak([perdure(), "save", "--no-scrollback"], state),
        cold.SAVE_SCROLLBACK: _peak([perdure(), "save"], state),
    }


def of_restores(vacant: Vacant) -> dict[str, int]:
    """Return the peak of a restore with scrollback in KiB."""
    with vacant.alone():
        environ = {**vacant.server.environ, "PERDURE_STATE_DIR": vacant.full}
        return {restores.COLD_SCROLLBACK: _peak([perdure(), "restore"], environ)}


def _peak(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    status, peak = map(int, run([sys.executable, "-I", "-S", "-c", _PEAK, *argv], environ).split())
    if status:
        raise BenchFailed(f"{' '.join(argv)} ended with status {status}")
    # Linux counts in KiB, macOS in bytes.
    return peak // 1024 if sys.platform == "darwin" else peak
