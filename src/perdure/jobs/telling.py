"""Telling the owner of a job: what is on the disk is searched as far as it goes, and becomes events."""

from __future__ import annotations

from datetime import datetime

from perdure.jobs.reading import not_yet_seen
from perdure.jobs.watching import Notice, advance
from perdure.model.event import Event, EventKind
from perdure.model.job import Job, Watch
from perdure.model.job_events import job_event

#: So many pieces of a job that runs are searched at once: others have to be looked at, too.
_PIECES = 16


def watching_on(directory: str, job: Job, watch: Watch, now: datetime) -> tuple[Watch, tuple[Notice, ...]]:
    """Advance a watch by what a job has printed since, and return it with what is to be told."""
    told: list[Notice] = []
    is_over, pieces = not job.is_running, 0
    while True:
        seen, is_all = not_yet_seen(directory, job, watch, is_over=is_over)
        watch, notices = advance(job.order.notify, watch, seen, now)
        told += notices
        pieces += 1
        if is_all or (pieces >= _PIECES and not is_over):
            return watch, tuple(told)


def notice_event(notice: Notice, job: Job, now: datetime) -> Event:
    """Return a notice as the event it is told by."""
    if notice.note is not None:
        return job_event(EventKind.JOB_NOTE, job, now, note=notice.note)
    data = {"output": notice.output, "pattern": notice.pattern, "more": notice.more}
    return job_event(EventKind.JOB_OUTPUT, job, now, **data)
