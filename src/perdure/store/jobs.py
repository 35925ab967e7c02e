"""Jobs: written down before they are started, with what happens to them; each readable or left out on its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from msgspec.structs import replace

from perdure import errors
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.job import Job
from perdure.model.job_events import events_between, is_notice
from perdure.store.driver import Row
from perdure.store.numbers import EVENTS, GIVING
from perdure.store.queries import queries
from perdure.store.rows import UNREADABLE, canonical, decoded, packed, stamp
from perdure.store.runs import Runs, event_from


class JobBook:
    """The `JobStore` of one database, beside the events of it. One that cannot be read back costs only itself."""

    def __init__(self, runs: Runs, *, read_only: bool = False) -> None:
        self._runs = runs
        self._driver = runs.driver
        self._sql = queries()
        self._is_read_only = read_only

    def add_job(self, job: Job, *, limit: int | None = None, of_owner: int | None = None) -> None:
        with self._changing():
            if self._driver.fetch_as_is(self._sql["get_job"], id=job.id):
                raise errors.Conflict(f"There is a job {job.id} already.", job=job.id)
            self._refuse_too_many(job, limit, of_owner)
            self._insert(job)

    def get_job(self, id: str) -> Job:
        for row in self._driver.fetch_as_is(self._sql["get_job"], id=id):
            job = job_from(row)
            if job is None:
                raise errors.JobNotFound(f"Job {id} cannot be read back; the others are not affected.", job=id)
            return job
        raise errors.JobNotFound(f"There is no job {id}.", job=id)

    def jobs_beginning(self, prefix: str, *, limit: int = 2) -> tuple[Job, ...]:
        # Ids are ASCII: nothing that begins with the prefix comes behind this.
        rows = self._driver.fetch_as_is(self._sql["jobs_from"], low=prefix, high=prefix + "\x7f", limit=limit)
        return tuple(_readable(rows))

    def list_jobs(
        self, *, owner: str | None = None, place: str | None = None, is_running: bool | None = None
    ) -> tuple[Job, ...]:
        running = None if is_running is None else int(is_running)
        rows = self._driver.fetch_as_is(self._sql["list_jobs"], owner=owner, place=place, is_running=running)
        return tuple(_readable(rows))

    def change_job(self, id: str, change: Callable[[Job], Job]) -> Job:
        return self.watch_job(id, lambda job: (change(job), ()))

    def watch_job(self, id: str, change: Callable[[Job], tuple[Job, Sequence[Event]]]) -> Job:
        with self._changing():
            before = self.get_job(id)
            after, told = change(before)
            if not before.is_running:
                after = _as_it_ended(after, before)
            if after != before:
                self._driver.execute(self._sql["put_job"], id=id, ended_at=_end(after), body=packed(canonical(after)))
            # That it began was before whatever it printed, and that was before the end.
            changes = list(events_between(before, after))
            started = [event for event in changes if event.kind is EventKind.JOB_STARTED]
            self._tell(after, *started, *told, *(event for event in changes if event not in started))
            return after

    def undelivered(self, owner: str, *, limit: int = 100) -> tuple[StoredEvent, ...]:
        found: list[StoredEvent] = []
        after = 0
        while len(found) < limit:
            sql, most = self._sql["read_job_notices"], limit - len(found)
            rows = self._driver.fetch_as_is(sql, owner=owner, after=after, limit=most)
            found += [event for event in map(event_from, rows) if event is not None]
            if len(rows) < most:
                break
            after = rows[-1][0]
        return tuple(found)

    def deliver(self, owner: str, seq: int) -> None:
        with self._changing():
            self._driver.execute(self._sql["delete_job_notices"], owner=owner, seq=seq)

    def forget_jobs(
        self, place: str, ended_before: datetime, *, keep: int, is_spared: Callable[[str], bool] = lambda id: False
    ) -> tuple[str, ...]:
        # Looked at first: mostly there is nothing to forget, and then nobody has to wait for a turn to write.
        if not self._is_read_only and all(map(is_spared, self._to_forget(place, ended_before, keep))):
            return ()
        with self._changing():
            doomed = tuple(id for id in self._to_forget(place, ended_before, keep) if not is_spared(id))
            for id in doomed:
                self._driver.execute(self._sql["delete_job"], id=id)
            self._driver.execute(self._sql["delete_old_job_notices"])
        return doomed

    def damaged(self) -> Iterator[str]:
        """Yield the id of every job that cannot be read back."""
        for row in self._driver.fetch_as_is(self._sql["list_jobs"], owner=None, place=None, is_running=None):
            if job_from(row) is None:
                yield row[0]

    def set_aside(self, id: str, now: datetime) -> None:
        """Move a damaged job to where it does no harm. Its directory tells what it was, to whoever looks there."""
        with self._changing():
            self._driver.execute(self._sql["set_job_aside"], at=stamp(now), id=id)
            self._driver.execute(self._sql["delete_job"], id=id)

    def keep(self, jobs: Sequence[Job], notices: Mapping[int, str]) -> int:
        """Keep jobs of another database that are not here, with what is to be delivered of them; return how many.

        `notices` has by the number of an event to which owner. One of which the event says another, or that is not here,
        is left out.
        """
        kept = 0
        with self._changing():
            for job in jobs:
                if not self._driver.fetch_as_is(self._sql["get_job"], id=job.id):
                    self._insert(job)
                    kept += 1
            for seq, owner in notices.items():
                (stored,) = self._runs.read_events(after=seq - 1, limit=1) or (None,)
                if stored is not None and stored.seq == seq and stored.event.data.get("owner") == owner:
                    self._driver.execute(self._sql["insert_job_notice"], seq=seq, owner=owner)
        return kept

    def _insert(self, job: Job) -> None:
        self._driver.execute(
            self._sql["insert_job"],
            id=job.id,
            place=job.place,
            owner=job.order.owner,
            ordered_at=stamp(job.ordered_at),
            ended_at=_end(job),
            body=packed(canonical(job)),
        )

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """One transaction in which nobody else changes a job or gives a number to an event."""
        if self._is_read_only:
            raise errors.StoreUnusable("The store is only read here: no job can be changed in it.")
        with self._driver.transaction(GIVING):
            yield

    def _refuse_too_many(self, job: Job, limit: int | None, of_owner: int | None) -> None:
        owner = job.order.owner
        if owner is not None and of_owner is not None:
            running = self._count("count_running_jobs_of", owner=owner)
            if running >= of_owner:
                raise errors.Refused(
                    f"{owner} has {running} jobs running already, and {of_owner} are allowed.",
                    running=running,
                    limit=of_owner,
                )
        if limit is not None:
            running = self._count("count_running_jobs", place=job.place)
            if running >= limit:
                raise errors.Refused(
                    f"There are {running} jobs running already, and {limit} are allowed.", running=running, limit=limit
                )

    def _to_forget(self, place: str, ended_before: datetime, keep: int) -> tuple[str, ...]:
        before = stamp(ended_before)
        rows = self._driver.fetch_as_is(self._sql["jobs_to_forget"], place=place, before=before, keep=max(0, keep))
        return tuple(id for (id,) in rows)

    def _count(self, query: str, **parameters: str) -> int:
        return int(self._driver.fetch_as_is(self._sql[query], **parameters)[0][0])

    def _tell(self, job: Job, *events: Event) -> None:
        if not events:
            return
        numbers = self._runs.numbers.take(EVENTS, len(events))
        stored = [StoredEvent(seq=seq, event=event) for seq, event in zip(numbers, events, strict=True)]
        self._runs.keep_events(stored)
        for each in stored:
            if is_notice(job, each.event):
                self._driver.execute(self._sql["insert_job_notice"], seq=each.seq, owner=job.order.owner)


def job_from(row: Row) -> Job | None:
    """Return a job of which everything that is said twice agrees, None when it cannot be read."""
    id, place, owner, ordered_at, ended_at, body = row
    try:
        job = decoded(Job, body)
        said = (job.id, job.place, job.order.owner, stamp(job.ordered_at), _end(job))
    except UNREADABLE:
        return None
    return job if said == (id, place, owner, ordered_at, ended_at) else None


def _as_it_ended(job: Job, before: Job) -> Job:
    return replace(job, status=before.status, exit_code=before.exit_code, ended_at=before.ended_at, why=before.why)


def _end(job: Job) -> str | None:
    """When it ended, as a stamp. What says that it has ended says when."""
    if job.is_running is not (job.ended_at is None):
        raise ValueError(f"job {job.id} is {job.status}, and ended at {job.ended_at}")
    return None if job.ended_at is None else stamp(job.ended_at)


def _readable(rows: list[Row]) -> Iterator[Job]:
    # One that cannot be read costs only itself; `check` says so.
    return (job for job in map(job_from, rows) if job is not None)
