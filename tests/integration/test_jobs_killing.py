"""Ending jobs, whole, and nobody else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import msgspec
import pytest

from perdure.host.clock import now
from perdure.jobs import control, kin
from perdure.jobs.place import Began, JobPlace, is_same_process, this_boot
from perdure.model.job import JobProcess, JobStatus, Terminal
from tests.conftest import PrivateHome
from tests.integration.hired import Job, Jobs, in_another_process, is_there, kill, until

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="jobs need Linux")

#: Says the numbers of a process that left the group, the session and its parent, with its files closed.
DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        if "bare" in sys.argv:
            os.execve(sys.executable, [sys.executable, "-I", "-S", "-c", "import os, time; os.write(1, b'%d\\\\n' % os.getpid()); [os.close(n) for n in range(3)]; time.sleep(1000)"], {})
        os.write(1, b"%d\\n" % os.getpid())
        for number in range(3): os.close(number)
        time.sleep(1000)
    os._exit(0)
os.wait()
if "leave" not in sys.argv: time.sleep(1000)
"""


@pytest.fixture
def jobs(private_home: PrivateHome) -> Iterator[Jobs]:
    started = Jobs(os.path.join(private_home.root, "jobs"))
    yield started
    started.end()


def number_of(job: Job) -> int:
    job.until_said(b"\n")
    return int(job.said().split()[0])


def test_a_job_that_is_asked_to_end_may_clean_up(jobs: Jobs) -> None:
    job = jobs.shell("trap 'echo cleaned; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    job.until_said(b"ready")
    assert control.kill(job.path, 30.0).left == 0
    ended = job.place.ended()
    assert ended is not None
    assert (ended.killed, ended.exit_code) == (True, 5)
    assert b"cleaned\n" in job.said()
    assert job.status is JobStatus.KILLED


@pytest.mark.parametrize("terminal", [None, Terminal()])
def test_a_job_that_does_not_listen_is_ended_all_the_same(jobs: Jobs, terminal: Terminal | None) -> None:
    job = jobs.shell("trap '' TERM HUP INT; echo ready; sleep 1000 & sleep 1000", terminal=terminal)
    job.until_said(b"ready")
    assert control.kill(job.path, 0.1).left == 0
    ended = job.ended()
    assert (ended.killed, ended.exit_code) == (True, 137)


def test_a_stopped_job_is_ended(jobs: Jobs) -> None:
    job = jobs.shell("echo ready; exec sleep 1000")
    job.until_said(b"ready")
    os.kill(job.began.process.pid, signal.SIGSTOP)
    control.kill(job.path, 30.0)
    assert job.ended().signal == 15


@pytest.mark.parametrize("how", ["", "bare"])
def test_what_went_into_the_background_is_ended_too(jobs: Jobs, how: str) -> None:
    job = jobs.python(DAEMON, how)
    daemon = number_of(job)
    assert is_there(daemon)
    assert control.kill(job.path, 1.0).found >= 2
    assert not is_there(daemon)
    assert job.status is JobStatus.KILLED


def test_nobody_is_out_of_reach_by_what_they_say_they_are(jobs: Jobs) -> None:
    job = jobs.shell("PERDURE_FOREMAN=1 setsid sleep 600 & echo $!; wait")
    job.until_said(b"\n")
    control.kill(job.path, 1.0)
    assert not is_there(int(job.said()))


def test_what_a_job_left_behind_can_be_ended_when_it_has_ended_itself(jobs: Jobs) -> None:
    job = jobs.python(DAEMON, "leave")
    daemon = number_of(job)
    assert job.ended().exit_code == 0
    assert job.ended().left == 1
    assert is_there(daemon)
    assert control.kill(job.path, 1.0).found == 1
    assert not is_there(daemon)
    assert job.status is JobStatus.EXITED
    until(lambda: not is_there(job.began.supervisor.pid), "the supervisor to leave")
    assert control.kill(job.path).found == 0


def test_a_supervisor_that_is_told_to_end_ends_its_job(jobs: Jobs) -> None:
    job = jobs.start("sleep", "1000")
    os.kill(job.began.supervisor.pid, signal.SIGTERM)
    ended = job.ended()
    assert (ended.killed, ended.exit_code) == (True, 143)
    assert ended.why is not None


def test_two_who_kill_at_once_both_hear_of_it(jobs: Jobs) -> None:
    job = jobs.shell("trap '' TERM; echo ready; while :; do sleep 0.01; done")
    job.until_said(b"ready")
    program = "import sys; from perdure.jobs import control; print(control.kill(sys.argv[1], 0.5).left)"
    both = [in_another_process(program, job.path) for _ in range(2)]
    for each in both:
        with each:
            assert each.communicate(timeout=60)[0] == b"0\n"
    assert job.status is JobStatus.KILLED


def test_without_its_supervisor_a_job_goes_on_and_that_is_said(jobs: Jobs) -> None:
    job = jobs.python("import signal, time; signal.signal(signal.SIGPIPE, signal.SIG_IGN); time.sleep(1000)")
    before = job.began
    kill(before.supervisor.pid)
    until(lambda: not is_there(before.supervisor.pid), "the supervisor to end")
    judged = job.place.judgement()
    assert judged.status is JobStatus.RUNNING
    assert judged.why is not None
    with pytest.raises(Exception, match="is gone"):
        job.write(b"x")
    assert control.kill(job.path, 5.0).found == 1
    judged = job.place.judgement()
    assert (judged.status, judged.exit_code, judged.ended_at) == (JobStatus.LOST, None, None)


@pytest.mark.parametrize("how", ["", "leave"])
def test_without_its_supervisor_what_went_into_the_background_is_found_by_its_mark(jobs: Jobs, how: str) -> None:
    job = jobs.python(DAEMON, how)
    daemon = number_of(job)
    if how:
        job.ended()
    kill(job.began.supervisor.pid)
    until(lambda: not is_there(job.began.supervisor.pid), "the supervisor to end")
    assert control.kill(job.path, 2.0).left == 0
    assert not is_there(daemon)


def test_a_job_started_from_within_a_job_is_another(jobs: Jobs, private_home: PrivateHome) -> None:
    inner = Jobs(os.path.join(private_home.root, "inner"))
    id = f"in-{os.urandom(4).hex()}"
    program = (
        "import sys, time; sys.path[:0] = sys.argv[2:]\n"
        "from perdure.jobs import hiring\n"
        f"hiring.start(sys.argv[1], {id!r}, argv=['sleep', '1000'], cwd='/', env={{'PATH': '/usr/bin:/bin'}}, cap=1 << 20)\n"
        "print('hired', flush=True); time.sleep(1000)"
    )
    try:
        job = jobs.start(sys.executable, "-c", program, inner.directory, *filter(None, sys.path))
        job.until_said(b"hired")
        found = inner.of(id)
        assert control.kill(job.path, 1.0).left == 0
        assert found.status is JobStatus.RUNNING
        assert is_there(found.began.process.pid)
        assert inner.foremen()
        until(lambda: not is_there(job.began.supervisor.pid), "the outer supervisor to leave")
    finally:
        inner.end()


def forge(job: Job, **changed: object) -> None:
    """Let what was written of a job's beginning speak of other processes."""
    path = os.path.join(job.path, "began.json")
    with open(path, "rb") as file:
        told = msgspec.json.decode(file.read())
    with open(path, "wb") as file:
        file.write(msgspec.json.encode({**told, **changed}))


def test_a_number_that_has_gone_to_a_stranger_is_not_the_job(jobs: Jobs) -> None:
    job = jobs.start("sleep", "1000")
    began = job.began
    kill(began.process.pid)
    kill(began.supervisor.pid)
    until(lambda: not is_there(began.supervisor.pid), "the supervisor to end")
    for name in os.listdir(job.path):
        if name.startswith("ended"):
            os.unlink(os.path.join(job.path, name))
    with subprocess.Popen(["sleep", "1000"], start_new_session=True) as stranger:
        line = kin.read_line(stranger.pid)
        assert line is not None
        # The same numbers, but another start: what a machine that counts around makes of them.
        forge(job, process=[stranger.pid, line.started - 1], supervisor=[stranger.pid, line.started - 1])
        assert job.status is JobStatus.LOST
        assert control.kill(job.path, 0.0).found == 0
        assert stranger.poll() is None
        # The same start too, but in another boot.
        forge(job, boot="another", process=[stranger.pid, line.started], supervisor=[stranger.pid, line.started])
        assert job.status is JobStatus.LOST
        assert not is_same_process(job.began.process)
        assert control.kill(job.path, 0.0).found == 0
        assert stranger.poll() is None
        assert not kin.tell((stranger.pid, line.started - 1), signal.SIGKILL)
        assert stranger.poll() is None
        stranger.kill()


def test_a_restarted_machine_s_jobs_are_lost_with_what_they_printed(jobs: Jobs) -> None:
    job = jobs.shell("echo kept; exec sleep 1000")
    job.until_said(b"kept")
    began = job.began
    forge(job, boot="an earlier one")
    assert job.place.judgement().status is JobStatus.LOST
    assert job.said() == b"kept\n"
    forge(job, boot=began.process.boot)
    assert job.status is JobStatus.RUNNING


def test_a_job_that_nobody_knows_cannot_be_ended(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.root, "nothing")
    assert control.kill(path).found == 0
    nobody = JobProcess(pid=os.getpid(), started=1, boot=this_boot())
    seen = Began(supervisor=nobody, process=nobody, at=now())
    assert JobPlace(path).judgement(seen).status is JobStatus.LOST
    assert control.kill(path, seen=seen).found == 0
