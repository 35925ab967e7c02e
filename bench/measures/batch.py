"""The lower bound of a restore: one control-mode client that makes the same panes from a script, and knows nothing."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from bench.sandbox import PATIENCE, BenchFailed
from bench.timing import Step
from bench.vacant import Vacant

BATCH = "tmux -C, the same panes"


def steps(vacant: Vacant) -> dict[str, Step]:
    """Return the step every restore is compared with."""
    home = vacant.server.environ["HOME"]
    # The client is attached to the first session: one less to make than with a session of its own.
    first = ["new-session", "-s", "s0", "-c", home, "-f", "no-output"]
    argv = ["tmux", "-u", "-C", "-S", vacant.server.socket, *first]
    script = _script(vacant, home).encode()
    return {BATCH: lambda: vacant.timed(lambda: _send(argv, script, vacant))}


def _script(vacant: Vacant, home: str) -> str:
    lines = []
    for number, windows in enumerate(vacant.shape.sessions(vacant.server.panes)):
        for index, size in enumerate(windows):
            target = f"-t =s{number}:{index}"
            if index:
                lines.append(f"new-window -d {target} -c {home}")
            elif number:
                lines.append(f"new-session -d -s s{number} -x 200 -y 50 -c {home}")
            else:
                lines += ["set-option default-size 200x50", "resize-window -x 200 -y 50"]
            lines += [f"split-window -d {target} -c {home}"] * (size - 1)
            lines += [f"select-layout {target} '{vacant.layouts[f's{number}:{index}']}'"] * (size > 1)
    return "\n".join([*lines, "detach-client", ""])


def _send(argv: Sequence[str], script: bytes, vacant: Vacant) -> None:
    done = subprocess.run(
        argv, env=vacant.server.environ, input=script, capture_output=True, timeout=PATIENCE, cwd="/", check=False
    )
    if done.returncode or b"%error" in done.stdout:
        raise BenchFailed(f"{' '.join(argv)}: {done.stdout.decode(errors='replace')}")
