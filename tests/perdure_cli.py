"""The program as its users run it: a process with arguments, an exit code and two streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from tests.warm import warm


class Ran(NamedTuple):
    """How a run of the program ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Standard output as JSON; fails the test when it is anything else."""
        return msgspec.json.decode(self.out)


class Perdure:
    """Runs `perdure args…` in the test's private environment; `fresh`, in a Python that begins as a user's does.

    Otherwise in one that has read the modules already, which is seen by how long it takes.
    """

    def __init__(self, *, fresh: bool = False) -> None:
        self._fresh = fresh

    def __call__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        input: str | None = None,
        timeout: float = 300,
    ) -> Ran:
        """Return how it ended. `env` is laid over the test's environment."""
        variables, told = {**os.environ, **(env or {})}, (input or "").encode()
        ready = None if self._fresh else warm()
        if ready is not None and ready.can(args, variables):
            return _ran(*ready.run(args, variables, os.getcwd() if cwd is None else cwd, told, timeout))
        done = subprocess.run(
            self.argv(*args), env=variables, cwd=cwd, input=told, capture_output=True, timeout=timeout, check=False
        )
        return _ran(done.returncode, done.stdout, done.stderr)

    def ok(self, *args: str, env: Mapping[str, str] | None = None) -> Ran:
        """Return how it ended, which has to be well."""
        ran = self(*args, env=env)
        assert ran.code == 0, f"perdure {' '.join(args)} -> {ran.code}\n{ran.out}{ran.err}"
        return ran

    def argv(self, *args: str) -> list[str]:
        """Return the command, for tests that start it themselves."""
        return [sys.executable, "-m", "perdure", *args]


def _ran(code: int, out: bytes, err: bytes) -> Ran:
    return Ran(code, out.decode(errors="replace"), err.decode(errors="replace"))
