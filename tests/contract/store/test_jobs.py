"""Jobs as they are written down: with their events, once, and never more than may run."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from perdure import errors
from perdure.model.event import Event, EventKind
from perdure.model.job import Job, JobStatus
from perdure.store import open_store
from perdure.store.repair import repair
from perdure.store.store import Store
from tests.builders import at
from tests.contract.store.conftest import Place
from tests.contract.store.jobs import HERE, a_job, begun, over


def told(store: Store) -> list[Event]:
    return [stored.event for stored in store.read_events()]


def test_a_job_comes_back_as_it_was_written(store: Store, opened: Callable[[], Store]) -> None:
    job = a_job(owner="agent:main:telegram:dm:99")
    store.jobs.add_job(job)
    assert opened().jobs.get_job("j1") == job
    assert told(store) == []


def test_words_that_are_no_text_survive(store: Store) -> None:
    job = a_job()
    job = replace(job, order=replace(job.order, argv=("cat", "\uef80\uefff caf\u00e9")))
    store.jobs.add_job(job)
    assert store.jobs.get_job("j1") == job


def test_an_id_is_given_once(store: Store) -> None:
    store.jobs.add_job(a_job())
    with pytest.raises(errors.Conflict):
        store.jobs.add_job(a_job(owner="r7"))
    assert store.jobs.get_job("j1").order.owner is None


def test_a_job_that_is_not_there_is_said_so(store: Store) -> None:
    with pytest.raises(errors.JobNotFound, match="no job j9"):
        store.jobs.get_job("j9")
    with pytest.raises(errors.JobNotFound):
        store.jobs.change_job("j9", lambda job: job)


def test_jobs_are_found_by_how_their_ids_begin(store: Store) -> None:
    for id in ("j1a", "j1b", "j2"):
        store.jobs.add_job(a_job(id))
    assert [job.id for job in store.jobs.jobs_beginning("j1")] == ["j1a", "j1b"]
    assert [job.id for job in store.jobs.jobs_beginning("j2")] == ["j2"]
    assert store.jobs.jobs_beginning("j3") == ()


def test_jobs_are_listed_by_owner_place_and_whether_they_run(store: Store) -> None:
    store.jobs.add_job(a_job("j1", owner="r7", seconds=0))
    store.jobs.add_job(a_job("j2", seconds=2))
    store.jobs.add_job(a_job("j3", owner="r7", seconds=1, place="desktop:/jobs"))
    store.jobs.change_job("j1", over)

    def ids(**which: object) -> list[str]:
        return [job.id for job in store.jobs.list_jobs(**which)]  # type: ignore[arg-type]

    assert ids() == ["j2", "j3", "j1"]
    assert ids(owner="r7") == ["j3", "j1"]
    assert ids(place=HERE) == ["j2", "j1"]
    assert ids(is_running=True) == ["j2", "j3"]
    assert ids(is_running=False, owner="r7") == ["j1"]


def test_that_it_began_and_that_it_ended_is_told_once_each(store: Store) -> None:
    store.jobs.add_job(a_job(owner="r7"))
    store.jobs.change_job("j1", begun)
    store.jobs.change_job("j1", begun)
    store.jobs.change_job("j1", lambda job: over(job, code=3))
    store.jobs.change_job("j1", lambda job: over(job, 99, code=4))
    assert [(event.kind, event.at, event.run) for event in told(store)] == [
        (EventKind.JOB_STARTED, at(1), "r7"),
        (EventKind.JOB_ENDED, at(2), "r7"),
    ]
    assert told(store)[1].data == {"job": "j1", "owner": "r7", "status": "exited", "exit_code": 3, "why": None}


def test_one_that_is_over_when_it_is_first_looked_at_has_begun_before(store: Store) -> None:
    store.jobs.add_job(a_job())
    store.jobs.change_job("j1", lambda job: over(begun(job)))
    assert [event.kind for event in told(store)] == [EventKind.JOB_STARTED, EventKind.JOB_ENDED]


def test_one_that_never_began_only_ends(store: Store) -> None:
    store.jobs.add_job(a_job())
    store.jobs.change_job("j1", lambda job: over(job, code=None))
    assert [event.kind for event in told(store)] == [EventKind.JOB_ENDED]


def test_one_that_has_ended_stays_as_it_ended_and_goes_on_being_polled(store: Store) -> None:
    store.jobs.add_job(a_job())
    ended = store.jobs.change_job("j1", lambda job: over(job, code=3))

    def revive(job: Job) -> Job:
        return replace(job, status=JobStatus.RUNNING, exit_code=None, ended_at=None, polled=17)

    assert store.jobs.change_job("j1", revive) == replace(ended, polled=17)
    assert store.jobs.get_job("j1") == replace(ended, polled=17)


def test_when_a_change_fails_nothing_has_happened(store: Store) -> None:
    store.jobs.add_job(a_job())
    with pytest.raises(ValueError, match="ended at None"):
        store.jobs.change_job("j1", lambda job: replace(job, status=JobStatus.LOST))
    assert store.jobs.get_job("j1") == a_job()
    assert told(store) == []


def test_no_more_run_than_may(store: Store) -> None:
    for number in range(2):
        store.jobs.add_job(a_job(f"j{number}", owner="r7"), limit=3, of_owner=2)
    with pytest.raises(errors.Refused, match="r7 has 2 jobs running already, and 2 are allowed"):
        store.jobs.add_job(a_job("j2", owner="r7"), limit=3, of_owner=2)
    store.jobs.add_job(a_job("j2", owner="r8"), limit=3, of_owner=2)
    with pytest.raises(errors.Refused, match="3 jobs running already, and 3 are allowed"):
        store.jobs.add_job(a_job("j3"), limit=3, of_owner=2)
    store.jobs.add_job(a_job("j4", place="desktop:/jobs"), limit=3, of_owner=2)
    store.jobs.change_job("j0", over)
    store.jobs.add_job(a_job("j3"), limit=3, of_owner=2)


def test_what_belongs_to_nobody_counts_for_nobody(store: Store) -> None:
    for number in range(3):
        store.jobs.add_job(a_job(f"j{number}"), of_owner=1)
    assert len(store.jobs.list_jobs()) == 3


def test_of_many_who_start_at_once_no_more_get_in_than_may(place: Place) -> None:
    place.open().close()

    def start(number: int) -> bool:
        store = place.open()
        try:
            store.jobs.add_job(a_job(f"j{number}", owner="r7"), limit=100, of_owner=3)
        except errors.Refused:
            return False
        finally:
            store.close()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(start, range(12))) == 3


def test_many_who_see_the_same_end_tell_it_once(place: Place) -> None:
    store = place.open()
    store.jobs.add_job(a_job())

    def see(number: int) -> Job:
        other = place.open()
        try:
            return other.jobs.change_job("j1", lambda job: over(begun(job), number, code=number))
        finally:
            other.close()

    with ThreadPoolExecutor(6) as pool:
        seen = list(pool.map(see, range(2, 10)))
    assert seen == [store.jobs.get_job("j1")] * 8
    assert [event.kind for event in told(store)] == [EventKind.JOB_STARTED, EventKind.JOB_ENDED]
    store.close()


def test_time_is_counted_from_the_end_and_what_runs_is_never_forgotten(store: Store) -> None:
    store.jobs.add_job(a_job("long", seconds=-9000))
    store.jobs.add_job(a_job("slow", seconds=-9000))
    store.jobs.add_job(a_job("quick", seconds=-9000))
    store.jobs.change_job("slow", lambda job: over(job, -10))
    store.jobs.change_job("quick", lambda job: over(job, -8990))
    assert store.jobs.forget_jobs(HERE, at(-1800), keep=64) == ("quick",)
    assert store.jobs.forget_jobs(HERE, at(-1800), keep=64) == ()
    assert {job.id for job in store.jobs.list_jobs()} == {"long", "slow"}
    assert store.jobs.forget_jobs(HERE, at(99), keep=0) == ("slow",)
    assert [job.id for job in store.jobs.list_jobs()] == ["long"]


def test_of_too_many_the_earliest_to_end_are_forgotten(store: Store) -> None:
    for number in range(5):
        store.jobs.add_job(a_job(f"j{number}", seconds=number))
        store.jobs.change_job(f"j{number}", lambda job, number=number: over(job, 100 - number))  # type: ignore[misc]
    store.jobs.add_job(a_job("elsewhere", place="desktop:/jobs"))
    store.jobs.change_job("elsewhere", over)
    assert store.jobs.forget_jobs(HERE, at(-1), keep=2) == ("j2", "j3", "j4")
    assert {job.id for job in store.jobs.list_jobs()} == {"j0", "j1", "elsewhere"}


def test_a_damaged_one_costs_only_itself_and_is_set_aside(store: Store, place: Place) -> None:
    store.jobs.add_job(a_job("j1"))
    store.jobs.add_job(a_job("j2"))
    store.driver.execute("UPDATE jobs SET body = :data WHERE id = 'j1'", data=b"spoilt")
    assert [job.id for job in store.jobs.list_jobs()] == ["j2"]
    with pytest.raises(errors.JobNotFound, match="cannot be read back"):
        store.jobs.get_job("j1")
    assert [(problem.where, problem.repairable) for problem in store.check()] == [("job j1", True)]
    assert repair(place.url, place.state_dir, at(9)) == ("Set the damaged record of job j1 aside.",)
    assert store.check() == ()
    assert store.driver.fetch("SELECT id FROM damaged_jobs") == [("j1",)]


@pytest.mark.parametrize("column", ["owner", "place"])
def test_a_row_that_says_another_thing_than_its_record_is_damage(store: Store, column: str) -> None:
    store.jobs.add_job(a_job("j1", owner="r7"))
    store.driver.execute(f"UPDATE jobs SET {column} = 'r8'")
    assert list(store.jobs.damaged()) == ["j1"]


def test_where_nothing_can_be_written_jobs_can_be_looked_up(store: Store, place: Place) -> None:
    store.jobs.add_job(a_job())
    reader = open_store(place.url, state_dir=place.state_dir, read_only=True)
    assert reader.jobs.get_job("j1") == a_job()
    for change in (
        lambda: reader.jobs.add_job(a_job("j2")),
        lambda: reader.jobs.change_job("j1", over),
        lambda: reader.jobs.forget_jobs(HERE, at(99), keep=0),
    ):
        with pytest.raises(errors.StoreUnusable, match="only read here"):
            change()
    reader.close()
