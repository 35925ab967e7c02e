"""What the tests of jobs share: starting them as users do, and leaving none behind."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from tests.acceptance.kit import only_json, wait_for
from tests.at_rest import words_of
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran

PYTHON = sys.executable


class JobCommands:
    """`perdure jobs` in a private home."""

    def __init__(self, perdure: Perdure, home: PrivateHome) -> None:
        self.perdure = perdure
        self.directory = os.path.join(home.state, "jobs")

    def __call__(self, *args: str, **how: Any) -> Ran:
        """Run one verb."""
        return self.perdure("jobs", *args, **how)

    def run(self, *argv: str, options: tuple[str, ...] = ()) -> str:
        """Start a job, which has to go well, and return its id."""
        id: str = self.ok("run", *options, "--", *argv)["job"]
        return id

    def ok(self, *args: str) -> dict[str, Any]:
        """Run one verb, which has to go well, and return its answer; words behind `--` stay there."""
        at = args.index("--") if "--" in args else len(args)
        return only_json(self.perdure.ok("jobs", *args[:at], "--json", *args[at:]))

    def poll(self, id: str) -> dict[str, Any]:
        """Poll a job."""
        return self.ok("poll", id)

    def wait(self, id: str) -> dict[str, Any]:
        """Wait for the end of a job, which has to come."""
        return self.ok("wait", id, "--timeout", "60")

    def printed(self, id: str) -> str:
        """Return everything a job printed."""
        return self("log", id).out

    def await_text(self, id: str, text: str) -> None:
        """Wait until a job has printed something."""
        wait_for(lambda: text in self.printed(id), f"{text!r} of {id}")


def end_processes_below(directory: str) -> None:
    """End what belongs to the jobs of a directory, by what is written down there, and nothing else."""
    marks = {f"PERDURE_JOB={name}".encode() for name in (os.listdir(directory) if os.path.isdir(directory) else ())}
    wanted = os.fsencode(directory)
    looking_after, jobs = [], []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        with suppress(OSError):
            with open(f"/proc/{pid}/environ", "rb") as file:
                environ = set(file.read().split(b"\0"))
            if wanted in words_of(pid).split(b"\0"):
                looking_after.append(pid)
            elif environ & marks:
                jobs.append(pid)
    # First those who would write down that the others have ended.
    for pid in (*looking_after, *jobs):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def jobs(perdure: Perdure, private_home: PrivateHome) -> Iterator[JobCommands]:
    """`perdure jobs`, and afterwards none of its processes."""
    commands = JobCommands(perdure, private_home)
    yield commands
    end_processes_below(commands.directory)
