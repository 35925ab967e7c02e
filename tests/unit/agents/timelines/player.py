"""Plays recorded screens and hook records to `advance`, as they would come in, and says which states that gave."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import structs

from perdure.agents import adapters
from perdure.model.observation import Ended, Ending, Observation, Reading, Source
from perdure.model.process import Process
from perdure.model.run import Confidence, Program, Reason, RunState
from perdure.model.screen import Screen, ScreenReading
from perdure.ports import AgentAdapter, TellsState
from tests.builders import NOON, at
from tests.contract.agents import samples
from tests.unit.agents.hosts import DirectoryHost
from tests.unit.live.timeline import Moment, Player, a_run, sighted


class Shown(NamedTuple):
    """A recorded screen, or any other."""

    at: float
    sample: str
    screen: Screen | None = None


class Hooked(NamedTuple):
    """A hook record, as it is left at that moment."""

    at: float
    record: Mapping[str, Any]


class Wrote(NamedTuple):
    """A file the agent keeps, as it is from that moment on."""

    at: float
    path: str
    data: bytes


class Looked(NamedTuple):
    """Somebody has the pane before their eyes for a moment."""

    at: float


class Exited(NamedTuple):
    """The program has ended."""

    at: float


Step = Shown | Hooked | Wrote | Looked | Exited


class RecordingHost(DirectoryHost):
    """A machine whose hooks keep the newest record of each event, as the real ones do."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.kept: dict[tuple[int, str], tuple[datetime, bytes]] = {}

    def hook(self, pid: int, at: datetime, record: Mapping[str, Any]) -> None:
        self.kept[pid, str(record.get("hook_event_name"))] = (at, msgspec.json.encode(record))

    def hooks(self, agent: str, process: Process) -> Sequence[tuple[datetime, bytes]]:
        mine = [(at, event, raw) for (pid, event), (at, raw) in self.kept.items() if pid == process.pid]
        return [(at, raw) for at, _, raw in sorted(mine, reverse=True)]


class Stage:
    """One agent in one pane."""

    def __init__(self, agent: str, process: Process, host: RecordingHost, *below: Process) -> None:
        self.adapter: AgentAdapter = next(each for each in adapters() if each.name == agent)
        self.host = host
        self.tree = [structs.replace(each, started_at=NOON) for each in (process, *below)]
        self.player = Player(a_run(program=Program(pid=process.pid, start_ticks=process.start_ticks)))

    def play(self, steps: Sequence[Step]) -> list[Moment]:
        """Let everything happen in its order, and a quarter of a minute pass after it; returns every state it came into."""
        for step in sorted(steps, key=lambda each: each.at):
            for seen in self._observed(step):
                self.player.tell(step.at, seen)
        self.player.pass_until(max(step.at for step in steps) + 15)
        return self.player.moments

    def _observed(self, step: Step) -> list[Observation]:
        if isinstance(step, Shown):
            screen = step.screen or recorded(step.sample)
            return [screen_reading(self.adapter.read_screen(screen), at(step.at))]
        if isinstance(step, Looked):
            return [sighted(watched=True), sighted(watched=False)]
        if isinstance(step, Exited):
            return [Ended(what=Ending.PROGRAM, exit_status=0)]
        if isinstance(step, Hooked):
            self.host.hook(self.tree[-1].pid, at(step.at), dated(step))
        else:
            self.host.write(step.path, step.data)
        assert isinstance(self.adapter, TellsState)
        return [*self.adapter.told(self.tree[0], self.host, self.tree)]


def recorded(sample: str) -> Screen:
    """Return a recorded screen, `version/name`, with the title it had."""
    version, _, name = sample.partition("/")
    label = msgspec.json.decode(samples.read(version, f"screens/{name}.json"))
    text = samples.read(version, f"screens/{name}.txt").decode()
    return Screen(lines=tuple(text.split("\n")), title=label.get("title", ""))


def hook_record(version: str, event: str) -> dict[str, Any]:
    """Return the newest record of an event that a real agent left."""
    found = {}
    for stage in ("first_prompt", "cleared", "approval"):
        for line in samples.read(version, f"hook_records/{stage}.jsonl").splitlines():
            record = msgspec.json.decode(line)["record"]
            found[record["hook_event_name"]] = record
    return dict(found[event])


def dated(step: Hooked) -> Mapping[str, Any]:
    """Return the record as of when it is played; agents that say when say it in one of two ways."""
    when, record = at(step.at), step.record
    if isinstance(record.get("timestamp"), str):
        return {**record, "timestamp": when.isoformat()}
    return {**record, "timestamp": when.timestamp() * 1000} if "timestamp" in record else record


def screen_reading(reading: ScreenReading | None, now: datetime) -> Reading:
    """Return what a screen says as the observation it is."""
    if reading is None:
        return Reading(source=Source.SCREEN, at=now)
    sure = Confidence.HIGH if reading.confidence >= 0.85 else Confidence.MEDIUM
    return Reading(
        source=Source.SCREEN,
        at=now,
        state=RunState(reading.state.value) if reading.state else None,
        reason=Reason(reading.reason) if reading.reason else None,
        rule=reading.rule,
        confidence=sure if reading.confidence >= 0.6 else Confidence.LOW,
        frozen=reading.frozen,
    )
