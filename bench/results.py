"""What a run found, as it is written to JSON."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from bench.sandbox import run
from bench.timing import Timing

#: The same output kept without a job, and with one.
CAT = "through a pipe, and `cat` to a file"
KEPT = "as a job, to its end"


class Machine(Struct, frozen=True, kw_only=True):
    """Where and when; the absolute numbers mean something together with this only."""

    at: datetime
    system: str
    cpus: int
    #: Of the last minute, as the run began.
    load: float
    python: str
    tmux: str
    #: Processes on terminals as the run began. A save reads those of the whole machine, so they cost time as well.
    others: int


class Case(Struct, frozen=True, kw_only=True):
    """Everything measured on one server."""

    shape: str
    panes: int
    timings: Mapping[str, Timing]
    #: tmux clients a save or a restore started.
    clients: Mapping[str, int]
    #: Peak memory in KiB.
    memory: Mapping[str, int]

    def ratio(self, what: str, to: str) -> float:
        """Return one median as a multiple of another."""
        return self.timings[what].median / self.timings[to].median

    def least_ratio(self, what: str, to: str) -> float:
        """Return one minimum as a multiple of another: what is left when the machine's noise is taken away."""
        return self.timings[what].minimum / self.timings[to].minimum


class Share(Struct, frozen=True, kw_only=True):
    """Processor time over a while, in seconds: of whoever watches, with its children, and of the server it watches."""

    name: str
    seconds: float
    used: float
    server: float

    @property
    def percent(self) -> float:
        """How much of one core whoever watches has used."""
        return 100 * self.used / self.seconds

    @property
    def server_percent(self) -> float:
        """How much of one core the server has used meanwhile."""
        return 100 * self.server / self.seconds


class PerChange(Struct, frozen=True, kw_only=True):
    """What one change costs beside all that goes on anyway, in seconds of processor time."""

    panes: int
    made: int
    used: float
    server: float


class Live(Struct, frozen=True, kw_only=True):
    """Everything measured of the daemon."""

    panes: int
    agents: int
    #: How long the daemon's shares were measured; the lower bounds a quarter of that.
    seconds: float
    shares: Mapping[str, Share]
    #: The most it held in KiB, by when.
    memory: Mapping[str, int]
    delays: Mapping[str, Timing]
    #: From few panes to many.
    changes: tuple[PerChange, ...]


class ChatLine(Struct, frozen=True, kw_only=True):
    """How long something takes a peer that keeps chats."""

    what: str
    peer: str
    timing: Timing


class Chats(Struct, frozen=True, kw_only=True):
    """Everything measured of chats."""

    #: In how many turns was searched.
    turns: int
    #: The version of hermes-agent; None where it was not there to be compared.
    peer: str | None
    lines: tuple[ChatLine, ...]
    #: What a process held in KiB, by peer and by what it did.
    memory: Mapping[str, Mapping[str, int]]

    def whats(self) -> tuple[str, ...]:
        """Return what was measured, in order."""
        return tuple(dict.fromkeys(line.what for line in self.lines))

    def of(self, what: str, peer: str) -> Timing | None:
        """Return how long something took a peer; None where it was not measured."""
        return next((line.timing for line in self.lines if (line.what, line.peer) == (what, peer)), None)


class Jobs(Struct, frozen=True, kw_only=True):
    """Everything measured of jobs."""

    timings: Mapping[str, Timing]
    #: Bytes a job printed whose time was taken.
    printed: int
    #: How many jobs did nothing, what they used of a core together, in hundredths, and what each held, in KiB: at most,
    #: and on average when what several hold together is counted once.
    crowd: int
    idle: float
    rss: int
    pss: int

    @property
    def throughput(self) -> float:
        """How much is kept while `cat` keeps 1."""
        return self.timings[CAT].median / self.timings[KEPT].median


class Flood(Struct, frozen=True, kw_only=True):
    """What became of much that was printed in a pane, first watched by nobody, then over the WebSocket."""

    #: In bytes.
    printed: int
    #: How long it took whoever printed it, in seconds.
    alone: float
    watched: float
    #: What the daemon held more than before, at most, in KiB; and the processor time it has used, in seconds.
    grown: int
    used: float
    #: How many messages somebody was told who watched and read.
    frames: int


class Api(Struct, frozen=True, kw_only=True):
    """Everything measured of the HTTP interface."""

    panes: int
    timings: Mapping[str, Timing]
    flood: Flood


class Verdict(Struct, frozen=True, kw_only=True):
    """Something with a target, and whether it was reached."""

    shape: str
    panes: int
    what: str
    value: float
    limit: float

    @property
    def ok(self) -> bool:
        """The target was reached."""
        return self.value <= self.limit


class Results(Struct, frozen=True, kw_only=True):
    """One run."""

    machine: Machine
    #: How often each save was measured, and each restore.
    rounds: int
    restores: int
    #: Columns of the lines the panes have printed.
    width: int
    cases: tuple[Case, ...]
    #: None where only saves and restores were measured.
    live: Live | None
    #: None where they were not measured.
    chats: Chats | None
    jobs: Jobs | None
    api: Api | None
    verdicts: tuple[Verdict, ...]


def this_machine(environ: Mapping[str, str]) -> Machine:
    """Describe where this runs."""
    return Machine(
        at=datetime.now(UTC),
        system=f"{platform.system()} {platform.machine()}",
        cpus=os.cpu_count() or 1,
        load=round(os.getloadavg()[0], 2),
        python=platform.python_version(),
        tmux=run(["tmux", "-V"], environ).strip(),
        others=sum(not tty.startswith("?") for tty in run(["ps", "-A", "-o", "tty="], environ).split()),
    )


def write(results: Results, path: str) -> None:
    """Write the results down, in seconds, with the medians, minima and verdicts spelled out."""
    plain = msgspec.to_builtins(results)
    for verdict, written in zip(results.verdicts, plain["verdicts"], strict=True):
        written["ok"] = verdict.ok
    for case, written in zip(results.cases, plain["cases"], strict=True):
        for name, timing in case.timings.items():
            written["timings"][name] |= {"median": timing.median, "minimum": timing.minimum}
    if results.live is not None:
        for name, share in results.live.shares.items():
            plain["live"]["shares"][name] |= {"percent": share.percent, "server_percent": share.server_percent}
        for name, timing in results.live.delays.items():
            plain["live"]["delays"][name] |= {"median": timing.median, "p95": timing.p95}
    if results.chats is not None:
        for line, written in zip(results.chats.lines, plain["chats"]["lines"], strict=True):
            taken = line.timing
            written["timing"] |= {"median": taken.median, "minimum": taken.minimum, "p95": taken.p95}
    if results.api is not None:
        for name, timing in results.api.timings.items():
            plain["api"]["timings"][name] |= {"median": timing.median, "p95": timing.p95}
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "wb") as file:
        file.write(msgspec.json.format(msgspec.json.encode(plain), indent=2) + b"\n")
