"""`perdure up` in the background of a test, and what it says."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import msgspec

from tests.acceptance.kit import wait_for
from tests.perdure_cli import Perdure

#: How long the daemon may take to begin or to end; generous, since nothing is measured by it.
PATIENCE = 60.0


class Watching:
    """A daemon at work. Everything is asked as its users ask it: by commands."""

    def __init__(self, perdure: Perdure, process: subprocess.Popen[bytes], said: dict[str, Any], log: str) -> None:
        self._perdure = perdure
        self.process = process
        #: What it said when it was ready.
        self.said = said
        self._log = log

    @property
    def log(self) -> str:
        """What it said on stderr."""
        with open(self._log) as file:
            return file.read()

    def runs(self) -> list[dict[str, Any]]:
        """Return the runs whose panes are there."""
        runs: list[dict[str, Any]] = self._perdure.ok("ls", "--json").json["runs"]
        return runs

    def run(self, target: str) -> dict[str, Any]:
        """Return the run at `session:window.pane`, or by its id."""
        return next(run for run in self.runs() if target in (run["id"], run["target"]))

    def events(self, after: int = 0, *kinds: str) -> list[dict[str, Any]]:
        """Return what has happened behind a number."""
        words = [word for kind in kinds for word in ("--kind", kind)]
        events: list[dict[str, Any]] = self._perdure.ok("events", "--after", str(after), *words, "--json").json["events"]
        return events

    def await_event(self, what: str, is_it: Callable[[dict[str, Any]], bool], after: int = 0) -> dict[str, Any]:
        """Return the first event that is the one, once it is there."""
        found: list[dict[str, Any]] = []

        def look() -> bool:
            found[:] = [event for event in self.events(after) if is_it(event)]
            return bool(found)

        wait_for(look, f"{what}; the log says: {self.log}")
        return found[0]

    def await_state(self, target: str, *words: str) -> dict[str, Any]:
        """Wait until a run is in one of these states; return it."""
        ran = self._perdure("wait", target, "--until", ",".join(words), "--timeout", "60", "--json")
        assert ran.code == 0, f"{ran}\n{self.log}"
        run: dict[str, Any] = ran.json
        return run

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it and return its exit code."""
        with suppress(ProcessLookupError):
            self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def watching(perdure: Perdure, *args: str, cwd: str | None = None) -> Iterator[Watching]:
    """Start `perdure up`, wait until it has seen everything, and end it with the block; it must not have complained."""
    log = os.path.join(os.environ["HOME"], f"up-{os.urandom(4).hex()}.log")
    with open(log, "wb") as errors:
        process = subprocess.Popen(
            perdure.argv("up", "--json", *args),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=cwd,
        )
    assert process.stdout is not None
    line = process.stdout.readline()
    with open(log) as file:
        assert line, f"it ended with {process.wait()}: {file.read()}"
    watcher = Watching(perdure, process, msgspec.json.decode(line)["watching"], log)
    try:
        yield watcher
        if process.poll() is None:
            assert watcher.end() == 0, watcher.log
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()


def kinds_of(events: Sequence[dict[str, Any]]) -> list[str]:
    """Return what happened, in order."""
    return [event["kind"] for event in events]
