"""Which jobs are looked at when, and what a store or a job that fails costs."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from msgspec.structs import replace

from perdure.daemon import job_watch
from perdure.daemon.job_watch import AGAIN, EVERY, HURRIED, JobWatch
from perdure.daemon.keeping import Keeping
from perdure.daemon.stimuli import Key, What
from perdure.errors import JobNotFound, StoreUnusable
from perdure.jobs.upkeep import Recovered
from perdure.model.job import Job, Watch
from perdure.model.run import Program
from tests.contract.store.jobs import HERE, a_job, begun, over


class Jobs:
    """Jobs that are looked at, and what becomes of that."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = {job.id: job for job in jobs}
        self.place = HERE
        self.store = self
        self.looked: list[str] = []
        self.fails: dict[str, Exception] = {}

    def list_jobs(self, *, place: str, is_running: bool | None = None) -> tuple[Job, ...]:
        """As a `JobStore` does."""
        return tuple(self.jobs.values())

    def printed(self, job: Job) -> int:
        """As `Jobs` does."""
        return self.jobs[job.id].watch.end

    def watch(self, job: Job, ahead: Watch | None) -> tuple[Job, Watch]:
        """As `Jobs` does."""
        self.looked.append(job.id)
        if job.id in self.fails:
            raise self.fails[job.id]
        return self.jobs[job.id], self.jobs[job.id].watch


@pytest.fixture(autouse=True)
def nothing_to_recover(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is lost here."""
    nothing = Recovered(running=(), ended=(), adopted=(), forgotten=())
    monkeypatch.setattr(job_watch, "recover", lambda jobs: nothing)


def watch_of(jobs: Jobs) -> JobWatch:
    return JobWatch(cast(Keeping, SimpleNamespace(world=SimpleNamespace(jobs=cast(Any, jobs)))))


def test_without_jobs_nothing_is_due_for_long() -> None:
    watch = watch_of(Jobs())
    watch.look(100.0)
    assert watch.next() == 100.0 + EVERY
    assert watch.programs == {}


def test_the_end_of_a_process_has_its_job_looked_at_until_it_is_over() -> None:
    jobs = Jobs(begun(replace(a_job(), order=replace(a_job().order, notify=type(a_job().order.notify)()))))
    watch = watch_of(jobs)
    watch.look(100.0)
    watch.look(110.0)
    assert watch.programs == {Key(What.JOB, "j1"): Program(pid=4000, start_ticks=77)}
    assert watch.next() > 111.0
    watch.ended("j1", 111.0)
    watch.look(111.0)
    assert watch.next() == 111.0 + HURRIED
    jobs.jobs["j1"] = over(jobs.jobs["j1"])
    watch.look(111.0 + HURRIED)
    assert watch.programs == {}
    assert watch.next() == 100.0 + EVERY


def test_one_that_prints_nothing_is_left_alone_until_it_does() -> None:
    jobs = Jobs(begun(a_job(watch=Watch(end=8, every_end=8))))
    watch = watch_of(jobs)
    for at in range(100, 120):
        watch.look(float(at))
    looked = len(jobs.looked)
    assert looked < 10
    assert watch.next() == 120.0
    jobs.jobs["j1"] = begun(a_job(watch=Watch(end=9, every_end=8)))
    watch.look(120.0)
    watch.look(121.0)
    watch.look(122.0)
    # And as long as there is something to tell of that is not told.
    assert len(jobs.looked) == looked + 3


def test_one_that_fails_costs_only_itself_and_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    jobs = Jobs(a_job("j1"), a_job("j2"), a_job("j3"))
    jobs.fails = {"j1": OSError("no such thing"), "j2": JobNotFound("gone")}
    watch = watch_of(jobs)
    for at in (0.0, 5.0, 70.0, 200.0):
        watch.look(at)
    assert jobs.looked.count("j3") == 4
    assert [record.getMessage() for record in caplog.records] == ["job j1 cannot be looked at: no such thing"]


def test_a_store_that_fails_is_tried_again_later() -> None:
    jobs = Jobs(a_job("j1"))
    jobs.fails = {"j1": StoreUnusable("The disk is full.")}
    watch = watch_of(jobs)
    watch.look(100.0)
    assert watch.next() == 100.0 + AGAIN
    jobs.fails = {}
    jobs.jobs["j1"] = over(replace(a_job("j1"), watch=Watch(is_over=True)))
    watch.look(100.0 + AGAIN)
    assert watch.next() == 100.0 + AGAIN + EVERY
