"""Jobs, as everybody uses them: start, ask, wait, tell, end.

Nobody has to run for this: whoever looks at a job writes down what has become of it, once, with its event.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from perdure.errors import AmbiguousJob, JobNotFound, JobOver, PerdureError, Refused, StoreUnusable, UsageError
from perdure.host.scope import outside_service
from perdure.host.users import current_user, shell_of
from perdure.jobs import control, hiring, output, reading, waiting
from perdure.jobs.backends import find_backend, true_end
from perdure.jobs.backends.backend import Backend
from perdure.jobs.environment import environment_for
from perdure.jobs.ordering import accepted, check_data, check_owner, check_size, new_id
from perdure.jobs.place import Began, JobPlace, is_same_process, job_path, this_process
from perdure.jobs.reading import Log, Polled
from perdure.jobs.record import write_record
from perdure.jobs.standing import is_beginning, seen_to_begin, settled, uptime
from perdure.jobs.telling import notice_event, watching_on
from perdure.jobs.waiting import Waited
from perdure.model.config import Config
from perdure.model.event import Event, StoredEvent
from perdure.model.job import LOCAL, Job, JobStatus, Order, Watch
from perdure.ports import JobStore


class Ended(Struct, frozen=True, kw_only=True):
    """What came of ending a job."""

    job: Job
    #: It had ended before.
    was_over: bool = False
    #: How many processes are left that no signal ends.
    left: int = 0


class Jobs:
    """The jobs of one directory, written down in a `JobStore`.

    Several processes may have it at once, and each may be killed at any moment: a job, what it printed and how it ended
    depend on none of them. `now` tells the time. Of `environ` jobs are given what the configuration lets through.
    Jobs of other machines and directories, in the same store, can be looked up; what is written down of them is not
    judged, and nothing is done to them.
    """

    def __init__(
        self,
        store: JobStore,
        directory: str,
        config: Config,
        now: Callable[[], datetime],
        *,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.store = store
        self.directory = directory
        self.config = config.jobs
        self.now = now
        self.place = f"{config.host or os.uname().nodename}:{directory}"
        self._environ = os.environ if environ is None else environ

    # Starting

    def spawn(self, order: Order) -> Job:
        """Start a job and return it: it runs by then, or has ended, which it says with the reason.

        `order.env` is laid over what the job is given of our own environment. The job is written down for good before anything is
        started. Raises `UsageError` for an order that makes no sense, `Refused` when too many are running, and
        PerdureError when the backend is not there or nobody could be found to start it.
        """
        order, _ = accepted(order)
        backend = self._backend(order)
        backend.check()
        # The environment is for the job alone: it is in its directory, and never in the store.
        job = Job(
            id=new_id(), order=replace(order, env={}), ordered_at=self.now(), place=self.place, caller=this_process()
        )
        self._admit(job)
        has_terminal = order.terminal is not None
        env = environment_for(self._environ, order.env, self.config, has_terminal=has_terminal)
        try:
            wrapped = backend.wrap(job.id, order, env=env, directory=self.path(job))
            began = hiring.start(
                self.directory,
                job.id,
                argv=wrapped.argv,
                cwd=wrapped.cwd,
                env=wrapped.env,
                terminal=order.terminal,
                cap=self.config.log_bytes,
                outside=outside_service(current_user()),
            )
        except PerdureError as error:
            self._never_began(job, error.message)
            error.data.setdefault("job", job.id)
            raise
        write_record(self.path(job), job)
        job = self.look(job, began)
        if job.status is JobStatus.LOST:
            self._refuse_given_up(job)
        self.forget()
        return job

    def _refuse_given_up(self, job: Job) -> None:
        """Raise PerdureError for a job that somebody took for one that was never started: a clock was set forward meanwhile.

        Not for one that began, and lost who looked after it: whoever were told to start it again would run it twice.
        """
        began = JobPlace(self.path(job)).began()
        if began is None:
            raise PerdureError(f"Job {job.id} was given up before it began; start it again.", job=job.id)
        if is_same_process(began.supervisor):
            control.kill(self.path(job), self.config.grace_seconds)
            raise PerdureError(
                f"Job {job.id} was given up as it began, and ended; it may have done something.", job=job.id
            )

    # Asking

    def get(self, id: str) -> Job:
        """Return a job as it stands. Raises `JobNotFound`."""
        return self.look(self.store.get_job(id))

    def find(self, text: str) -> Job:
        """Return the job that is meant by an id or the beginning of one. Raises `JobNotFound` and `AmbiguousJob`."""
        if not text.strip():
            raise UsageError("The id of a job, or the beginning of it, cannot be empty.")
        found = self.store.jobs_beginning(text) if text and text.isascii() and text.isprintable() else ()
        exact = [job for job in found if job.id == text]
        if len(found) > 1 and not exact:
            raise AmbiguousJob(f"More than one job begins with {text}.", jobs=[job.id for job in found])
        if not found:
            raise JobNotFound(f"There is no job {text}.", job=text)
        return self.look((exact or found)[0])

    def list(self, *, owner: str | None = None, is_running: bool | None = None) -> tuple[Job, ...]:
        """Return jobs as they stand, the one that was ordered last first."""
        check_owner(owner)
        # Those that are running as far as was written down may not be.
        jobs = map(self.look, self.store.list_jobs(owner=owner, is_running=None if is_running is not True else True))
        return tuple(job for job in jobs if is_running is None or job.is_running is is_running)

    def poll(self, id: str, *, keep: bool = False) -> Polled:
        """Return how a job stands and what it printed since it was last polled.

        It is told of nobody else, and changes nothing but how far the output has been given. With `keep` not even
        that: `given` says so later, once it has arrived; whoever is killed in between has lost nothing.
        """
        job = self.get(id)
        printed = reading.since(self.path(job), job.polled, self.config.poll_bytes, is_over=not job.is_running)
        if not keep:
            self.given(id, printed.end)
        return Polled(job=job, uptime=uptime(job, self.now()), printed=printed)

    def given(self, id: str, end: int) -> None:
        """Note that the output has been given up to there, as far as there is any. It never goes back."""
        job = self.store.get_job(id)
        end = min(end, self.printed(job))
        if end > job.polled:
            self.store.change_job(id, lambda job: replace(job, polled=max(job.polled, end)))

    def log(
        self,
        id: str,
        *,
        offset: int | None = None,
        limit: int | None = None,
        tail: int | None = None,
        most: int | None = None,
    ) -> Log:
        """Return lines of what a job printed: `limit` from number `offset` (from 0) on, or the last `tail`, or all.

        No more than `most` bytes, which is as much as a poll gives when nothing is said. Everything that is kept can be had,
        whether the job runs or not.
        """
        if tail is not None and (offset is not None or limit is not None):
            raise UsageError("Lines are either the last so many (tail) or counted from the first (offset, limit).")
        if any(number is not None and number < 0 for number in (offset, limit, tail)):
            raise UsageError("Lines are counted from 0 on.")
        job = self.get(id)
        start = 0 if offset is None and limit is not None else offset
        most = self.config.poll_bytes if most is None else most
        return reading.log_of(job, self.path(job), offset=start, limit=limit, tail=tail, most=most)

    def wait(
        self, id: str, timeout: float | None = None, *, is_interrupted: Callable[[], bool] = lambda: False
    ) -> Waited:
        """Wait until a job has ended, and return how it stands and the last of what it printed.

        No longer than is configured: `note` tells when that is less than was asked for, with both numbers. Whatever is done to the
        clock makes no difference, and any number may wait at once. `is_interrupted` is asked several times a second.
        """
        seconds, note = waiting.allowed(timeout, self.config.wait_seconds)
        job, interrupted = waiting.wait_for(lambda: self.get(id), seconds, is_interrupted)
        most = self.config.poll_bytes
        printed = reading.since(self.path(job), 0, most, is_over=not job.is_running)
        if job.is_running and note is None and not interrupted:
            note = waiting.still_running(seconds)
        return Waited(job=job, printed=printed, interrupted=interrupted, note=note)

    def left(self, job: Job) -> int:
        """Return how many processes go on that a job left behind when it ended. Of other machines nothing is known."""
        began = seen_to_begin(job)
        if job.is_running or job.place != self.place or began is None:
            return 0
        return control.left_behind(job.id, began)

    # Telling

    def write(self, id: str, data: bytes) -> int:
        """Write to a job's standard input, and return how many bytes were taken: fewer when it does not read them.

        Raises `JobOver` when it has ended, and `Refused` when its input was closed.
        """
        check_data(data)
        return control.write(self._running(id), data)

    def submit(self, id: str, data: bytes) -> int:
        """Write a line: what Enter is on a terminal, and what ends a line elsewhere, comes behind it."""
        check_data(data)
        job = self.get(id)
        return self.write(id, data + (b"\n" if job.order.terminal is None else b"\r"))

    def close_stdin(self, id: str) -> None:
        """Let a job read the end of its input, after what was written. Raises as `write` does."""
        control.close_stdin(self._running(id))

    def resize(self, id: str, rows: int, columns: int) -> None:
        """Give a job's terminal another size. Raises `Refused` when it has none, else as `write` does."""
        check_size(rows, columns)
        control.resize(self._running(id), rows, columns)

    # Ending

    def kill(self, id: str) -> Ended:
        """End a job with everything it has started: asked first, then forced. One that has ended says so.

        What a job that has ended left running is ended too. Returns when it is over and written down.
        """
        job = self.get(id)
        self._refuse_elsewhere(job)
        was_over = not job.is_running
        killed = self._end(job)
        job = self.get(id)
        if job.is_running and job.began_at is None:
            JobPlace(self.path(job)).give_up("It was ended before it began.", self.now())
            job = self.get(id)
        return Ended(job=job, was_over=was_over, left=killed.left)

    def end_all(self, owner: str) -> tuple[Ended, ...]:
        """End every running job of an owner, and what others left behind, all at once; return what came of each."""
        from concurrent.futures import ThreadPoolExecutor

        here = [job for job in self.list(owner=owner) if job.place == self.place]
        jobs = [job for job in here if job.is_running or self.left(job)]
        if not jobs:
            return ()
        # Each may take its grace, so they take it together. The store is left to this thread.
        with ThreadPoolExecutor(min(len(jobs), _TOGETHER)) as pool:
            killed = list(pool.map(self._end_if_it_can_be, jobs))
        return tuple(
            Ended(job=self.get(job.id), was_over=not job.is_running, left=each.left)
            for job, each in zip(jobs, killed, strict=True)
        )

    def has_running(self, owner: str, max_age: timedelta | None = None) -> bool:
        """Return whether a job of an owner is running that is not older than that. What chats ask before they are reset.

        What is written down of other machines is believed.
        """
        now = self.now()
        return any(
            max_age is None or now - job.ordered_at <= max_age for job in self.list(owner=owner, is_running=True)
        )

    # Keeping

    def look(self, job: Job, began: Began | None = None) -> Job:
        """Return a job as its directory tells, and who is there, which is written down when it is news.

        `began` is how somebody saw it begin just now.
        """
        if not job.is_running or job.place != self.place:
            return job
        as_it_is = self._as_it_is(job, began)
        seen = as_it_is(job)
        if seen == job:
            return job
        try:
            return self.store.change_job(job.id, as_it_is)
        except StoreUnusable:
            # It can be looked at where nothing can be written.
            return seen

    def watch(self, job: Job, ahead: Watch | None = None) -> tuple[Job, Watch]:
        """Look at a job and write down what there is to tell its owner of it, each once; return both as they are then.

        `ahead` is what this returned the last time: what was searched without finding anything is not searched again. Whoever
        else does the same at once, or is ended meanwhile, nothing is told twice or left out. Raises `StoreUnusable`.
        """
        if not job.is_watched or job.place != self.place:
            return job, job.watch
        as_it_is = self._as_it_is(job) if job.is_running else lambda fresh: fresh
        seen, now = as_it_is(job), self.now()
        watch, notices = watching_on(self.path(job), seen, job.watch if ahead is None else ahead, now)
        # Who does not go on from here needs to know the next time what has not changed since.
        is_kept = ahead is not None or watch.end == job.watch.end
        if seen == job and is_kept and not notices and not watch.is_over and watch.at - job.watch.at < _SEARCHED:
            return job, watch
        events = [notice_event(notice, job, now) for notice in notices]

        def change(fresh: Job) -> tuple[Job, Sequence[Event]]:
            after = as_it_is(fresh)
            # Somebody else has told of it since it was read: what is left is found the next time.
            return (replace(after, watch=watch), events) if fresh.watch == job.watch else (after, ())

        job = self.store.watch_job(job.id, change)
        return job, job.watch

    def printed(self, job: Job) -> int:
        """Return how much a job has printed so far, in bytes."""
        return output.size(self.path(job))

    def notices(self, owner: str, *, limit: int = 100) -> tuple[StoredEvent, ...]:
        """Return what an owner is to be told of its jobs and has not been, in order: until `delivered` says that it has.

        Looks at the jobs first, so that it needs no daemon. Polling a job makes no difference.
        """
        for job in self.store.list_jobs(owner=owner):
            with suppress(JobNotFound, OSError):
                self.watch(job)
        return self.store.undelivered(owner, limit=limit)

    def delivered(self, owner: str, seq: int) -> None:
        """Note that an owner has been told everything up to this number; `notices` does not return it again."""
        self.store.deliver(owner, seq)

    def _as_it_is(self, job: Job, began: Began | None = None) -> Callable[[Job], Job]:
        """Return what makes of a running job what its directory tells at this moment."""
        place, now = JobPlace(self.path(job)), self.now()
        facts = place.facts(seen_to_begin(job) or began)
        is_left = job.caller is not None and not is_same_process(job.caller)
        if facts.began is None and facts.ended is None and (is_left or not is_beginning(job, now)):
            with suppress(PerdureError):  # and where that cannot be written, the next one does
                place.give_up("Whoever ordered it was ended before it began.", now)
            facts = place.facts()
        return lambda fresh: true_end(settled(fresh, facts, now), place.directory, self.config)

    def forget(self) -> tuple[str, ...]:
        """Let go of jobs that ended long ago, and of the earliest of too many, with what they printed; return their ids.

        Not of one that left processes behind as long as they go on: nobody could find them any more.
        """
        before = self.now() - timedelta(seconds=self.config.keep_seconds)
        keep, directory = self.config.keep_ended, self.directory
        forgotten = self.store.forget_jobs(
            self.place, before, keep=keep, is_spared=lambda id: JobPlace(job_path(directory, id)).is_looked_after()
        )
        for id in forgotten:
            # What it left running may be printing into it: then it is removed the next time somebody recovers.
            with suppress(OSError):
                JobPlace(job_path(self.directory, id)).remove()
        return forgotten

    def path(self, job: Job) -> str:
        """Return the directory of a job."""
        return job_path(self.directory, job.id)

    def _admit(self, job: Job) -> None:
        """Write a job down if there may be another one."""
        limit, of_owner = self.config.max_running, self.config.max_per_owner
        try:
            self.store.add_job(job, limit=limit, of_owner=of_owner)
        except Refused:
            # Some of those that are in its way may have ended, and nobody has looked yet.
            looked = [self.look(each) for each in self.store.list_jobs(is_running=True)]
            if all(each.is_running for each in looked):
                raise
            self.store.add_job(job, limit=limit, of_owner=of_owner)

    def _end(self, job: Job) -> control.Killed:
        """End what runs of a job: inside its backend first, where its last words come from.

        Raises PerdureError when nobody knows whether it has ended there; then nothing has changed here.
        """
        grace = self.config.grace_seconds
        if job.order.backend == LOCAL or job.status not in (JobStatus.RUNNING, JobStatus.LOST):
            return control.kill(self.path(job), grace, seen=seen_to_begin(job))
        place, backend = JobPlace(self.path(job)), self._backend(job.order)
        if job.is_running:
            place.ask(self.now())
        try:
            found = backend.kill(job, grace)
        except PerdureError:
            place.unask()
            raise
        if found:
            waiting.let_end(place)
        killed = control.kill(self.path(job), grace, seen=seen_to_begin(job))
        if not found and job.is_running:
            # It may have been on its way there; now nothing more can come.
            backend.kill(job, grace)
        return killed

    def _end_if_it_can_be(self, job: Job) -> control.Killed:
        try:
            return self._end(job)
        except PerdureError:
            # The others are ended all the same.
            return control.Killed(found=0, left=1)

    def _never_began(self, job: Job, why: str) -> None:
        with suppress(PerdureError):
            JobPlace(self.path(job)).give_up(why, self.now())
        over = replace(job, status=JobStatus.EXITED, ended_at=self.now(), why=why)
        self.store.change_job(job.id, lambda fresh: over if fresh.is_running else fresh)

    def _backend(self, order: Order) -> Backend:
        return find_backend(order.backend, self._shell(), self.config, self._environ)

    def _shell(self) -> str:
        """The user's shell: what they say, else what the password database says."""
        said = self._environ.get("SHELL", "")
        return said if os.path.isabs(said) and os.access(said, os.X_OK) else shell_of(current_user())

    def _running(self, id: str) -> str:
        """Return the directory of a job that runs. Raises `JobOver` otherwise."""
        job = self.get(id)
        self._refuse_elsewhere(job)
        if not job.is_running:
            raise JobOver(f"Job {id} has ended ({job.status}).", job=id, status=job.status.value)
        return self.path(job)

    def _refuse_elsewhere(self, job: Job) -> None:
        if job.place != self.place:
            raise Refused(f"Job {job.id} is not here, but at {job.place}: nothing can be done to it from here.")


#: How many jobs are ended at the same time.
_TOGETHER = 64
#: So much is searched, without anything to tell, until it is written down how far that is.
_SEARCHED = 8 << 20
