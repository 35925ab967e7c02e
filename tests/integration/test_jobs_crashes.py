"""Whoever is killed, and whenever: what a job printed and how it ended stay true."""

from __future__ import annotations

import os
import random
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from perdure.host.unix_socket import connected
from perdure.jobs import control, hiring, output
from perdure.jobs.place import Began, JobPlace, job_path
from perdure.model.job import JobStatus
from tests.conftest import PrivateHome
from tests.integration.hired import Jobs, in_another_process, is_there, kill, until
from tests.integration.looking import kill_and_wait

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="jobs need Linux")
NOW = datetime(2026, 5, 1, tzinfo=UTC)

#: Starts a job that prints lines and ends with a code of its own.
CALLER = """
import sys
from perdure.jobs import hiring
hiring.start(sys.argv[1], sys.argv[2], argv=["/bin/sh", "-c", sys.argv[3]], cwd="/", env={"PATH": "/usr/bin:/bin"}, cap=1 << 20)
print("begun", flush=True)
"""
WORK = "i=0; while [ $i -lt 40 ]; do echo line $i; i=$((i+1)); sleep 0.005; done; exit 37"
SAID = b"".join(b"line %d\n" % number for number in range(40))


@pytest.fixture
def jobs(private_home: PrivateHome) -> Iterator[Jobs]:
    started = Jobs(os.path.join(private_home.root, "jobs"))
    yield started
    started.end()


@pytest.mark.parametrize("seed", range(15))
def test_whoever_is_killed_at_whatever_moment(jobs: Jobs, seed: int) -> None:
    chance = random.Random(seed)
    victims = ("caller", "foreman", "both")[seed % 3]
    # Nobody else's: what belongs to a job bears its id, and another of these may be at work beside this one.
    id = f"it{seed}-{os.urandom(4).hex()}"
    caller = in_another_process(CALLER, jobs.directory, id, WORK)
    job = jobs.of(id)
    time.sleep(chance.uniform(0.0, 0.5))
    if victims != "foreman":
        caller.kill()
    killed = set(jobs.foremen()) if victims != "caller" else set()
    for pid in killed:
        kill(pid)
    with caller:
        said, _ = caller.communicate(timeout=60)
    if victims == "foreman":
        assert said == b"begun\n", "a foreman's end is none of the caller's business"
    if not os.path.exists(os.path.join(job.path, "order")):
        assert not said
        return
    time.sleep(0.1)
    if not said and JobPlace(job.path).give_up("nobody came", NOW):
        # The caller was gone before it could ask anybody; it was never begun, and never will be.
        assert job.place.judgement().exit_code is None
        return
    began = job.place.began()
    if began is not None and {began.supervisor.pid, began.process.pid} & killed:
        # The order was taken the moment before: it is the job's own that were killed.
        return
    ended = job.ended()
    assert (ended.exit_code, ended.killed) == (37, False)
    assert job.said() == SAID
    assert job.status is JobStatus.EXITED


def test_a_foreman_that_is_killed_while_it_is_asked_takes_no_job_with_it(
    jobs: Jobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs.shell("true").ended()
    until(lambda: len(jobs.foremen()) > 1, "somebody who stands by")
    victims = jobs.foremen()[:1]

    def killing(path: str, *, timeout: float) -> socket.socket:
        connection = connected(path, timeout=timeout)
        while victims:
            kill(victims.pop())
        return connection

    monkeypatch.setattr(hiring, "connected", killing)
    job = jobs.shell("echo out; sleep 0.2; exit 4")
    assert (job.ended().exit_code, job.said()) == (4, b"out\n")


def handed_over(jobs: Jobs, id: str, place: JobPlace) -> Began | None:
    """Hand an order over that was written down before."""
    deadline = time.monotonic() + 60
    called = hiring._Foreman(jobs.directory, deadline)
    return hiring._hand_over(called, jobs.directory, id, place, (), deadline)


def test_what_was_given_up_is_never_begun(jobs: Jobs) -> None:
    place = JobPlace(job_path(jobs.directory, "late"))
    place.write_order(argv=["true"], cwd="/", env={}, cap=1 << 20)
    assert place.judgement().status is JobStatus.RUNNING
    assert place.give_up("It was too late.", NOW)
    assert not place.give_up("Twice.", NOW)
    assert handed_over(jobs, "late", place) is None
    judged = place.judgement()
    assert (judged.status, judged.exit_code, judged.why) == (JobStatus.EXITED, None, "It was too late.")
    assert place.began() is None


def test_one_who_has_begun_cannot_be_given_up(jobs: Jobs) -> None:
    job = jobs.start("sleep", "1000")
    assert not job.place.give_up("no", NOW)
    assert job.status is JobStatus.RUNNING


def test_an_order_handed_over_twice_is_begun_once(jobs: Jobs) -> None:
    job = jobs.shell("echo once; exec sleep 1000")
    assert handed_over(jobs, os.path.basename(job.path), job.place) == job.began
    job.until_said(b"once\n")
    assert job.said() == b"once\n"


def test_many_who_are_first_find_one_foreman(jobs: Jobs) -> None:
    ids = [f"first{number}-{os.urandom(4).hex()}" for number in range(6)]
    callers = [in_another_process(CALLER, jobs.directory, id, "exit 3") for id in ids]
    for caller in callers:
        with caller:
            assert caller.communicate(timeout=60)[0] == b"begun\n"
    for id in ids:
        assert jobs.of(id).ended().exit_code == 3


def test_whoever_stands_by_is_replaced_when_it_is_killed(jobs: Jobs) -> None:
    jobs.start("true").ended()
    for which in (1, 2):
        until(lambda: len(jobs.foremen()) == 3, "somebody to stand by, with a hand")
        foreman, *others = jobs.foremen()
        # What is dying may still be given the order, and a job that is killed then was killed.
        kill_and_wait(others[which - 1])
        assert jobs.shell("exit 3").ended().exit_code == 3
        assert is_there(foreman)


def test_several_who_wait_and_read_see_the_same(jobs: Jobs) -> None:
    job = jobs.shell("for i in 1 2 3 4 5; do echo $i; sleep 0.05; done; exit 6")
    seen: list[tuple[int | None, bytes]] = []

    def look() -> None:
        seen.append((job.ended().exit_code, job.said()))

    threads = [threading.Thread(target=look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [(6, b"1\n2\n3\n4\n5\n")] * 3


def test_a_full_disk_neither_stops_a_job_nor_hides_its_end(jobs: Jobs) -> None:
    # No disk to fill here: what may not grow refuses in the same way.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        jobs.start("true")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    job = jobs.python("import os\nfor _ in range(300): os.write(1, b'x' * 999 + b'\\n')\nos._exit(11)", cap=8 << 20)
    ended = job.ended()
    assert (ended.exit_code, ended.printed) == (11, 300_000)
    assert 0 < ended.dropped <= 200_000
    kept = output.read(job.path, 0, 1 << 20)
    assert kept.data == (b"x" * 999 + b"\n") * 100
    with_more = jobs.python(
        "import os, time\nos.write(1, b'a' * 150000)\nos.read(0, 1)\nos.write(1, b'b' * 1000)\ntime.sleep(1000)",
        cap=8 << 20,
    )
    until(lambda: control.standing(with_more.path).printed == 150_000, "all of it to be taken in")
    time.sleep(0.7)  # longer than nothing is tried after a refusal
    with_more.write(b"x")
    until(lambda: output.size(with_more.path) == 151_000, "what was printed when there was room again")
    first = output.read(with_more.path, 0, 1 << 20)
    assert first.data == b"a" * len(first.data)
    later = output.read(with_more.path, first.end, 1 << 20)
    # Where the machine was slow, there was room again before all of the first was read.
    assert later.data == b"a" * (len(later.data) - 1000) + b"b" * 1000
    assert later.missing == 151_000 - len(first.data) - len(later.data) > 0
    assert control.standing(with_more.path).dropped == later.missing
