"""What is started here for a job elsewhere: never the job itself, whatever its words are."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UsageError
from perdure.jobs.backends import find_backend, remote, true_end
from perdure.jobs.backends.remote import text_for_shell
from perdure.model.backend_check import mistakes_in_backend
from perdure.model.config import BackendConfig, JobsConfig
from perdure.model.job import Job, JobStatus, Order, Terminal
from perdure.model.text import encode
from tests.builders import at

BACKENDS = {
    "box": BackendConfig(kind="ssh", host="box", user="dev", port=2222, options=("ConnectTimeout=5",)),
    "inner": BackendConfig(kind="docker", container="web", options=("--privileged",)),
    "fresh": BackendConfig(kind="podman", image="docker.io/library/alpine:3", user="1000:1000"),
}
HOSTILE = (
    "-oProxyCommand=id",
    "--privileged",
    "$(id)",
    "`id`",
    "'",
    '"',
    "; id",
    "\n",
    "\\",
    "",
    "eval",
    "a=b",
    "\uef80",
)

words = st.sampled_from(HOSTILE) | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
programs = words.filter(lambda word: word and not word.startswith("-"))
orders = st.builds(
    Order,
    argv=st.tuples(programs).flatmap(lambda first: st.lists(words, max_size=4).map(lambda rest: (*first, *rest))),
    cwd=st.sampled_from(("", "/", "/usr/$(id)", "/-oProxyCommand=id")),
    terminal=st.none() | st.just(Terminal()),
    backend=st.sampled_from(tuple(BACKENDS)),
)


def _bin(root: str) -> str:
    for name in ("ssh", "docker", "podman"):
        path = os.path.join(root, name)
        with open(path, "w") as file:
            file.write("#!/bin/sh\n")
        os.chmod(path, 0o755)
    return root


@pytest.fixture(scope="module")
def programs_dir(tmp_path_factory: pytest.TempPathFactory) -> str:
    return _bin(str(tmp_path_factory.mktemp("bin")))


def wrapped(order: Order, programs_dir: str) -> tuple[str, ...]:
    config = JobsConfig(backends=BACKENDS)
    backend = find_backend(order.backend, "/bin/sh", config, {"PATH": programs_dir, "HOME": "/home/dev"})
    return backend.wrap("j1", order, env={"LEAK": "1"}, directory="/home/dev/j1").argv


@given(order=orders)
def test_what_runs_here_is_the_program_that_leads_there(order: Order, programs_dir: str) -> None:
    argv = wrapped(order, programs_dir)
    kind = BACKENDS[order.backend].kind
    assert argv[0] == os.path.join(programs_dir, kind)
    assert order.argv is not None
    if kind == "ssh":
        # One text behind the host, in which every word of the order is data.
        assert argv[-3:-1] == ("--", "box")
        assert set(argv[-1].split("perdure \\\\ ", 1)[1]) <= set(
            "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,@-+ "
        )
        plain = Order(argv=("x",), cwd=order.cwd, terminal=order.terminal, backend=order.backend)
        assert argv[:-1] == wrapped(plain, programs_dir)[:-1]
    else:
        # All of it behind the container or image, where no option is looked for.
        last = len(argv) - len(order.argv)
        assert argv[last:] == order.argv
        config = BACKENDS[order.backend]
        assert argv.index(config.container or config.image) < last
        plain = Order(argv=("x",), cwd=order.cwd, terminal=order.terminal, backend=order.backend)
        assert argv[:last] == wrapped(plain, programs_dir)[:-1]


@given(st.lists(words, min_size=1, max_size=5))
def test_any_words_reach_a_program_through_a_shell(given_words: list[str]) -> None:
    """By the shell there is here; what it reads has no character in it that shells differ about."""
    text = text_for_shell(("sh", "-c", 'for word do printf "%s\\0" "$word"; done', "sh", *given_words))
    ran = subprocess.run(
        ["sh", "-c", text], capture_output=True, check=True, env={"PATH": os.environ["PATH"], "HOME": "/nowhere"}
    )
    assert ran.stdout == b"".join(encode(word) + b"\0" for word in given_words)


def test_what_any_shell_has_to_read_is_nothing_they_differ_about() -> None:
    assert not set(remote._UNPACK) & set("'\\\n!")


def test_a_program_that_would_be_an_option_is_refused(programs_dir: str) -> None:
    for name in BACKENDS:
        with pytest.raises(UsageError, match="cannot begin with '-'"):
            wrapped(Order(argv=("-x",), cwd="", backend=name), programs_dir)


def test_a_secret_is_in_no_words(programs_dir: str) -> None:
    config = JobsConfig(backends=BACKENDS)
    order = Order(argv=("x",), cwd="", backend="inner", env={"API_TOKEN": "hush", "DOCKER_HOST": "tcp://elsewhere"})
    backend = find_backend("inner", "/bin/sh", config, {"PATH": programs_dir, "OWN_SECRET": "s"})
    made = backend.wrap("j1", order, env={}, directory="/")
    assert not any("hush" in word for word in made.argv)
    assert made.env["API_TOKEN"] == "hush"
    # What would lead to another engine is for the job alone.
    assert "DOCKER_HOST" not in made.env
    assert "DOCKER_HOST=tcp://elsewhere" in made.argv
    assert "OWN_SECRET" not in made.env


@pytest.mark.parametrize(
    ("backend", "said"),
    [
        (BackendConfig(kind="ssh", host="-oProxyCommand=id"), "no host's name"),
        (BackendConfig(kind="ssh", host="a b"), "no host's name"),
        (BackendConfig(kind="ssh"), "host is missing"),
        (BackendConfig(kind="ssh", host="a", user="-x"), "nobody's name"),
        (BackendConfig(kind="ssh", host="a", port=0), "port is 0"),
        (BackendConfig(kind="ssh", host="a", identity="key"), "absolute path"),
        (BackendConfig(kind="ssh", host="a", options=("-oX=y",)), "options has"),
        (BackendConfig(kind="ssh", host="a", image="b"), "image is nothing that ssh has"),
        (BackendConfig(kind="docker", container="--privileged"), "no container's name"),
        (BackendConfig(kind="docker", image="-x"), "no image's name"),
        (BackendConfig(kind="podman"), "either container or image"),
        (BackendConfig(kind="podman", container="a", image="b"), "either container or image"),
        (BackendConfig(kind="docker", image="a", options=("b",)), "options has"),
        (BackendConfig(kind="rsh"), "must be one of ssh, docker, podman"),
    ],
)
def test_every_mistake_has_its_sentence_and_nothing_is_run(backend: BackendConfig, said: str) -> None:
    assert any(said in each for each in mistakes_in_backend("mine", backend))
    with pytest.raises(UsageError):
        find_backend("mine", "/bin/sh", JobsConfig(backends={"mine": backend}), {})


def test_this_machine_keeps_its_name() -> None:
    assert any("is this machine" in each for each in mistakes_in_backend("local", BACKENDS["box"]))
    for name, backend in BACKENDS.items():
        assert list(mistakes_in_backend(name, backend)) == []


@pytest.mark.parametrize(
    ("log", "status", "code"),
    [
        ("debug1: Exit status 255\n", JobStatus.EXITED, 255),
        ("debug1: Exit status -1\n", JobStatus.LOST, None),
        ("client_loop: send disconnect: Broken pipe\n", JobStatus.LOST, None),
        (None, JobStatus.LOST, None),
    ],
)
def test_255_is_the_commands_own_only_where_ssh_says_so(
    log: str | None, status: JobStatus, code: int | None, tmp_path: os.PathLike[str]
) -> None:
    if log is not None:
        with open(os.path.join(tmp_path, "ssh.log"), "w") as file:
            file.write(log)
    order = Order(argv=("x",), cwd="", backend="box")
    job = Job(id="j1", order=order, ordered_at=at(0), status=JobStatus.EXITED, exit_code=255, ended_at=at(1))
    seen = true_end(job, os.fspath(tmp_path), JobsConfig(backends=BACKENDS))
    assert (seen.status, seen.exit_code) == (status, code)
