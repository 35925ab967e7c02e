"""After a crash, a restart, a lost database: every job is known again, and nothing is started for it."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import timedelta

from msgspec import Struct
from msgspec.structs import replace

from perdure.errors import Conflict, Refused
from perdure.jobs.place import JobPlace, job_path
from perdure.jobs.record import read_record
from perdure.jobs.service import Jobs
from perdure.model.job import Job, JobStatus

#: How old a directory is at least that nobody knows what to make of, before it is removed.
_AGE = timedelta(days=1)


class Recovered(Struct, frozen=True, kw_only=True):
    """How jobs stand after they were looked at."""

    running: tuple[Job, ...]
    #: Those that have ended since they were last looked at.
    ended: tuple[Job, ...]
    #: Ids of those that the store did not know.
    adopted: tuple[str, ...]
    #: Ids of those that were let go of.
    forgotten: tuple[str, ...]


def recover(jobs: Jobs) -> Recovered:
    """Look at every job, write down what became of it, know those again the store has lost, and let go of old ones.

    Nothing is ever started by this. It can be done at any time, by several at once.
    """
    adopted = tuple(job.id for job in _orphans(jobs) if _adopted(jobs, job))
    before = jobs.store.list_jobs(place=jobs.place, is_running=True)
    after = [jobs.look(job) for job in before]
    return Recovered(
        running=tuple(job for job in after if job.is_running),
        ended=tuple(job for job in after if not job.is_running),
        adopted=adopted,
        forgotten=jobs.forget(),
    )


def _orphans(jobs: Jobs) -> list[Job]:
    """The jobs of directories that the store does not know; what is left of forgotten ones is removed."""
    found = []
    known = {job.id for job in jobs.store.list_jobs(place=jobs.place)}
    for id in _directories(jobs.directory):
        if id not in known and not jobs.store.jobs_beginning(id):
            path = job_path(jobs.directory, id)
            job = read_record(path)
            if job is not None and not _is_forgotten(jobs, path):
                found.append(job)
            elif _is_forgotten(jobs, path) or _is_old(jobs, path):
                with suppress(OSError):
                    JobPlace(path).remove()
    return found


def _adopted(jobs: Jobs, job: Job) -> bool:
    """Write a job down again as it was ordered: its directory tells the rest."""
    fresh = replace(job, place=jobs.place, status=JobStatus.RUNNING, ended_at=None, exit_code=None, began_at=None)
    try:
        jobs.store.add_job(fresh)
    except Conflict:
        return False  # somebody else was quicker
    return True


def _is_forgotten(jobs: Jobs, path: str) -> bool:
    """It ended so long ago that it was let go of, and whoever did was ended before the directory was removed."""
    place = JobPlace(path)
    ended = place.ended()
    if place.is_looked_after():
        return False  # what it left behind goes on
    return ended is not None and ended.at < jobs.now() - timedelta(seconds=jobs.config.keep_seconds)


def _is_old(jobs: Jobs, path: str) -> bool:
    """Nobody can be about to start it, and nobody looks after it."""
    place = JobPlace(path)
    facts = place.facts()
    if facts.supervisor_runs or facts.process_runs:
        return False
    try:
        modified = os.stat(path).st_mtime
    except OSError:
        return False
    return jobs.now().timestamp() - modified > _AGE.total_seconds()


def _directories(jobs_dir: str) -> list[str]:
    """The names in a jobs directory that can be ids of jobs, of what are directories."""
    try:
        with os.scandir(jobs_dir) as entries:
            names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    found = []
    for name in sorted(names):
        try:
            job_path(jobs_dir, name)
        except Refused:
            continue
        found.append(name)
    return found
