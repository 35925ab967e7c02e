"""Running another program to its end."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from perdure.errors import PerdureError


class Ran(NamedTuple):
    """How a program ended."""

    status: int
    out: bytes
    err: str


def run(argv: Sequence[str], *, environ: Mapping[str, str], cwd: str, timeout: float) -> Ran:
    """Run a program with this environment and nothing to read, and return how it ended.

    One that takes longer than `timeout` seconds is ended, and so is one that is interrupted with us.
    """
    try:
        done = subprocess.run(
            argv,
            env=dict(environ),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise PerdureError(f"{argv[0]} did not come to an end within {timeout:.0f} s.") from None
    return Ran(done.returncode, done.stdout, done.stderr.decode(errors="replace"))
