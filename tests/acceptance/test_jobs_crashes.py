"""Whoever starts or asks for a job may be killed at any moment, the store may be lost, the machine restarted."""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import msgspec
import pytest

from perdure import errors
from perdure.chats.service import Chats
from perdure.host.clock import now
from perdure.jobs.place import JobPlace
from perdure.jobs.service import Jobs
from perdure.jobs.upkeep import recover
from perdure.model.chat import ResetMode, ResetPolicy, Source
from perdure.model.config import ChatsConfig, Config, JobsConfig
from perdure.model.event import EventKind
from perdure.model.job import JobProcess, JobStatus, Order
from perdure.store import open_store
from perdure.store.store import Store
from tests.acceptance.jobs import end_processes_below
from tests.acceptance.kit import only_json, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure

#: Prints something, does something, prints the rest, and ends like nothing else.
TELLING = Order(argv=("sh", "-c", "echo one; sleep 0.02; echo two; exit 7"), cwd="/")
SLEEP = Order(argv=("sleep", "300"), cwd="/")
MOMENTS = 40


class Ground:
    """A private store with its jobs, as a process finds them that is started anew."""

    def __init__(self, home: PrivateHome) -> None:
        self.home = home
        self.directory = os.path.join(home.state, "jobs")
        self._stores: list[Store] = []

    def store(self) -> Store:
        """Open the store once more."""
        self._stores.append(open_store(f"sqlite://{self.home.state}/perdure.db", state_dir=self.home.state))
        return self._stores[-1]

    def jobs(self, clock: Callable[[], datetime] = now, **config: object) -> Jobs:
        """Return the jobs for a process that knows nothing of what was before."""
        return Jobs(self.store().jobs, self.directory, Config(jobs=JobsConfig(**config)), clock)  # type: ignore[arg-type]

    def close(self) -> None:
        """Let nothing run on."""
        end_processes_below(self.directory)
        for store in self._stores:
            store.close()


@pytest.fixture
def ground(private_home: PrivateHome) -> Iterator[Ground]:
    """Somewhere to crash."""
    place = Ground(private_home)
    yield place
    place.close()


def later() -> datetime:
    """When nobody can be about to start anything any more."""
    return now() + timedelta(seconds=200)


def in_a_process(work: Callable[[], None]) -> int:
    """Do something in a process of its own, which can be killed, and return its number."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def test_a_caller_killed_at_any_moment_costs_neither_output_nor_status(ground: Ground) -> None:
    ground.jobs().wait(ground.jobs().spawn(TELLING).id)
    chance = random.Random(7)

    def call() -> None:
        jobs = ground.jobs(keep_ended=100_000)
        for _ in range(20):
            id = jobs.spawn(TELLING).id
            jobs.poll(id, keep=True)
            jobs.wait(id, 5)

    for _ in range(MOMENTS):
        child = in_a_process(call)
        time.sleep(chance.uniform(0.0, 0.25))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    jobs = ground.jobs(keep_ended=100_000)
    ids = [job.id for job in jobs.list()]
    assert len(ids) > 1
    for id in ids:
        waited = jobs.wait(id, 60)
        job = waited.job
        if job.began_at is None:
            # Only written down: whoever was to start it did not come to it.
            assert (job.status, job.exit_code, waited.printed.text) == (JobStatus.EXITED, None, "")
            assert "before it began" in (job.why or "")
        else:
            assert (job.status, job.exit_code) == (JobStatus.EXITED, 7)
            assert jobs.poll(id).printed.text == "one\ntwo\n"
    told = [each.event for each in ground.store().read_events(limit=10_000)]
    for kind in (EventKind.JOB_STARTED, EventKind.JOB_ENDED):
        named = [event.data["job"] for event in told if event.kind is kind]
        assert len(named) == len(set(named))
    assert len([event for event in told if event.kind is EventKind.JOB_ENDED]) == len(ids)


def test_what_was_polled_by_somebody_who_was_killed_is_given_again(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(TELLING).id
    jobs.wait(id)
    assert jobs.poll(id, keep=True).printed.text == "one\ntwo\n"
    again = ground.jobs()
    polled = again.poll(id, keep=True)
    assert polled.printed.text == "one\ntwo\n"
    again.given(id, polled.printed.end)
    assert again.poll(id).printed.text == ""


def test_a_job_is_known_again_when_the_store_is_lost(ground: Ground) -> None:
    jobs = ground.jobs()
    runs, over = jobs.spawn(msgspec.structs.replace(SLEEP, owner="r7")), jobs.spawn(TELLING)
    jobs.wait(over.id)
    for name in os.listdir(ground.home.state):
        if name.startswith("perdure.db"):
            os.unlink(os.path.join(ground.home.state, name))
    again = ground.jobs()
    assert again.list() == ()
    found = recover(again)
    assert set(found.adopted) == {runs.id, over.id}
    assert [job.id for job in found.running] == [runs.id]
    assert again.has_running("r7")
    assert (again.get(over.id).exit_code, again.poll(over.id).printed.text) == (7, "one\ntwo\n")
    assert again.kill(runs.id).job.status is JobStatus.KILLED
    assert recover(again).adopted == ()


def test_after_the_machine_was_restarted_a_job_is_lost_and_its_log_is_kept(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(Order(argv=("sh", "-c", "echo before; sleep 300"), cwd="/")).id
    wait_for(lambda: jobs.log(id).total, "the output")
    in_another_boot(ground, id)
    (job,) = recover(ground.jobs()).ended
    assert (job.id, job.status, job.exit_code) == (id, JobStatus.LOST, None)
    assert "restarted" in (job.why or "")
    assert ground.jobs().poll(id).printed.text == "before\n"


def in_another_boot(ground: Ground, id: str) -> None:
    """Let what is written down of a running job be of an earlier boot; its processes are ended."""
    end_processes_below(ground.directory)
    path = os.path.join(ground.directory, id, "began.json")
    with open(path, "rb") as file:
        began = msgspec.json.decode(file.read())
    began["boot"] = "00000000-0000-0000-0000-000000000000"
    with open(path, "wb") as file:
        file.write(msgspec.json.encode(began))


def test_a_stranger_with_the_number_of_a_job_is_neither_taken_for_it_nor_ended(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(SLEEP).id
    stranger = in_a_process(lambda: time.sleep(300))
    try:
        end_processes_below(ground.directory)
        path = os.path.join(ground.directory, id, "began.json")
        with open(path, "rb") as file:
            began = msgspec.json.decode(file.read())
        began["supervisor"][0] = began["process"][0] = stranger
        with open(path, "wb") as file:
            file.write(msgspec.json.encode(began))
        again = ground.jobs()
        assert again.get(id).status is JobStatus.LOST
        again.kill(id)
        assert os.waitpid(stranger, os.WNOHANG) == (0, 0)
    finally:
        os.kill(stranger, signal.SIGKILL)
        os.waitpid(stranger, 0)


def test_directories_nobody_knows_are_removed_once_they_are_old(ground: Ground) -> None:
    jobs = ground.jobs()
    jobs.wait(jobs.spawn(TELLING).id)
    odd, young = os.path.join(ground.directory, "j0dd"), os.path.join(ground.directory, "jyoung")
    os.mkdir(odd)
    os.mkdir(young)
    os.utime(odd, (0, 0))
    recover(jobs)
    assert not os.path.exists(odd)
    assert os.path.exists(young)
    assert len(jobs.list()) == 1


def test_what_was_forgotten_stays_so_although_its_directory_was_left(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(TELLING).id
    jobs.wait(id)
    path = os.path.join(ground.directory, id)
    shutil.copytree(path, path + ".kept", ignore=lambda _, names: [name for name in names if name == "ctl"])
    assert ground.jobs(lambda: now() + timedelta(hours=1)).forget() == (id,)
    assert not os.path.exists(path)
    os.rename(path + ".kept", path)
    found = recover(ground.jobs(lambda: now() + timedelta(hours=1)))
    assert found.adopted == ()
    assert not os.path.exists(path)


def test_time_is_counted_from_the_end_of_a_job(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(TELLING).id
    jobs.wait(id)
    job = jobs.get(id)
    ground.store().driver.execute("DELETE FROM jobs")
    jobs.store.add_job(msgspec.structs.replace(job, ordered_at=job.ordered_at - timedelta(hours=9)))
    assert jobs.forget() == ()
    assert jobs.get(id).exit_code == 7


def test_a_chat_with_running_jobs_is_not_reset(ground: Ground) -> None:
    store = open_store(f"sqlite://{ground.home.state}/perdure.db", state_dir=ground.home.state, threads=True)
    hours = [0.0]

    def clock() -> datetime:
        return now() + timedelta(hours=hours[0])

    policy = ResetPolicy(mode=ResetMode.IDLE, idle_minutes=60, job_max_age_hours=24)
    jobs = Jobs(store.jobs, ground.directory, Config(), clock)
    chats = Chats(store.chats, Config(chats=ChatsConfig(reset=policy)), clock, has_jobs=jobs.has_running)
    alice = Source(platform="telegram", chat_id="99", chat_type="dm", user_id="1")
    chat = chats.open(alice)
    id = jobs.spawn(msgspec.structs.replace(SLEEP, owner=chat.key)).id
    hours[0] = 2.0
    assert chats.open(alice).id == chat.id
    jobs.kill(id)
    hours[0] = 4.0
    assert chats.open(alice).id != chat.id
    forgotten = jobs.spawn(msgspec.structs.replace(SLEEP, owner=chat.key)).id
    current = chats.open(alice)
    hours[0] = 40.0
    assert chats.open(alice).id != current.id
    assert jobs.kill(forgotten).job.status is JobStatus.KILLED
    store.close()


def test_setting_the_clock_neither_ends_nor_prolongs_a_wait(ground: Ground) -> None:
    jumps = iter([0, 5000, -5000, 86400, -86400] * 1000)
    jobs = ground.jobs(lambda: now() + timedelta(seconds=next(jumps)))
    id = ground.jobs().spawn(Order(argv=("sh", "-c", "sleep 0.7; exit 3"), cwd="/")).id
    waited = jobs.wait(id, 60)
    assert (waited.job.exit_code, waited.note) == (3, None)
    still = ground.jobs().spawn(SLEEP).id
    assert jobs.wait(still, 0.3).job.is_running


def test_everybody_who_ended_unseen_makes_room_for_their_owner(ground: Ground) -> None:
    jobs = ground.jobs(max_per_owner=1)
    ids = [jobs.spawn(msgspec.structs.replace(SLEEP, owner=owner)).id for owner in ("r7", "r8")]
    for id in ids:
        process = jobs.store.get_job(id).process
        assert process is not None
        os.kill(process.pid, signal.SIGKILL)
        wait_for(JobPlace(os.path.join(ground.directory, id)).ended, "the end")
    jobs.spawn(msgspec.structs.replace(SLEEP, owner="r7"))


def test_whoever_waits_can_be_called_away(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(SLEEP).id
    called = threading.Event()
    threading.Timer(0.3, called.set).start()
    waited = jobs.wait(id, 60, is_interrupted=called.is_set)
    assert (waited.interrupted, waited.job.is_running, waited.note) == (True, True, None)


def test_jobs_of_another_machine_are_seen_and_left_alone(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(msgspec.structs.replace(SLEEP, owner="r7")).id
    config = Config(host="elsewhere")
    other = Jobs(ground.store().jobs, ground.directory, config, later)
    assert other.get(id).is_running
    assert other.has_running("r7")
    assert other.end_all("r7") == ()
    with pytest.raises(errors.Refused, match="not here"):
        other.kill(id)
    with pytest.raises(errors.Refused, match="not here"):
        other.write(id, b"x")
    assert recover(other).running == ()
    assert jobs.get(id).is_running


def test_whoever_ordered_a_job_and_was_killed_before_it_began_has_not_started_it(ground: Ground) -> None:
    jobs = ground.jobs()
    job = msgspec.structs.replace(jobs.spawn(SLEEP), id="jnever", began_at=None, process=None, supervisor=None)
    jobs.store.add_job(job)
    assert jobs.get("jnever").is_running
    over = ground.jobs(later).get("jnever")
    assert (over.status, over.exit_code) == (JobStatus.EXITED, None)
    assert "before it began" in (over.why or "")
    assert JobPlace(os.path.join(ground.directory, "jnever")).ended() is not None


def test_a_caller_that_is_gone_is_not_waited_for(ground: Ground) -> None:
    jobs = ground.jobs()
    spawned = jobs.spawn(SLEEP)
    assert spawned.caller is not None
    assert spawned.caller.pid == os.getpid()
    gone = msgspec.structs.replace(spawned.caller, started=spawned.caller.started - 1)
    job = msgspec.structs.replace(
        spawned, id="jnever", began_at=None, process=None, supervisor=None, caller=spawned.caller
    )
    jobs.store.add_job(job)
    assert jobs.get("jnever").is_running
    jobs.store.add_job(msgspec.structs.replace(job, id="jorphan", caller=gone))
    over = jobs.get("jorphan")
    assert (over.status, over.exit_code) == (JobStatus.EXITED, None)
    assert "before it began" in (over.why or "")


def test_one_that_has_not_begun_says_so_and_ending_it_says_why(ground: Ground, perdure: Perdure) -> None:
    jobs = ground.jobs()
    job = msgspec.structs.replace(jobs.spawn(SLEEP), id="jnever", began_at=None, process=None, supervisor=None)
    jobs.store.add_job(job)
    assert only_json(perdure.ok("jobs", "poll", "jnever", "--json"))["why"] == "It has not begun yet."
    ended = only_json(perdure.ok("jobs", "kill", "jnever", "--json"))
    assert (ended["exit_code"], ended["why"]) == (None, "It was ended before it began.")


def test_a_job_that_was_ended_before_it_began_never_begins(ground: Ground) -> None:
    jobs = ground.jobs()
    job = msgspec.structs.replace(jobs.spawn(SLEEP), id="jnever", began_at=None, process=None, supervisor=None)
    jobs.store.add_job(job)
    ended = jobs.kill("jnever")
    assert not ended.was_over
    assert not ended.job.is_running


def test_a_process_is_its_number_its_start_and_its_boot(ground: Ground) -> None:
    job = ground.jobs().spawn(SLEEP)
    assert isinstance(job.process, JobProcess)
    assert job.supervisor is not None
    assert job.process.boot == job.supervisor.boot
    assert job.process.pid != job.supervisor.pid


def test_what_makes_no_sense_to_a_program_is_said_in_a_sentence(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(Order(argv=("cat",), cwd="/")).id
    with pytest.raises(errors.UsageError, match="bytes"):
        jobs.write(id, "text")  # type: ignore[arg-type]
    with pytest.raises(errors.UsageError, match="bytes"):
        jobs.submit(id, "text")  # type: ignore[arg-type]
    for nobody in (lambda: jobs.find(""), lambda: jobs.end_all(" "), lambda: jobs.list(owner="")):
        with pytest.raises(errors.UsageError):
            nobody()


def test_what_was_not_printed_yet_cannot_have_been_given(ground: Ground) -> None:
    jobs = ground.jobs()
    id = jobs.spawn(Order(argv=("cat",), cwd="/")).id
    jobs.given(id, 1 << 40)
    jobs.submit(id, b"later")
    wait_for(lambda: jobs.poll(id, keep=True).printed.text == "later\n", "what was printed later")
