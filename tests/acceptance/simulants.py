"""Simulated agents for acceptance tests: where they are, what they have noted, and an end that leaves nothing running."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from perdure.demo import program
from perdure.demo.agent import NAME
from tests.acceptance.kit import wait_for
from tests.conftest import PrivateHome


class Simulants:
    """The simulated agents of one private home, on the PATH as people have it: a login shell forgets any other."""

    def __init__(self, home: PrivateHome) -> None:
        folder = os.path.join(home.root, "bin")
        os.mkdir(folder)
        #: The program.
        self.path = program.install(folder)
        self._home = os.path.join(home.home, f".{NAME}")
        with open(os.path.join(home.home, ".profile"), "w") as file:
            file.write(f"PATH='{folder}':$PATH\nPS1='$ '\n")

    def records(self) -> list[dict[str, Any]]:
        """Return every start, ready, switch, refused and end, in order."""
        return _lines(os.path.join(self._home, "starts.jsonl"))

    def running(self) -> dict[str, int]:
        """Return the conversations agents that live say they are in, with their processes."""
        folder = os.path.join(self._home, "running")
        found = [each for name in _names(folder) for each in _lines(os.path.join(folder, name))]
        return {each["id"]: each["pid"] for each in found if _ticks(each["pid"]) == each["started"]}

    def turns(self) -> int:
        """Return how many turns there are in all conversations."""
        folder = os.path.join(self._home, "conversations")
        return sum("role" in each for name in _names(folder) for each in _lines(os.path.join(folder, name)))

    def await_running(self, count: int, turns: int) -> None:
        """Wait until so many agents are up and so much has been said."""
        wait_for(lambda: (len(self.running()), self.turns()) == (count, turns), f"{count} agents and {turns} turns")

    def await_gone(self) -> None:
        """Wait until nothing is left of any agent: one that ends says so before it has ended."""
        wait_for(lambda: not self._living(), "the end of the agents")

    def end_all(self, since: int = 0) -> None:
        """End every agent that was started, a lingering one too, and wait until all are gone."""
        for pid in self._living(since):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for(lambda: not self._living(since), "the end of the agents")

    def _living(self, since: int = 0) -> list[int]:
        """The processes that were started as agents and have not ended."""
        started = {(each["pid"], each["started"]) for each in self.records()[since:] if each["event"] == "start"}
        return [pid for pid, ticks in started if _ticks(pid) == ticks]


def starts(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return how often each conversation was started. Fails the test when two processes ever met in one."""
    records = list(records)
    assert [each for each in records if each["event"] == "refused"] == []
    return dict(Counter(each["id"] for each in records if each["event"] == "start"))


def most_at_once(records: Iterable[Mapping[str, Any]]) -> int:
    """Return how many were starting at once: each from its start until it said which conversation it is in."""
    starting: set[int] = set()
    most = 0
    for each in sorted(records, key=lambda each: each["time"]):
        if each["event"] == "start":
            starting.add(each["pid"])
        elif each["event"] in ("ready", "end", "refused"):
            starting.discard(each["pid"])
        most = max(most, len(starting))
    return most


def _names(folder: str) -> list[str]:
    with suppress(FileNotFoundError):
        return [name for name in os.listdir(folder) if not name.endswith(".new")]
    return []


def _lines(path: str) -> list[dict[str, Any]]:
    """Return the JSON lines of a file that may be written, or gone, at this moment: half a line is none yet."""
    with suppress(FileNotFoundError), open(path, "rb") as file:
        return [msgspec.json.decode(line) for line in file if line.endswith(b"\n") or path.endswith(".json")]
    return []


def _ticks(pid: int) -> int | None:
    """When a process started; None when it is gone, or a zombie nobody has collected."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            words = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if words[0] == b"Z" else int(words[19])
