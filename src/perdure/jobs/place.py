"""A job's directory: what was ordered, how it began, how it ended, and what can be said of it from that.

    order        what is to be run, before anything is started
    began.json   who looks after it and which process it is, before its first instruction
    ended.json   how it ended: what the job's supervisor saw, or that it never began
    asked        when somebody asked for its end inside a backend
    ctl          the supervisor's socket
    out.OFFSET   what it printed (`output`)
    err.OFFSET   which of that was standard error

The directory itself is locked for as long as a supervisor has the job. Everything here is files, so that it is as true with every process dead.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from typing import TypeVar

import msgspec
from msgspec import Struct

from perdure.errors import PerdureError, Refused
from perdure.host.directories import make_private
from perdure.host.kernel import read_told
from perdure.host.processes import is_alive
from perdure.jobs import kin, orders
from perdure.model.decoding import decoder_of
from perdure.model.job import JobProcess, JobStatus, Terminal
from perdure.model.text import decode, encode

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
T = TypeVar("T")


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
    #: How it began is only known because somebody saw it: it is not on the disk any more.
    is_gone: bool = False


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
        if facts.ordered not in (None, facts.boot):
            return Judgement(status=JobStatus.LOST, why="The machine was restarted before it was seen to begin.")
        return Judgement(status=JobStatus.RUNNING, why="It has not begun yet.")
    if facts.began.supervisor.boot != facts.boot:
        return Judgement(status=JobStatus.LOST, why="The machine was restarted while it ran.")
    if facts.is_gone:
        return _judge_gone(facts)
    if facts.supervisor_runs:
        return Judgement(status=JobStatus.RUNNING)
    if facts.process_runs:
        why = (
            "It runs, but what looked after it is gone: what it prints is not kept, and how it ends will not be known."
        )
        return Judgement(status=JobStatus.RUNNING, why=why)
    return Judgement(status=JobStatus.LOST, why="What looked after it was ended, and nobody saw how it ended.")


def _judge_gone(facts: Facts) -> Judgement:
    why = "What was written down of it is gone from the disk."
    if facts.supervisor_runs or facts.process_runs:
        return Judgement(status=JobStatus.RUNNING, why=f"It runs. {why}")
    return Judgement(status=JobStatus.LOST, why=why)


def _judge_ended(ended: Ended) -> Judgement:
    status = JobStatus.KILLED if ended.killed else JobStatus.EXITED
    return Judgement(status=status, exit_code=ended.exit_code, ended_at=ended.at, why=ended.why)


@cache
def this_boot() -> str:
    """Return what the kernel calls this run of the machine."""
    return read_told("/proc/sys/kernel/random/boot_id").decode("ascii", "replace").strip()


def this_process() -> JobProcess | None:
    """Return ourselves; None where that cannot be told."""
    line = kin.read_line(os.getpid())
    return None if line is None else JobProcess(pid=os.getpid(), started=line.started, boot=this_boot())


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
        raw = _packed(argv, cwd, env, terminal, cap)
        try:
            make_private(os.path.dirname(encode(self.directory)))
            os.mkdir(encode(self.directory), 0o700)
            self._write("order", raw)
        except FileExistsError:
            raise Refused(f"There is a job in {self.directory} already.") from None
        except OSError as error:
            raise PerdureError(f"{self.directory}: {error.strerror or error}.") from error

    def began(self) -> Began | None:
        """Return how the job began; None when it has not, as far as is written down."""
        told = _decoded(self._read("began.json"), _Began)
        if told is None:
            return None
        return Began(
            supervisor=JobProcess(pid=told.supervisor[0], started=told.supervisor[1], boot=told.boot),
            process=JobProcess(pid=told.process[0], started=told.process[1], boot=told.boot),
            at=datetime.fromtimestamp(told.at, UTC),
        )

    def ended(self) -> Ended | None:
        """Return how the job ended; None when it has not, as far as is written down."""
        told = _decoded(self._read("ended.json"), _Ended)
        if told is None:
            return None
        return Ended(
            exit_code=told.exit_code,
            signal=told.signal or None,
            killed=bool(told.killed_by) or self._was_asked(told.at),
            at=datetime.fromtimestamp(told.at, UTC),
            why=self._why(told),
            printed=told.printed,
            dropped=told.dropped,
            left=told.left,
        )

    def is_looked_after(self) -> bool:
        """Say whether its supervisor is there: until the job has ended, and everything it left behind too."""
        began = self.began()
        return began is not None and is_same_process(began.supervisor)

    def facts(self, seen: Began | None = None) -> Facts:
        """Return all that can be known of the job at this moment; `seen` is how whoever asks saw it begin."""
        sheet = self._sheet()
        on_disk = self.began()
        began = on_disk or seen
        supervisor_runs = began is not None and is_same_process(began.supervisor)
        process_runs = began is not None and is_same_process(began.process)
        # Last: who was not there any more when it was asked for has written it by now, or never will.
        return Facts(
            ordered=None if sheet is None else decode(sheet.boot),
            began=began,
            ended=self.ended(),
            boot=this_boot(),
            supervisor_runs=supervisor_runs,
            process_runs=process_runs,
            is_gone=began is not None and on_disk is None,
        )

    def judgement(self, seen: Began | None = None) -> Judgement:
        """Return what became of the job, as far as it can be known at this moment; `seen` as `facts` has it."""
        return judge(self.facts(seen))

    def give_up(self, why: str, now: datetime) -> bool:
        """Write down that the job never began, for good, unless somebody has it or it has begun; say whether.

        Nobody can begin it afterwards, however late an order arrives. Raises PerdureError when it cannot be written.
        """
        try:
            make_private(encode(self.directory))
            held = os.open(encode(self.directory), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise PerdureError(f"{self.directory}: {error.strerror or error}.") from error
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if self.began() is not None or self.ended() is not None:
                return False
            told = _Ended(exit_code=None, at=now.timestamp(), why=why)
            self._write("ended.json", msgspec.json.encode(told), for_good=True)
        except BlockingIOError:
            return False
        except OSError as error:
            raise PerdureError(f"{self.directory}: {error.strerror or error}.") from error
        finally:
            os.close(held)
        return True

    def ask(self, now: datetime) -> None:
        """Note that somebody asks for the job's end from now on, however it comes: inside a backend nobody here sees that.

        Raises PerdureError when it cannot be written.
        """
        try:
            self._write("asked", b"%.6f" % now.timestamp())
        except OSError as error:
            raise PerdureError(f"{self.directory}: {error.strerror or error}.") from error

    def unask(self) -> None:
        """Nobody asks for the end any more."""
        with suppress(OSError):
            os.unlink(self._path("asked"))

    def _was_asked(self, at: float) -> bool:
        """Whether somebody had asked for the end before it came."""
        try:
            return float(self._read("asked") or b"inf") <= at
        except ValueError:
            return False

    def remove(self) -> None:
        """Delete the directory with everything the job printed. Nothing when there is none; for ended jobs only."""
        with suppress(FileNotFoundError):
            for name in os.listdir(encode(self.directory)):
                with suppress(FileNotFoundError):
                    os.unlink(os.path.join(encode(self.directory), name))
            os.rmdir(encode(self.directory))

    def _path(self, name: str) -> bytes:
        return os.path.join(encode(self.directory), name.encode())

    def _read(self, name: str) -> bytes:
        try:
            with open(self._path(name), "rb", buffering=0) as file:
                return file.read()
        except OSError:
            return b""

    def _sheet(self) -> orders.Sheet | None:
        return orders.unpack(self._read("order"))

    def _write(self, name: str, raw: bytes, *, for_good: bool = False) -> None:
        # Not the name a supervisor writes under.
        fresh = self._path(f"{name}.late")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with open(handle, "wb", buffering=0) as file:
            if file.write(raw) != len(raw):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            if for_good:
                os.fsync(handle)
        os.rename(fresh, self._path(name))

    def _why(self, told: _Ended) -> str | None:
        if told.killed_by == "signal":
            return "What looks after it was told to end, and ended it."
        if not told.trouble:
            return told.why
        reason = os.strerror(told.errno)
        if told.trouble == "directory":
            sheet = self._sheet()
            return f"It could not be started in {'its directory' if sheet is None else decode(sheet.cwd)}: {reason}."
        if told.trouble == "program":
            sheet = self._sheet()
            return f"{'Its program' if sheet is None else decode(sheet.argv[0])} could not be run: {reason}."
        return f"It could not be given a terminal: {reason}." if told.trouble == "terminal" else f"The disk: {reason}."


class _Began(Struct, frozen=True, kw_only=True):
    """As a supervisor writes it: each process as its number and its start."""

    boot: str
    supervisor: tuple[int, int]
    process: tuple[int, int]
    at: float


class _Ended(Struct, frozen=True, kw_only=True):
    """As a supervisor writes it, or whoever gives up."""

    exit_code: int | None
    signal: int = 0
    killed_by: str = ""
    at: float
    trouble: str = ""
    errno: int = 0
    printed: int = 0
    dropped: int = 0
    left: int = 0
    why: str | None = None


def _packed(argv: Sequence[str], cwd: str, env: Mapping[str, str], terminal: Terminal | None, cap: int) -> bytes:
    try:
        return orders.pack(
            orders.Sheet(
                boot=encode(this_boot()),
                umask=_umask(),
                cap=cap,
                rows=0 if terminal is None else max(terminal.rows, 1),
                columns=0 if terminal is None else max(terminal.columns, 1),
                cwd=encode(cwd),
                argv=[encode(word) for word in argv],
                env={encode(name): encode(value) for name, value in env.items()},
            )
        )
    except ValueError as error:
        raise Refused(f"This cannot be run: {error}.") from error


def _umask() -> int:
    """Ours, which a command is to have too; read where reading does not change it for a moment."""
    found = re.search(rb"^Umask:\s*([0-7]+)$", read_told("/proc/self/status"), re.MULTILINE)
    return int(found[1], 8) if found else 0o022


def _decoded(raw: bytes, kind: type[T]) -> T | None:
    """What was written down; None for nothing, and for what a machine that stopped left half written."""
    try:
        return decoder_of(kind).decode(raw) if raw.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
