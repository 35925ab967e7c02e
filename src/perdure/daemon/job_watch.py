"""Jobs, while the daemon watches: their ends are written down though nobody asks, and their owners are told.

Nothing here is needed by a job: whoever looks at one finds the same.
"""

from __future__ import annotations

import logging

from msgspec import Struct

from perdure.daemon.keeping import Keeping
from perdure.daemon.stimuli import Key, What
from perdure.errors import JobNotFound, PerdureError, StoreUnusable
from perdure.jobs.service import Jobs
from perdure.jobs.upkeep import recover
from perdure.model.job import Job, Watch
from perdure.model.run import Program

#: How often a job is looked at, in seconds: one that has just begun or is about to be over, one whose output somebody is told
#: of or whose end nobody tells, and any other.
HURRIED, OFTEN, SELDOM = 0.25, 1.0, 30.0
#: How long a job counts as one that has just begun, or is about to be over.
BRIEF = 3.0
#: How often all jobs are looked up, and those let go of that ended long ago.
EVERY = 60.0
#: How soon it is looked up again which jobs there are, and when the store is tried again that failed.
SOON, AGAIN = 0.2, 5.0
#: Of so many jobs the ends of their processes are waited for, each for a descriptor.
MOST_ENDS = 256

log = logging.getLogger(__name__)


class _Tracked(Struct, kw_only=True):
    """A job there may be something to tell of."""

    job: Job
    #: How far its output was searched.
    ahead: Watch | None = None
    due: float
    #: Until then it is looked at in a hurry.
    hurry: float
    #: Until then, only a look at how much it has printed is needed as long as that is no more.
    rest: float = 0.0
    is_broken: bool = False


class JobWatch:
    """The jobs of the daemon's own user. Without any, it only looks now and then whether there are."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._tracked: dict[str, _Tracked] = {}
        self._everything_at = 0.0
        self._list_at: float | None = None
        self._listed_at = 0.0

    @property
    def programs(self) -> dict[Key, Program]:
        """The processes whose ends are worth a look."""
        found = {}
        for id, each in list(self._tracked.items())[:MOST_ENDS]:
            process = each.job.process
            if process is not None and each.job.is_running:
                found[Key(What.JOB, id)] = Program(pid=process.pid, start_ticks=process.started)
        return found

    def next(self) -> float:
        """When there is something to do even if nothing happens."""
        times = [self._everything_at, *(each.due for each in self._tracked.values())]
        return min(times if self._list_at is None else [*times, self._list_at])

    def appeared(self, at: float) -> None:
        """There may be another job."""
        self._list_at = max(at, self._listed_at + SOON)

    def ended(self, id: str, at: float) -> None:
        """The process of a job has ended, so that its end is about to be written down."""
        if (each := self._tracked.get(id)) is not None:
            each.due, each.hurry, each.rest = at, at + BRIEF, 0.0

    def begin_anew(self) -> None:
        """Take nothing for granted: it may be another database."""
        self._tracked.clear()
        self._everything_at = 0.0

    def look(self, at: float) -> None:
        """Do what is due. Nothing that is wrong with a job or the store gets any further."""
        try:
            if at >= self._everything_at:
                self._everything_at = at + EVERY
                self._look_up_all(at)
            elif self._list_at is not None and at >= self._list_at:
                self._look_up_running(at)
            for id in [id for id, each in self._tracked.items() if each.due <= at]:
                self._watch(id, at)
        except StoreUnusable as error:
            log.info("jobs are looked at later: %s", error.message)
            for each in self._tracked.values():
                each.due = max(each.due, at + AGAIN)
            self._everything_at = at + AGAIN

    @property
    def _jobs(self) -> Jobs:
        return self._keeping.world.jobs

    def _look_up_all(self, at: float) -> None:
        jobs = self._jobs
        # Before anybody is let go of, and so that what a job printed is told before its end.
        self._track(jobs.store.list_jobs(place=jobs.place), at)
        for id in list(self._tracked):
            self._watch(id, at)
        try:
            recovered = recover(jobs)
        except StoreUnusable:
            raise
        except (OSError, ValueError, PerdureError) as error:
            log.warning("jobs could not all be looked at: %s", error)
        else:
            self._track(recovered.running, at)

    def _look_up_running(self, at: float) -> None:
        self._list_at, self._listed_at = None, at
        self._track(self._jobs.store.list_jobs(place=self._jobs.place, is_running=True), at)

    def _track(self, jobs: tuple[Job, ...], at: float) -> None:
        for job in jobs:
            if job.is_watched and job.id not in self._tracked:
                self._tracked[job.id] = _Tracked(job=job, due=at, hurry=at + BRIEF)

    def _watch(self, id: str, at: float) -> None:
        """Look at one job and say when it is looked at again."""
        each = self._tracked[id]
        step = HURRIED if at < each.hurry else OFTEN if self._needs_looking(each.job) else SELDOM
        # Together with the others: what a round costs is paid once.
        each.due = (at // step + 1) * step
        try:
            if at < each.rest and each.ahead is not None and self._jobs.printed(each.job) == each.ahead.end:
                return
            before, (each.job, each.ahead) = each.ahead, self._jobs.watch(each.job, each.ahead)
            each.rest = at + SELDOM if at >= each.hurry and self._is_still(each.job, before, each.ahead) else 0.0
            each.is_broken = False
        except StoreUnusable:
            raise
        except JobNotFound:
            del self._tracked[id]
            return
        except (OSError, ValueError, PerdureError) as error:
            # The others are told of all the same.
            each.due = at + EVERY
            if not each.is_broken:
                log.warning("job %s cannot be looked at: %s", id, error)
            each.is_broken = True
        if not each.job.is_watched:
            del self._tracked[id]

    def _is_still(self, job: Job, before: Watch | None, watch: Watch) -> bool:
        """Whether there is nothing to do for a job until it prints something, or its process ends, which is told."""
        if job.process is None or len(self._tracked) > MOST_ENDS or before is None:
            return False
        has_news = job.order.notify.every_seconds is not None and watch.every_end < watch.end
        return before.end == watch.end and not watch.held and not has_news

    def _needs_looking(self, job: Job) -> bool:
        notify = job.order.notify
        is_told_of = bool(notify.patterns and not job.watch.on_exit) or notify.every_seconds is not None
        return is_told_of or job.process is None or len(self._tracked) > MOST_ENDS
