"""What the owner of a job is told, by a real daemon and without one."""

from __future__ import annotations

import os
import signal

import pytest

from perdure.host.clock import now
from perdure.host.places import store_url
from perdure.jobs.service import Jobs
from perdure.model.config import Config
from perdure.model.event import EventKind, StoredEvent
from perdure.store import open_store
from tests.acceptance.jobs import PYTHON, JobCommands, jobs
from tests.acceptance.watching import Watching, begin, dispose, state_dir, watching
from tests.perdure_cli import Perdure

__all__ = ["jobs"]

TALKS = "import sys\nfor line in sys.stdin: print(line.strip(), flush=True)"
STORM = "for n in range(5000): print('error', n)"


def about(daemon: Watching, id: str, *kinds: EventKind) -> list[StoredEvent]:
    return [each for each in daemon.events(0, *kinds) if each.event.data.get("job") == id]


def await_output(daemon: Watching, id: str, text: str) -> None:
    daemon.await_event(
        EventKind.JOB_OUTPUT, lambda each: (each.event.data["job"], each.event.data["output"]) == (id, text)
    )


def test_an_end_is_told_though_nobody_asks(perdure: Perdure, jobs: JobCommands) -> None:
    with watching(perdure) as daemon:
        brief = jobs.run("sh", "-c", "exit 3", options=("--owner", "chat"))
        longer = jobs.run("sleep", "1.5")
        ended = daemon.await_event(EventKind.JOB_ENDED, lambda each: each.event.data["job"] == brief)
        assert (ended.event.data["exit_code"], ended.event.data["owner"]) == (3, "chat")
        daemon.await_event(EventKind.JOB_ENDED, lambda each: each.event.data["job"] == longer)


def test_lines_are_told_once_over_daemons_that_are_killed(perdure: Perdure, jobs: JobCommands) -> None:
    daemon = begin(perdure)
    try:
        id = jobs.run(PYTHON, "-c", TALKS, options=("--owner", "chat", "--notify-on", "error", "--notify-exit"))
        jobs.ok("submit", id, "all is well")
        jobs.ok("submit", id, "error 1")
        await_output(daemon, id, "error 1")
        assert jobs.poll(id)["output"] == "all is well\nerror 1\n"
        daemon.end(signal.SIGKILL)
        jobs.ok("submit", id, "error 2")
        jobs.ok("close", id)
        # Whoever follows sees the end of it; the line is left for the next daemon.
        jobs("log", id, "-f")
    finally:
        dispose(daemon)
    for _ in range(2):
        with watching(perdure) as daemon:
            daemon.await_event(EventKind.JOB_OUTPUT, lambda each: each.event.data["output"] == "error 2")
            told = about(daemon, id, EventKind.JOB_OUTPUT, EventKind.JOB_ENDED)
            outputs = [each.event.data["output"] for each in told if each.event.kind is EventKind.JOB_OUTPUT]
            assert outputs == ["error 1", "error 2"]
            assert [each.event.kind for each in told].count(EventKind.JOB_ENDED) == 1


def test_a_storm_is_little_to_tell_and_a_broken_job_costs_only_itself(perdure: Perdure, jobs: JobCommands) -> None:
    broken = jobs.run("sleep", "60", options=("--notify-on", "error"))
    # No file to be read, where some of its output would be.
    os.mkdir(os.path.join(jobs.directory, broken, f"out.{9:020d}"))
    with watching(perdure) as daemon:
        id = jobs.run(PYTHON, "-c", STORM, options=("--notify-on", "error"))
        daemon.await_event(EventKind.JOB_ENDED, lambda each: each.event.data["job"] == id)
        daemon.wait_for(lambda: about(daemon, id, EventKind.JOB_OUTPUT), "the last of it")
        told = about(daemon, id, EventKind.JOB_OUTPUT)
        assert len(told) <= 2
        assert told[0].event.data["pattern"] == "error"
        assert daemon.log.count(f"job {broken} cannot be looked at") == 1


@pytest.mark.parametrize("polled", [False, True])
def test_a_gateway_is_given_each_until_it_is_delivered(jobs: JobCommands, polled: bool) -> None:
    store = open_store(store_url(os.environ, state_dir()), state_dir=state_dir())
    gateway = Jobs(store.jobs, jobs.directory, Config(), now)
    id = jobs.run(
        "sh", "-c", "echo error; exit 4", options=("--owner", "chat", "--notify-on", "error", "--notify-exit")
    )
    other = jobs.run("true", options=("--owner", "chat"))
    if polled:
        jobs.wait(id)
        jobs.poll(id)
    else:
        jobs("log", id, "-f")
    gateway.wait(other)
    found = gateway.notices("chat")
    assert sorted(each.event.kind.value for each in found) == ["job_ended", "job_output"]
    assert {each.event.data["job"] for each in found} == {id}
    assert gateway.notices("chat") == found
    gateway.delivered("chat", found[0].seq)
    assert gateway.notices("chat") == found[1:]
    gateway.delivered("chat", found[1].seq)
    assert gateway.notices("chat") == ()
    store.close()
