"""A private place for a run: nothing is read from or written to the user's own home, state or tmux."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

#: How long a command of the benchmark's own may take before the run is given up.
PATIENCE = 60.0


class BenchFailed(Exception):
    """Something did not do what was to be measured; a number for it would mean nothing."""


class Sandbox:
    """A directory with a home in it, and the environment everything is run in."""

    def __init__(self, root: str) -> None:
        self.root = root
        home = self.directory("home")
        # Made from nothing rather than from ours: a PYTHON* or PERDURE_* of the user's would be measured with it.
        self.environ: Mapping[str, str] = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": home,
            "LANG": "C.UTF-8",
            "SHELL": "/bin/sh",
            "TERM": "xterm-256color",
        }

    def directory(self, name: str) -> str:
        """Return a new private directory; never one that was there before."""
        return tempfile.mkdtemp(prefix=f"{name}-", dir=self.root)


@contextmanager
def sandbox() -> Iterator[Sandbox]:
    """Make a sandbox, live in its environment, and leave nothing of it behind."""
    before = dict(os.environ)
    # Not $TMPDIR: the path of a socket may have about a hundred characters, and on some machines that is half of it.
    root = tempfile.mkdtemp(prefix="perdure-bench-", dir="/tmp")
    try:
        made = Sandbox(root)
        _live_in(made.environ)
        yield made
    finally:
        _live_in(before)
        shutil.rmtree(root, ignore_errors=True)


def _live_in(environ: Mapping[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environ)


def run(argv: Sequence[str], environ: Mapping[str, str], *, script: str = "") -> str:
    """Return what a command printed; raise with its own words when it fails."""
    try:
        done = subprocess.run(
            argv, env=environ, input=script.encode(), capture_output=True, timeout=PATIENCE, cwd="/", check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BenchFailed(str(error)) from None
    if done.returncode:
        raise BenchFailed(f"{' '.join(argv)} -> {done.returncode}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode()


def perdure() -> str:
    """Return the program as its users start it: the console script beside this interpreter."""
    path = os.path.join(os.path.dirname(sys.executable), "perdure")
    if not os.path.exists(path):
        raise BenchFailed(f"{path} is missing: make setup installs it.")
    return path
