"""A client that does what a tmux client may do, without a server behind it."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from perdure.host.users import current_user
from perdure.tmux.run import Client, gather, start


def client(*argv: str, script: bytes = b"", timeout: float = 20.0) -> Client:
    process = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE if script else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    return Client(process, script, time.monotonic() + timeout)


def test_both_streams_and_the_status_are_whole() -> None:
    said = client("sh", "-c", "printf 'a\\0b'; head -c 300000 /dev/zero; echo no >&2; exit 3")
    gather([said])
    assert said.answer == b"a\0b" + bytes(300000)
    assert said.complaint == "no"
    assert said.status == 3


def test_a_script_larger_than_a_pipe_arrives_whole() -> None:
    script = os.urandom(500_000)
    echo = client("cat", script=script)
    gather([echo])
    assert echo.answer == script
    assert echo.status == 0


def test_a_client_that_does_not_read_its_script_loses_only_that() -> None:
    deaf = client("sh", "-c", "exec <&-; echo done", script=bytes(500_000))
    gather([deaf])
    assert deaf.answer == b"done\n"
    assert deaf.status == 0


@pytest.mark.parametrize("first", [":", "exec >&- 2>&-", "dd bs=8192 count=1 2>/dev/null"])
def test_a_hung_client_is_given_up_and_the_others_are_whole(first: str, tmp_path: object) -> None:
    """Also one that read a little of its script: there is room in the pipe then, but not for all of the rest."""
    late = client("sh", "-c", f"{first}; sleep 20; : >{tmp_path}/ended", script=bytes(500_000), timeout=0.3)
    prompt = client("sh", "-c", "echo here")
    gather([late, prompt])
    assert late.status is None
    assert not os.path.exists(f"{tmp_path}/ended")
    assert prompt.answer == b"here\n"
    assert prompt.status == 0


def test_nobody_to_wait_for() -> None:
    gather([])


def test_a_client_gets_nothing_of_our_environment_but_what_tmux_needs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    shim = os.path.join(str(tmp_path), "tmux")
    with open(shim, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\nenv; pwd; echo "$@"\n')
    os.chmod(shim, 0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("TMUX", "/tmp/other,1,0")
    monkeypatch.setenv("API_KEY", "hunter2")
    asked = start("/tmp/sock\uefe9t", ["list-sessions"], owner=current_user())
    gather([asked])
    names = {line.partition(b"=")[0] for line in asked.answer.splitlines() if b"=" in line}
    assert names <= {b"PATH", b"HOME", b"TMPDIR", b"TMUX_TMPDIR", b"TERM", b"PWD", b"OLDPWD", b"SHLVL", b"_"}
    assert asked.answer.splitlines()[-2:] == [b"/", b"-u -S /tmp/sock\xe9t list-sessions"]
