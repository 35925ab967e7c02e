"""Jobs in containers, by a stand-in for docker's program: no engine runs where tests do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from perdure.errors import PerdureError
from perdure.host.clock import now
from perdure.jobs.service import Jobs
from perdure.model.config import BackendConfig, Config, JobsConfig
from perdure.model.job import JobStatus, Order
from perdure.store import open_store
from tests.acceptance.jobs import end_processes_below
from tests.conftest import PrivateHome
from tests.integration.hired import is_there, until

# `exec`: options, a container, words, which run in a session of their own with what was given of an environment. Without a
# daemon: the sentence and the code that docker 28 was seen to give. All else is by its documentation, not by an engine.
ENGINE = r"""#!/bin/sh
[ -e "$HOME/daemon" ] || { echo "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?" >&2; exit 1; }
[ "$1" = exec ] || exit 125
shift
given=
while :; do
  case $1 in
    --env) case $2 in *=*) given="$given $2" ;; *) given="$given $2=$(printenv "$2")" ;; esac; shift 2 ;;
    --*) shift ;;
    *) break ;;
  esac
done
[ "$1" = web ] || { echo "Error response from daemon: No such container: $1" >&2; exit 1; }
shift
exec setsid -w env -i PATH="$PATH" INSIDE=1 $given "$@"
"""


@pytest.fixture
def jobs(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> Iterator[Jobs]:
    folder = os.path.join(private_home.root, "bin")
    os.mkdir(folder)
    with open(os.path.join(folder, "docker"), "w") as file:
        file.write(ENGINE)
    os.chmod(os.path.join(folder, "docker"), 0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    directory = os.path.join(private_home.root, "jobs")
    store = open_store(f"sqlite:///{private_home.root}/jobs.db", state_dir=private_home.root)
    backends = {name: BackendConfig(kind="docker", container=name) for name in ("web", "gone")}
    yield Jobs(store.jobs, directory, Config(jobs=JobsConfig(backends=backends)), now)
    end_processes_below(directory)
    store.close()


@pytest.fixture
def daemon(private_home: PrivateHome) -> None:
    with open(os.path.join(private_home.home, "daemon"), "w"):
        pass


def order(*argv: str, backend: str = "web", **more: object) -> Order:
    return Order(argv=argv, cwd=str(more.pop("cwd", "")), backend=backend, **more)  # type: ignore[arg-type]


def test_without_an_engine_or_a_container_there_is_no_job(jobs: Jobs, private_home: PrivateHome) -> None:
    with pytest.raises(PerdureError, match="Cannot connect to the Docker daemon"):
        jobs.spawn(order("true"))
    with open(os.path.join(private_home.home, "daemon"), "w"):
        pass
    with pytest.raises(PerdureError, match="No such container: gone"):
        jobs.spawn(order("true", backend="gone"))
    assert jobs.list() == ()


@pytest.mark.usefixtures("daemon")
def test_a_job_runs_inside_with_what_it_asks_for(jobs: Jobs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEAK", "of ours")
    text = 'pwd; echo "[$INSIDE][$LEAK][$API_TOKEN][$1]"; cat; exit 5'
    job = jobs.spawn(order("sh", "-c", text, "sh", "$(id)", cwd="/usr", env={"API_TOKEN": "hush"}))
    jobs.submit(job.id, b"a line")
    jobs.close_stdin(job.id)
    waited = jobs.wait(job.id, 60)
    assert (waited.job.status, waited.job.exit_code) == (JobStatus.EXITED, 5)
    assert waited.printed.text == "/usr\n[1][][hush][$(id)]\na line\n"


@pytest.mark.usefixtures("daemon")
def test_ending_one_ends_what_it_started_inside(jobs: Jobs) -> None:
    job = jobs.spawn(order("sh", "-c", "setsid sleep 300 & echo $! $$; sleep 300"))
    until(lambda: len(jobs.log(job.id).printed.text.split()) == 2, "its processes")
    pids = [int(word) for word in jobs.log(job.id).printed.text.split()]
    over = jobs.kill(job.id)
    assert (over.job.status, over.left) == (JobStatus.KILLED, 0)
    assert not any(map(is_there, pids))
