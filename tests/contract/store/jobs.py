"""Jobs to write down."""

from __future__ import annotations

import msgspec

from perdure.model.job import Job, JobProcess, JobStatus, Notify, Order, Terminal
from tests.builders import at

HERE = "laptop:/home/dev/.local/state/perdure/jobs"


def a_job(id: str = "j1", *, owner: str | None = None, seconds: float = 0, **changes: object) -> Job:
    """A job that was ordered some seconds after noon, and of which nothing more is known."""
    order = Order(
        argv=("make", "all"),
        cwd="/home/dev/roof",
        terminal=Terminal(),
        owner=owner,
        notify=Notify(on_exit=True, patterns=("error:",), every_seconds=60.0),
    )
    return msgspec.structs.replace(Job(id=id, order=order, ordered_at=at(seconds), place=HERE), **changes)


def begun(job: Job, seconds: float = 1) -> Job:
    """The same job with its processes."""
    process = JobProcess(pid=4000, started=77, boot="b0")
    supervisor = JobProcess(pid=3999, started=76, boot="b0")
    return msgspec.structs.replace(job, supervisor=supervisor, process=process, began_at=at(seconds))


def over(job: Job, seconds: float = 2, *, status: JobStatus = JobStatus.EXITED, code: int | None = 0) -> Job:
    """The same job, ended some seconds after noon."""
    return msgspec.structs.replace(job, status=status, exit_code=code, ended_at=at(seconds))
