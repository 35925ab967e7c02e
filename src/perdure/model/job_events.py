"""What is told of jobs. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from perdure.model.event import Event, EventKind
from perdure.model.job import Job
from perdure.model.run import number_of, run_id


def events_between(before: Job, after: Job) -> Iterator[Event]:
    """Yield what has happened to a job, in order, judged by how it was and how it is."""
    if after.began_at is not None and before.began_at is None:
        yield job_event(EventKind.JOB_STARTED, after, after.began_at, backend=after.order.backend)
    if before.is_running and not after.is_running and after.ended_at is not None:
        data = {"status": after.status.value, "exit_code": after.exit_code, "why": after.why}
        yield job_event(EventKind.JOB_ENDED, after, after.ended_at, **data)


def is_notice(job: Job, event: Event) -> bool:
    """Say whether an event about a job is to be delivered to its owner, by what the owner wanted to be told of."""
    if job.order.owner is None:
        return False
    if event.kind is EventKind.JOB_ENDED:
        return job.order.notify.on_exit or job.watch.on_exit
    return event.kind in (EventKind.JOB_OUTPUT, EventKind.JOB_NOTE)


def job_event(kind: EventKind, job: Job, at: datetime, **data: Any) -> Event:
    """Return an event about a job. Where a run owns it, the event is about that run, too."""
    return Event(kind=kind, at=at, run=run_of(job), data={"job": job.id, "owner": job.order.owner, **data})


def run_of(job: Job) -> str | None:
    """Return the id of the run that owns a job; None when it is a chat's, or nobody's."""
    owner = job.order.owner
    number = None if owner is None else number_of(owner)
    # `r007` is no run's id, though there is a number in it.
    return owner if number is not None and run_id(number) == owner else None
