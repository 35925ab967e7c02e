from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from perdure.jobs.place import Began, Ended, Facts
from perdure.jobs.standing import BEGINNING, is_beginning, settled, uptime
from perdure.model.job import JobProcess, JobStatus
from tests.builders import at
from tests.contract.store.jobs import a_job, begun, over

BEGAN = Began(
    supervisor=JobProcess(pid=3999, started=76, boot="b0"),
    process=JobProcess(pid=4000, started=77, boot="b0"),
    at=at(1),
)
ENDED = Ended(exit_code=3, at=at(5), printed=10)
NOTHING = Facts(ordered=None, began=None, ended=None, boot="b0")
ORDERED = Facts(ordered="b0", began=None, ended=None, boot="b0")
RUNNING = Facts(ordered="b0", began=BEGAN, ended=None, boot="b0", supervisor_runs=True, process_runs=True)
OVER = Facts(ordered="b0", began=BEGAN, ended=ENDED, boot="b0")
AFTER_REBOOT = Facts(ordered="b0", began=BEGAN, ended=None, boot="b1")
ABANDONED = Facts(ordered="b0", began=BEGAN, ended=None, boot="b0", process_runs=True)
LATE = BEGINNING.total_seconds() + 1


def test_one_of_which_there_is_nothing_yet_is_not_lost() -> None:
    assert settled(a_job(), NOTHING, at(LATE)) == a_job()


def test_one_that_was_seen_and_of_which_nothing_is_left_is_lost() -> None:
    lost = settled(begun(a_job()), replace(NOTHING, began=BEGAN, is_gone=True), at(9))
    assert (lost.status, lost.ended_at, lost.exit_code) == (JobStatus.LOST, at(9), None)


def test_one_that_was_seen_and_is_there_runs_whatever_is_left_on_the_disk() -> None:
    facts = replace(NOTHING, began=BEGAN, is_gone=True, supervisor_runs=True, process_runs=True)
    seen = settled(a_job(), facts, at(9))
    assert (seen.status, seen.process) == (JobStatus.RUNNING, BEGAN.process)
    assert "gone from the disk" in (seen.why or "")
    assert settled(seen, RUNNING, at(10)) == begun(a_job())


def test_one_that_has_not_begun_is_as_it_was() -> None:
    assert settled(a_job(), ORDERED, at(1)) == a_job()


def test_one_that_has_begun_has_processes() -> None:
    assert settled(a_job(), RUNNING, at(9)) == begun(a_job())


def test_one_that_ended_ended_when_it_did_and_not_when_it_was_looked_at() -> None:
    assert settled(a_job(), OVER, at(99)) == over(begun(a_job()), 5, code=3)


def test_after_a_restart_of_the_machine_it_is_lost_however_young_it_is() -> None:
    lost = settled(a_job(), AFTER_REBOOT, at(2))
    assert lost.status is JobStatus.LOST
    assert lost.ended_at == at(2)
    assert "restarted" in (lost.why or "")


def test_one_that_nobody_looks_after_runs_and_says_so() -> None:
    seen = settled(a_job(), ABANDONED, at(2))
    assert seen.is_running
    assert seen.why


FACTS = st.sampled_from([NOTHING, ORDERED, RUNNING, OVER, AFTER_REBOOT, ABANDONED])


@given(FACTS, st.floats(0, 9999))
def test_what_has_ended_is_never_judged_again(facts: Facts, seconds: float) -> None:
    ended = over(begun(a_job()), 2, status=JobStatus.KILLED, code=143)
    assert settled(ended, facts, at(seconds)) == ended


@given(FACTS, st.floats(0, 9999))
def test_looking_twice_is_looking_once(facts: Facts, seconds: float) -> None:
    once = settled(a_job(), facts, at(seconds))
    assert settled(once, facts, at(seconds)) == once
    assert once.is_running is (once.ended_at is None)


def test_it_runs_from_its_beginning_to_its_end() -> None:
    assert uptime(begun(a_job()), at(11)) == 10
    assert uptime(over(begun(a_job()), 5), at(11)) == 4
    assert uptime(a_job(), at(-5)) == 0


def test_whoever_starts_it_has_some_time_for_that() -> None:
    assert is_beginning(a_job(), at(LATE - 2))
    assert not is_beginning(a_job(), at(LATE))
    # A clock that was set back.
    assert is_beginning(a_job(), at(-9999))
