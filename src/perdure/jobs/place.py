"""A job's directory: what was ordered, how it began, how it ended, and what can be said of it from that.

    order        what is to be run, before anything is started
    began.json   who looks after it and which process it is, before its first instruction
    ended.json   how it ended: what the job's supervisor saw, or that it never began
    held         locked for as long as a supervisor has the job
    ctl          the supervisor's socket
    out.OFFSET   what it printed (`output`)
    err.OFFSET   which of that was standard error

Everything here is files, so that it is as true with every process dead.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime

import msgspec
from msgspec import Struct

from perdure.errors import PerdureError, Refused
from perdure.host.directories import make_private
from perdure.host.kernel import read_told
from perdure.host.processes import is_alive
from perdure.jobs import orders
from perdure.model.job import JobProcess, JobStatus, Terminal
from perdure.model.text import decode, encode

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_MOST = 1 << 16


class Began(Struct, frozen=True, kw_only=True):
    """A job that has begun: who looks after it, and which process it is."""

    supervisor: JobProcess
    process: JobProcess
    at: datetime


class Ended(Struct, frozen=True, kw_only=True):
    """How a job ended, as whoever looked after it saw it."""

    #: As a shell says it; None for one that never began.
    exit_code: int | None
    #: The signal that ended it.
    signal: int | None = None
    #: Somebody had asked for the end before it came.
    killed: bool = False
    at: datetime
    #: Why it could not be started, in words.
    why: str | None = None
    #: Bytes it printed up to then, and how many of them could not be kept because the disk was full.
    printed: int = 0
    dropped: int = 0
    #: How many processes it left behind, that went on when it had ended.
    left: int = 0


class Facts(Struct, frozen=True, kw_only=True):
    """All that can be known of a job from outside, read so that a later fact never belongs to an earlier state."""

    #: The boot it was ordered in; None when there is no order on the disk.
    ordered: str | None
    began: Began | None
    ended: Ended | None
    #: This boot.
    boot: str
    #: Whether these very processes are there.
    supervisor_runs: bool = False
    process_runs: bool = False


class Judgement(Struct, frozen=True, kw_only=True):
    """What became of a job."""

    status: JobStatus
    exit_code: int | None = None
    #: None as long as it runs, and where nobody knows.
    ended_at: datetime | None = None
    #: In words, when there is more to say than the code.
    why: str | None = None


def judge(facts: Facts) -> Judgement:
    """Return what became of a job: from its end where that is written down, else from who is still there.

    A job without a supervisor runs as long as its process does, and is lost then: nobody can know how it ended. One
    that nobody has taken up yet counts as running; `JobPlace.give_up` settles it when that has lasted too long.
    """
    if facts.ended is not None:
        return _judge_ended(facts.ended)
    if facts.began is None:
        if facts.ordered is None:
            return Judgement(status=JobStatus.LOST, why="Nothing of it is left on the disk.")
        if facts.ordered != facts.boot:
            return Judgement(status=JobStatus.LOST, why="The machine was restarted before it was seen to begin.")
        return Judgement(status=JobStatus.RUNNING, why="It has not begun yet.")
    if facts.began.supervisor.boot != facts.boot:
        return Judgement(status=JobStatus.LOST, why="The machine was restarted while it ran.")
    if facts.supervisor_runs:
        return Judgement(status=JobStatus.RUNNING)
    if facts.process_runs:
        why = "It runs, but what looked after it is gone: what it prints is not kept, and how it ends will not be known."
        return Judgement(status=JobStatus.RUNNING, why=why)
    return Judgement(status=JobStatus.LOST, why="What looked after it was ended, and nobody saw how it ended.")


def _judge_ended(ended: Ended) -> Judgement:
    status = JobStatus.KILLED if ended.killed else JobStatus.EXITED
    return Judgement(status=status, exit_code=ended.exit_code, ended_at=ended.at, why=ended.why)


def this_boot() -> str:
    """Return what the kernel calls this run of the machine."""
    return read_told("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def is_same_process(process: JobProcess) -> bool:
    """Say whether this very process runs: that number, started then, in this boot. A later one of that number does not."""
    return process.boot == this_boot() and is_alive(process.pid, process.started)


def job_path(jobs_dir: str, id: str) -> str:
    """Return the directory of a job. Raises `Refused` for an id that is none, whatever it would lead to."""
    if not _ID.fullmatch(id):
        raise Refused(f"{id!r} is no job's id.")
    return os.path.join(jobs_dir, id)


class JobPlace:
    """The directory of one job, which may not be there."""

    def __init__(self, directory: str) -> None:
        self.directory = directory

    def write_order(
        self,
        *,
        argv: Sequence[str],
        cwd: str,
        env: Mapping[str, str],
        terminal: Terminal | None = None,
        cap: int,
    ) -> None:
        """Make the directory and write down what is to be run, whole or not at all.

        `cap` is how many bytes of output are kept. Raises `Refused` for words no program can be given, and when there is
        a job in this directory already; PerdureError when it cannot be written.
        """
        raise NotImplementedError

    def began(self) -> Began | None:
        """Return how the job began; None when it has not, as far as is written down."""
        raise NotImplementedError

    def ended(self) -> Ended | None:
        """Return how the job ended; None when it has not, as far as is written down."""
        raise NotImplementedError

    def facts(self) -> Facts:
        """Return all that can be known of the job at this moment."""
        raise NotImplementedError

    def judgement(self) -> Judgement:
        """Return what became of the job, as far as it can be known at this moment."""
        return judge(self.facts())

    def give_up(self, why: str, now: datetime) -> bool:
        """Write down that the job never began, for good, unless somebody has it or it has begun; say whether.

        Nobody can begin it afterwards, however late an order arrives.
        """
        raise NotImplementedError

    def remove(self) -> None:
        """Delete the directory with everything the job printed. Nothing when there is none; for ended jobs only."""
        raise NotImplementedError
