"""The program as its users run it: a process with arguments, an exit code and two streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec


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
    """Runs `perdure args…` in the test's private environment."""

    def __call__(
        self,
        *args: str,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        input: str | None = None,
        timeout: float = 120,
    ) -> Ran:
        """Return how it ended. `env` is laid over the test's environment."""
        done = subprocess.run(
            self.argv(*args),
            env={**os.environ, **(env or {})},
            cwd=cwd,
            input=(input or "").encode(),
            capture_output=True,
            timeout=timeout,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def ok(self, *args: str, env: Mapping[str, str] | None = None) -> Ran:
        """Return how it ended, which has to be well."""
        ran = self(*args, env=env)
        assert ran.code == 0, f"perdure {' '.join(args)} -> {ran.code}\n{ran.out}{ran.err}"
        return ran

    def argv(self, *args: str) -> list[str]:
        """Return the command, for tests that start it themselves."""
        return [sys.executable, "-m", "perdure", *args]
