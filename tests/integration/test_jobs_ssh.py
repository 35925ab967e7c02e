"""Jobs on another machine, by a real sshd: there and nowhere else, with their true ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from perdure.errors import PerdureError, UsageError
from perdure.host.clock import now
from perdure.host.users import current_user
from perdure.jobs.service import Jobs
from perdure.model.config import BackendConfig, Config, JobsConfig
from perdure.model.job import Job, JobStatus, Order, Terminal
from perdure.store import open_store
from tests.acceptance.jobs import end_processes_below
from tests.conftest import PrivateHome
from tests.integration.hired import is_there, until
from tests.integration.sshd import Sshd, running_sshd


@pytest.fixture
def sshd(private_home: PrivateHome) -> Iterator[Sshd]:
    with running_sshd(os.path.join(private_home.root, "sshd")) as server:
        yield server


@contextmanager
def jobs_at(home: PrivateHome, backend: BackendConfig, grace: float = 2.0) -> Iterator[Jobs]:
    directory = os.path.join(home.root, "jobs")
    store = open_store(f"sqlite:///{home.root}/jobs.db", state_dir=home.root)
    try:
        config = Config(jobs=JobsConfig(backends={"there": backend}, grace_seconds=grace))
        yield Jobs(store.jobs, directory, config, now)
    finally:
        end_processes_below(directory)
        store.close()


@pytest.fixture
def jobs(private_home: PrivateHome, sshd: Sshd) -> Iterator[Jobs]:
    with jobs_at(private_home, sshd.config()) as service:
        yield service


def order(*argv: str, **more: object) -> Order:
    return Order(argv=argv, cwd=str(more.pop("cwd", "")), backend="there", **more)  # type: ignore[arg-type]


def ended(jobs: Jobs, job: Job) -> tuple[JobStatus, int | None, str]:
    waited = jobs.wait(job.id, 60)
    return waited.job.status, waited.job.exit_code, waited.printed.text


def printed(jobs: Jobs, job: Job) -> str:
    return jobs.log(job.id).printed.text


HOSTILE = (
    "",
    " ",
    "a b",
    "'",
    '"',
    "$(id)",
    "`id`",
    "\\",
    "\\n",
    "*",
    "~",
    "=ls",
    "+101",
    "%s",
    "a\nb\n",
    "é\uef80",
    "; exit 9",
    "-n",
    "!x",
)


def test_words_arrive_as_they_are_whatever_is_in_them(jobs: Jobs) -> None:
    program = 'for word do printf "%s\\0" "$word"; done'
    job = jobs.spawn(order("sh", "-c", program, "sh", *HOSTILE))
    status, code, _ = ended(jobs, job)
    assert (status, code) == (JobStatus.EXITED, 0)
    text = b"".join(data for _, data in jobs.log(job.id).stretches)
    assert text == b"".join(
        word.replace("\uef80", "").encode() + (b"\x80" if "\uef80" in word else b"") + b"\0" for word in HOSTILE
    )


def test_a_job_runs_there_with_what_it_asks_for_and_nothing_else(
    jobs: Jobs, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LEAK", "of ours")
    token = "sk-ant-api03-" + "x" * 40
    job = jobs.spawn(
        order(
            "sh",
            "-c",
            'pwd; echo "[$LEAK][$WISH]"; env | grep -c SSH_CONNECTION',
            cwd="/usr",
            env={"WISH": token + "'\n"},
        )
    )
    assert ended(jobs, job) == (JobStatus.EXITED, 0, f"/usr\n[][{token}'\n]\n1\n")
    assert os.listdir(os.path.join(sshd.home, ".perdure")) == []
    for name in os.listdir(jobs.path(job)):
        with open(os.path.join(jobs.path(job), name), "rb") as file:
            assert name.startswith("out.") or token.encode() not in file.read(), name
    assert ended(jobs, jobs.spawn(order("pwd")))[2] == f"{os.path.expanduser(f'~{current_user().name}')}\n"


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (("sh", "-c", "exit 7"), 7),
        (("sh", "-c", "exit 255"), 255),
        (("sh", "-c", "kill -KILL $$"), 137),
        (("no-such-program",), 127),
        (("eval", "exit 3"), 127),
    ],
)
def test_the_code_is_the_commands_own(jobs: Jobs, argv: tuple[str, ...], code: int) -> None:
    assert ended(jobs, jobs.spawn(order(*argv)))[:2] == (JobStatus.EXITED, code)


def test_a_connection_that_is_cut_is_no_end_of_the_command(jobs: Jobs, sshd: Sshd) -> None:
    job = jobs.spawn(order("sh", "-c", "trap '' HUP PIPE; echo $$; exec sleep 300"))
    until(lambda: printed(jobs, job), "its number")
    pid = int(printed(jobs, job))
    sshd.cut()
    waited = jobs.wait(job.id, 60).job
    assert (waited.status, waited.exit_code) == (JobStatus.LOST, None)
    assert waited.why is not None
    assert "connection was cut off" in waited.why
    assert is_there(pid)
    jobs.kill(job.id)
    until(lambda: not is_there(pid), "the end of what went on there")


def test_errors_are_told_apart_and_input_reaches_it(jobs: Jobs) -> None:
    job = jobs.spawn(order("sh", "-c", "echo oops >&2; cat; echo end"))
    assert jobs.submit(job.id, b"a line") == 7
    jobs.close_stdin(job.id)
    assert ended(jobs, job)[:2] == (JobStatus.EXITED, 0)
    said = jobs.log(job.id).stretches
    assert b"".join(data for is_error, data in said if is_error) == b"oops\n"
    assert b"".join(data for is_error, data in said if not is_error) == b"a line\nend\n"


def test_a_terminal_there(jobs: Jobs) -> None:
    job = jobs.spawn(
        order(
            "sh",
            "-c",
            # The size and the line come by ways of their own.
            "test -t 0 && stty size; read line; until test \"$(stty size)\" = '40 100'; do sleep 0.1; done; exit 4",
            terminal=Terminal(rows=33, columns=111),
        )
    )
    until(lambda: "33 111" in printed(jobs, job), "its size")
    jobs.resize(job.id, 40, 100)
    jobs.submit(job.id, b"go")
    assert ended(jobs, job)[:2] == (JobStatus.EXITED, 4)


def test_a_text_is_for_the_shell_there(jobs: Jobs) -> None:
    job = jobs.spawn(Order(shell='echo "$HOME" | tr a-z A-Z', cwd="/", backend="there"))
    assert ended(jobs, job)[2].startswith("/TMP/PD-")


def test_ending_one_ends_everything_it_started_there(jobs: Jobs) -> None:
    deaf = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$; sleep 300' & env -i sleep 300 & echo $! $$; trap 'echo last words' EXIT; sleep 300; sleep 300"
    job = jobs.spawn(order("sh", "-c", deaf))
    until(lambda: len(printed(jobs, job).split()) >= 3, "its processes")
    pids = [int(word) for word in printed(jobs, job).split()]
    assert all(map(is_there, pids))
    over = jobs.kill(job.id)
    assert (over.job.status, over.was_over, over.left) == (JobStatus.KILLED, False, 0)
    assert not any(map(is_there, pids))


def test_what_it_says_at_its_end_is_kept(private_home: PrivateHome, sshd: Sshd) -> None:
    words = ("sh", "-c", "trap 'echo last words; exit 3' TERM; echo ready; while :; do sleep 0.1; done")
    with jobs_at(private_home, sshd.config(), grace=30.0) as jobs:
        job = jobs.spawn(order(*words))
        until(lambda: "ready" in printed(jobs, job), "it")
        over = jobs.kill(job.id).job
        assert (over.status, over.exit_code) == (JobStatus.KILLED, 3)
        assert "last words" in printed(jobs, job)


def test_a_machine_that_is_not_there_is_said_before_there_is_a_job(
    private_home: PrivateHome, sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend, said in [
        (sshd.config(port=1), "Connection refused"),
        (sshd.config(identity=sshd.stranger()), "Permission denied"),
        (sshd.config(options=("UserKnownHostsFile=/dev/null", "StrictHostKeyChecking=yes")), "verification failed"),
    ]:
        with jobs_at(private_home, backend) as jobs:
            with pytest.raises(PerdureError, match=said):
                jobs.spawn(order("true"))
            assert jobs.list() == ()
    hostile = sshd.config(host="-oProxyCommand=touch /tmp/x")
    with jobs_at(private_home, hostile) as jobs, pytest.raises(UsageError, match="no host's name"):
        jobs.spawn(order("true"))
    with jobs_at(private_home, sshd.config()) as jobs:
        with pytest.raises(UsageError, match="no backend 'elsewhere'; there is local, there"):
            jobs.spawn(Order(argv=("true",), cwd="/", backend="elsewhere"))
        monkeypatch.setenv("PATH", private_home.root)
        with pytest.raises(PerdureError, match="no program ssh"):
            jobs.spawn(order("true"))


def test_what_cannot_be_reached_is_not_said_to_have_ended(jobs: Jobs, sshd: Sshd) -> None:
    job = jobs.spawn(order("sh", "-c", "echo ready; exec sleep 300"))
    until(lambda: "ready" in printed(jobs, job), "it")
    sshd.end()
    with pytest.raises(PerdureError, match="could not be ended in there"):
        jobs.kill(job.id)
    assert jobs.wait(job.id, 60).job.status is JobStatus.LOST
