"""Jobs as programs get to see them, secrets aside. Pure."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct

from perdure.jobs.reading import Log, Printed
from perdure.jobs.service import Ended
from perdure.jobs.standing import uptime
from perdure.model.job import Job
from perdure.model.secrets import redact_argv, redact_text


class JobRow(Struct, frozen=True, kw_only=True):
    """One job, as `--json` shows it, secrets aside."""

    job: str
    status: str
    exit_code: int | None
    #: Its words, or the text for the shell.
    argv: tuple[str, ...] | None
    shell: str | None
    cwd: str
    owner: str | None
    backend: str
    pty: bool
    #: None before it has begun.
    pid: int | None
    ordered_at: datetime
    ended_at: datetime | None
    #: In seconds.
    uptime: float
    #: In words, when there is more to say than the code.
    why: str | None
    #: How many processes go on that it left behind when it ended.
    left: int


class JobAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a job stands, and what it printed. What there is nothing to say about is left out."""

    job: str
    status: str
    exit_code: int | None
    output: str
    truncated: bool
    why: str | None = None
    left: int | None = None
    #: That it was not waited as long as asked, or that it still runs.
    note: str | None = None


class Stretch(Struct, frozen=True, kw_only=True):
    """What a job printed to one of its streams, before it printed to the other."""

    stream: str
    text: str


class LogRow(Struct, frozen=True, kw_only=True):
    """Some lines of what a job printed."""

    job: str
    status: str
    exit_code: int | None
    #: The number of the first of them, from 0 on.
    offset: int
    total_lines: int
    output: str
    truncated: bool
    streams: tuple[Stretch, ...]


class EndedRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of ending a job."""

    job: str
    #: killed, already_ended, or still_running
    result: str
    status: str
    exit_code: int | None
    #: How many processes are left that no signal ends.
    left: int
    why: str | None = None


def job_row(job: Job, at: datetime, left: int) -> JobRow:
    """Return a job for scripts, `left` of whose processes go on though it has ended."""
    order = job.order
    return JobRow(
        job=job.id,
        status=job.status.value,
        exit_code=job.exit_code,
        argv=None if order.argv is None else redact_argv(order.argv),
        shell=None if order.shell is None else redact_text(order.shell),
        cwd=order.cwd,
        owner=order.owner,
        backend=order.backend,
        pty=order.terminal is not None,
        pid=None if job.process is None else job.process.pid,
        ordered_at=job.ordered_at,
        ended_at=job.ended_at,
        uptime=round(uptime(job, at), 3),
        why=why_of(job, left),
        left=left,
    )


def why_of(job: Job, left: int = 0) -> str | None:
    """Return what there is to say of a job besides its status and code, secrets aside."""
    said = [] if job.why is None else [redact_text(job.why)]
    if job.is_running and job.began_at is None:
        said.append("It has not begun yet.")
    if left:
        said.append(
            f"{left} process{'' if left == 1 else 'es'} that it left behind still run{'s' if left == 1 else ''}."
        )
    return " ".join(said) or None


def answer_of(job: Job, printed: Printed, left: int = 0, note: str | None = None) -> JobAnswer:
    """Return how a job stands and what it printed, for scripts."""
    return JobAnswer(
        job=job.id,
        status=job.status.value,
        exit_code=job.exit_code,
        output=printed.text,
        truncated=printed.truncated,
        why=why_of(job, left),
        left=left or None,
        note=note,
    )


def log_row(log: Log) -> LogRow:
    """Return lines of what a job printed, for scripts."""
    return LogRow(
        job=log.job.id,
        status=log.job.status.value,
        exit_code=log.job.exit_code,
        offset=log.first,
        total_lines=log.total,
        output=log.printed.text,
        truncated=log.printed.truncated,
        streams=tuple(_stretch(is_error, data) for is_error, data in log.stretches),
    )


def ended_row(ended: Ended) -> EndedRow:
    """Return what came of ending a job, for scripts."""
    job = ended.job
    return EndedRow(
        job=job.id,
        result="already_ended" if ended.was_over else "still_running" if job.is_running else "killed",
        status=job.status.value,
        exit_code=job.exit_code,
        left=ended.left,
        why=None if job.why is None else why_of(job),
    )


def _stretch(is_error: bool, data: bytes) -> Stretch:
    return Stretch(stream="stderr" if is_error else "stdout", text=data.decode(errors="replace"))
