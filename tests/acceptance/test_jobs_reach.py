"""No job gets out of reach: not without its directory, not by what it leaves behind, not when nobody answers for it."""

from __future__ import annotations

import os
import signal
from typing import Any

from perdure.jobs.place import JobPlace
from tests.acceptance.jobs import JobCommands, jobs
from tests.acceptance.kit import wait_for
from tests.integration.hired import is_there

__all__ = ["jobs"]

#: Says its number, goes on, and lets the job end.
LEAVES = "sleep 300 >/dev/null 2>&1 & echo $!"


def row_of(jobs: JobCommands, id: str) -> dict[str, Any]:
    (row,) = [row for row in jobs.ok("ls")["jobs"] if row["job"] == id]
    return dict(row)


def supervisor_of(jobs: JobCommands, id: str) -> int:
    began = JobPlace(os.path.join(jobs.directory, id)).began()
    assert began is not None
    return began.supervisor.pid


def test_a_job_that_removes_its_own_directory_runs_on_and_can_be_ended(jobs: JobCommands) -> None:
    # The very first it does: whoever started it has had no time to look.
    id = jobs.run("sh", "-c", f'rm -rf "{jobs.directory}/$PERDURE_JOB"; exec sleep 300', options=("--owner", "chat1"))
    wait_for(lambda: not os.path.exists(os.path.join(jobs.directory, id)), "the directory to go")
    row = row_of(jobs, id)
    assert row["status"] == "running"
    assert "gone from the disk" in row["why"]
    assert is_there(row["pid"])
    (ended,) = jobs.ok("kill", "--owner", "chat1")["jobs"]
    assert (ended["job"], ended["result"], ended["left"]) == (id, "killed", 0)
    assert not is_there(row["pid"])
    assert row_of(jobs, id)["status"] == "lost"


def test_one_whose_supervisor_is_gone_too_is_ended_by_what_is_written_down(jobs: JobCommands) -> None:
    id = jobs.run("sleep", "300")
    pid = row_of(jobs, id)["pid"]
    os.kill(supervisor_of(jobs, id), signal.SIGKILL)
    os.rename(os.path.join(jobs.directory, id), os.path.join(jobs.directory, "elsewhere"))
    assert row_of(jobs, id)["status"] == "running"
    assert jobs.ok("kill", id)["result"] == "killed"
    assert not is_there(pid)


def test_a_directory_that_comes_back_is_the_jobs_own(jobs: JobCommands) -> None:
    id = jobs.run("sh", "-c", "read line; echo $line; exit 3")
    os.rename(jobs.directory, jobs.directory + ".bak")
    assert row_of(jobs, id)["status"] == "running"
    os.rename(jobs.directory + ".bak", jobs.directory)
    jobs.ok("submit", id, "back")
    waited = jobs.wait(id)
    assert (waited["status"], waited["exit_code"], waited["output"]) == ("exited", 3, "back\n")
    assert "why" not in waited


def test_a_stopped_supervisor_does_not_keep_its_job_from_being_ended(jobs: JobCommands) -> None:
    first, second = (jobs.run("sleep", "300", options=("--owner", "chat1")) for _ in range(2))
    pids = [row_of(jobs, id)["pid"] for id in (first, second)]
    os.kill(supervisor_of(jobs, first), signal.SIGSTOP)
    ended = jobs.ok("kill", "--owner", "chat1")["jobs"]
    assert {(each["job"], each["result"], each["status"]) for each in ended} == {
        (first, "killed", "killed"),
        (second, "killed", "killed"),
    }
    assert not any(map(is_there, pids))
