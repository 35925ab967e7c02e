"""What becomes of what is written down of a job when its directory is looked at. Pure."""

from __future__ import annotations

from datetime import datetime, timedelta

from msgspec.structs import replace

from perdure.jobs.place import Began, Facts, judge
from perdure.model.job import Job, JobStatus

#: How long a job that was written down may take until it begins. Whoever starts it gives up long before.
BEGINNING = timedelta(seconds=120)


def settled(job: Job, facts: Facts, now: datetime) -> Job:
    """Return a job as it stands by these facts. One that has ended is as it is."""
    if not job.is_running:
        return job
    if facts.began is not None and job.began_at is None:
        began = facts.began
        job = replace(job, supervisor=began.supervisor, process=began.process, began_at=began.at)
    verdict = judge(facts)
    if verdict.status is JobStatus.RUNNING:
        # Before it begins there is nothing to be said that will not be wrong in a moment.
        return replace(job, why=verdict.why) if facts.began is not None else job
    return replace(
        job,
        status=verdict.status,
        exit_code=verdict.exit_code,
        ended_at=verdict.ended_at or now,
        why=verdict.why,
    )


def seen_to_begin(job: Job) -> Began | None:
    """Return how a job began as it is written down, None when nobody has seen that."""
    if job.supervisor is None or job.process is None or job.began_at is None:
        return None
    return Began(supervisor=job.supervisor, process=job.process, at=job.began_at)


def is_beginning(job: Job, now: datetime) -> bool:
    """Say whether whoever ordered a job may still be about to start it."""
    # A clock that was set back proves nothing.
    return now - job.ordered_at < BEGINNING


def uptime(job: Job, now: datetime) -> float:
    """Return for how many seconds a job has run, or ran."""
    return max(0.0, ((job.ended_at or now) - (job.began_at or job.ordered_at)).total_seconds())
