"""No job gets out of reach: not without its directory, not by what it leaves behind, not when nobody answers for it."""

from __future__ import annotations

import os
import signal
from typing import Any

from perdure.jobs.place import JobPlace
from tests.acceptance.jobs import JobCommands, jobs
from tests.acceptance.kit import configure, wait_for
from tests.conftest import PrivateHome
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
    supervisor = supervisor_of(jobs, id)
    os.kill(supervisor, signal.SIGKILL)
    wait_for(lambda: not is_there(supervisor), "the end of who looks after it")
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


def test_what_a_job_left_behind_is_shown_and_ended_with_its_owners_jobs(jobs: JobCommands) -> None:
    id = jobs.run("sh", "-c", LEAVES, options=("--owner", "chat1"))
    pid = int(jobs.wait(id)["output"])
    row, polled = row_of(jobs, id), jobs.poll(id)
    assert (row["status"], row["left"], polled["left"]) == ("exited", 1, 1)
    assert "1 process" in row["why"]
    assert polled["why"] == row["why"]
    assert "1 process" in jobs("poll", id).err
    (ended,) = jobs.ok("kill", "--owner", "chat1")["jobs"]
    assert (ended["job"], ended["result"], ended["exit_code"], ended["left"]) == (id, "already_ended", 0, 0)
    assert not is_there(pid)
    wait_for(lambda: row_of(jobs, id)["left"] == 0, "nothing to be left")
    assert row_of(jobs, id)["why"] is None
    assert jobs.ok("kill", "--owner", "chat1")["jobs"] == []


def test_a_job_is_not_forgotten_while_something_of_it_goes_on(jobs: JobCommands, private_home: PrivateHome) -> None:
    configure(private_home, "[jobs]\nkeep_ended = 1\n")
    id = jobs.run("sh", "-c", LEAVES)
    pid = int(jobs.wait(id)["output"])
    for _ in range(2):
        jobs.wait(jobs.run("true"))
    assert row_of(jobs, id)["left"] == 1
    jobs.ok("kill", id)
    assert not is_there(pid)
    wait_for(lambda: id not in [row["job"] for row in jobs.ok("ls")["jobs"]], "it to be forgotten")


def test_lines_that_are_no_longer_kept_are_said_to_be(jobs: JobCommands, private_home: PrivateHome) -> None:
    configure(private_home, "[jobs]\nlog_bytes = 65536\n")
    id = jobs.run("seq", "1000000", "1040000")
    jobs.wait(id)
    asked = jobs("log", id, "--offset", "5", "--limit", "2")
    first = int(asked.out.split()[0])
    assert first > 1000005
    assert asked.out == f"{first}\n{first + 1}\n"
    assert f"Lines before number {first - 1000000} are no longer kept." in asked.err
    told = jobs.ok("log", id, "--offset", "5", "--limit", "2")
    assert (told["offset"], told["truncated"], told["output"]) == (first - 1000000, True, asked.out)
    assert "bytes that were printed here are not kept" in jobs("log", id).err
    kept = jobs("log", id, "--offset", "39999")
    assert (kept.out, kept.err) == ("1039999\n1040000\n", "")


def test_a_command_of_any_length_is_listed_in_a_line_one_can_read(jobs: JobCommands) -> None:
    jobs.run("true", "x" * 5000)
    assert max(map(len, jobs("ls").out.splitlines())) < 500
    (row,) = jobs.ok("ls")["jobs"]
    assert row["argv"] == ["true", "x" * 5000]


def test_whom_nobody_names_is_a_mistake(jobs: JobCommands) -> None:
    for words in (("poll", ""), ("kill", ""), ("kill", "--owner", ""), ("ls", "--owner", "")):
        assert jobs(*words).code == 2
