"""A job: a command that goes on when whoever asked for it is gone, with its output and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from msgspec import Struct

#: The backend that is this machine.
LOCAL = "local"


class JobStatus(StrEnum):
    """What became of a job."""

    #: Ordered, and not yet seen to run; or running.
    RUNNING = "running"
    #: It ended by itself, or never began: `Job.why` says so.
    EXITED = "exited"
    #: It ended because somebody asked for it.
    KILLED = "killed"
    #: It is not there any more, and nobody saw how it ended. What it printed is kept.
    LOST = "lost"


class Notify(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the owner of a job is told of, as events."""

    on_exit: bool = False
    #: Texts; a line of the output that has one of them in it is told, not too often.
    patterns: tuple[str, ...] = ()
    #: What is new, so often; None: never.
    every_seconds: float | None = None


class Watch(Struct, frozen=True, kw_only=True):
    """How far an owner has been told of what a job printed. Plain data, kept with the job."""

    #: Everything before it was searched for patterns, in bytes; a line that goes on there was told of when `is_told`.
    at: int = 0
    is_told: bool = False
    #: How much there was when it was last looked at.
    end: int = 0
    #: When a line was last told of, and what had a pattern in it since: how many lines, and the last of them.
    told_at: datetime | None = None
    held: int = 0
    held_output: str = ""
    held_pattern: str = ""
    #: How many times in a row there was too much to tell.
    storms: int = 0
    #: There was too much too often: no line is told of any more, but the end.
    on_exit: bool = False
    #: Something was gone before it could be looked at, and that was said.
    has_missed: bool = False
    #: When what is new was last told, or there was nothing new; and up to where.
    every_at: datetime | None = None
    every_end: int = 0
    #: The job has ended, and everything was told.
    is_over: bool = False


class Terminal(Struct, frozen=True, kw_only=True):
    """The size of a terminal that a job has for itself."""

    rows: int = 30
    columns: int = 120


class Order(Struct, frozen=True, kw_only=True):
    """What is to be run. Exactly one of `argv` and `shell` is given: nothing is guessed from a text."""

    argv: tuple[str, ...] | None = None
    #: Text for the user's own shell.
    shell: str | None = None
    #: Where it runs; elsewhere than on this machine "" is wherever one is there.
    cwd: str
    #: What the job is given besides, secrets too: for the job alone, never shown.
    env: Mapping[str, str] = {}
    #: None: pipes, and standard error is told from standard output.
    terminal: Terminal | None = None
    #: The key of a chat or the id of a run; None: nobody's.
    owner: str | None = None
    #: `local`, or a configured one.
    backend: str = LOCAL
    notify: Notify = Notify()


class JobProcess(Struct, frozen=True, kw_only=True):
    """A process that cannot be taken for another: not a later one of that number, not one of another boot."""

    pid: int
    #: In ticks since boot, as the kernel counts.
    started: int
    boot: str


class Job(Struct, frozen=True, kw_only=True):
    """One job. Its id is never given twice."""

    id: str
    order: Order
    ordered_at: datetime
    #: Where its directory is, as whoever ordered it says it: others know no more of it than is written down.
    place: str = ""
    status: JobStatus = JobStatus.RUNNING
    #: Who ordered it, and is about to start it as long as it has not begun.
    caller: JobProcess | None = None
    #: What looks after it: it keeps the output, and learns how the job ends.
    supervisor: JobProcess | None = None
    process: JobProcess | None = None
    #: When its process was there.
    began_at: datetime | None = None
    #: As a shell says it: 128 + the signal's number for one that a signal ended.
    exit_code: int | None = None
    ended_at: datetime | None = None
    #: In words, when there is more to say than the code: it could not be started, and why; who ended it.
    why: str | None = None
    #: How far its output has been given to whoever polls, in bytes.
    polled: int = 0
    #: How far its owner has been told of it.
    watch: Watch = Watch()

    @property
    def is_running(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self.status is JobStatus.RUNNING

    @property
    def is_watched(self) -> bool:
        """Whether there may be something to tell its owner that nobody has looked for yet."""
        notify = self.order.notify
        return self.is_running or (bool(notify.patterns or notify.every_seconds) and not self.watch.is_over)


class Output(Struct, frozen=True, kw_only=True):
    """Some of what a job printed: bytes from `start` on, in order, as far as they are kept."""

    start: int
    data: bytes
    #: Where the output goes on: `start` of the next piece.
    end: int
    #: What is no longer kept before `start`, in bytes, of what was asked for.
    missing: int = 0
    #: Stretches of standard error, as from and to within `data`.
    errors: tuple[tuple[int, int], ...] = ()
