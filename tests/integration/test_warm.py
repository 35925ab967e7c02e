"""A command run by a Python that has read the modules already does what one does that begins anew."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer
from tests.warm import FRESH, Warm, warm


@pytest.fixture
def ready() -> Warm:
    found = warm()
    if found is None:
        pytest.skip("every command is a Python of its own here")
    return found


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--version"],
        ["--help"],
        ["no-such-command"],
        ["save", "--no-such-option"],
        ["save", "--json"],
        ["history", "--json"],
        ["history"],
        ["show", "latest", "--json"],
        ["ls"],
        ["chats", "ls", "--json"],
        ["jobs", "ls", "--json"],
        ["check", "--json"],
        ["\udcff\udcfe", "ü 漢"],
        ["send", "nobody", "x" * 100_000],
    ],
    ids=" ".join,
)
def test_it_says_and_ends_the_same(words: list[str], ready: Warm) -> None:
    assert ready.can(words, os.environ)
    assert Perdure()(*words) == Perdure(fresh=True)(*words)


def test_it_has_the_directory_and_the_environment_it_is_given(private_home: PrivateHome, ready: Warm) -> None:
    other = os.path.join(private_home.root, "other")
    os.mkdir(here := os.path.join(private_home.root, "here"))
    for run in (Perdure(), Perdure(fresh=True)):
        # A state directory is named from where one is.
        ran = run("save", "--json", cwd=here, env={"PERDURE_STATE_DIR": "../other"})
        assert (ran.code, ran.err) == (0, ""), ran
        assert not os.path.exists(private_home.state)
    assert os.path.isdir(other)


def test_it_has_the_mask_of_who_runs_it(perdure: Perdure, ready: Warm) -> None:
    for mask in (0o022, 0o077):
        before = os.umask(mask)
        try:
            job = perdure.ok("jobs", "run", "--json", "--", "sh", "-c", "umask").json["job"]
        finally:
            os.umask(before)
        perdure.ok("jobs", "wait", job)
        assert perdure.ok("jobs", "log", job).out == f"{mask:04o}\n"


def test_it_reads_what_it_is_given_however_much(tmux: TmuxServer, ready: Warm) -> None:
    tmux.run("new-session", "-d", "-s", "work", "cat")
    too_long = "x" * (800 << 10)
    ran = Perdure()("send", "%0", "-", input=too_long)
    assert ran.code != 0
    assert ran == Perdure(fresh=True)("send", "%0", "-", input=too_long)


def test_many_at_once_are_not_mixed_up(ready: Warm) -> None:
    with ThreadPoolExecutor(8) as pool:
        ran = list(pool.map(Perdure(), [f"no-command-{number}" for number in range(24)]))
    assert [f"'no-command-{number}'" in each.err for number, each in enumerate(ran)] == [True] * 24
    assert {each.code for each in ran} == {2}


def test_one_that_takes_too_long_is_ended(perdure: Perdure, ready: Warm) -> None:
    job = perdure.ok("jobs", "run", "--json", "--", "sleep", "1000").json["job"]
    with pytest.raises(subprocess.TimeoutExpired):
        perdure("jobs", "wait", job, timeout=1)
    perdure.ok("jobs", "kill", job)


def test_another_python_and_a_daemon_begin_by_themselves(monkeypatch: pytest.MonkeyPatch, ready: Warm) -> None:
    assert ready.can(["ls"], os.environ)
    assert not ready.can(["up"], os.environ)
    for name in ("PYTHONPATH", "LC_ALL", "LANG", "LD_PRELOAD"):
        assert not ready.can(["ls"], {**os.environ, name: "another"})
    monkeypatch.setenv(FRESH, "1")
    assert warm() is None
