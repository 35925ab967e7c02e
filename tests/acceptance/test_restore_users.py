"""A shared machine comes back: everybody's sessions as theirs, and nobody's trouble is anybody else's."""

from __future__ import annotations

import os
from typing import Any

import pytest

from tests.acceptance.guests import Guest, Machine, environ, status
from tests.acceptance.kit import configure, only_json
from tests.acceptance.restoring import by_target
from tests.conftest import PrivateHome
from tests.perdure_cli import Ran
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root brings back everybody's sessions")

CANARY = "a value of root's"
CANARIES = {"ROOTS_OWN": CANARY, "XDG_RUNTIME_DIR": f"/run/{CANARY}", "BASH_ENV": f"/{CANARY}", "LD_AUDIT": ""}


@pytest.fixture
def machine(private_home: PrivateHome) -> Machine:
    # The real machine's roster is nobody's business here.
    configure(private_home, f"roster = '{private_home.root}/no-roster'\n[restore]\nverify_seconds = 10\n")
    return Machine(private_home)


def crash(*guests: Guest) -> None:
    for guest in guests:
        guest.kill9()


def steps(ran: Ran, user: Guest) -> dict[str, dict[str, Any]]:
    """What came of one user's panes."""
    answer = only_json(ran)
    return by_target({**answer, "steps": [step for step in answer["steps"] if step["user"] == user.name]})


def results(ran: Ran, user: Guest) -> list[str]:
    return [step["result"] for step in steps(ran, user).values()]


def test_everybody_comes_back_as_themselves_with_nothing_of_roots(machine: Machine, tmux: TmuxServer) -> None:
    ann, bob = machine.guest("ann", "/bin/bash"), machine.guest("bob", "/usr/sbin/nologin")
    ann.write(".bash_profile", "PATH=$HOME/bin:$PATH; . ~/.bashrc\n")
    ann.write(".bashrc", "export KEY_OF_ANN=from-her-own-file\n")
    conversation = ("--session", "11111111-2222-4333-8444-555555555555")
    for guest in (ann, bob):
        guest.work("work", *conversation)
    tmux.run("new-session", "-d", "-s", "roots", "/bin/sh")
    saved = machine.save()
    assert (saved["ann"]["agents"], saved["bob"]["agents"]) == (1, 1)
    crash(ann, bob)
    tmux.kill9()
    ran = machine("restore", "--all-users", "--json", env=CANARIES)
    assert ran.code == 0, ran
    assert only_json(ran)["summary"] == {
        "panes": 5, "created": 5, "resumed": 2, "verified": 2, "skipped": 0, "failed": 0,
    }  # fmt: skip
    for guest, shell in ((ann, "/bin/bash"), (bob, "/bin/sh")):
        assert results(ran, guest) == ["done", "verified"]
        for pid in guest.processes():
            found, variables = status(pid), environ(pid)
            assert found["Uid"].split() == found["Gid"].split() == [str(guest.uid)] * 4
            assert found["Groups"].split() == [str(guest.uid)]
            own = {"HOME": guest.home, "USER": guest.name, "LOGNAME": guest.name, "SHELL": shell}
            assert {name: variables.get(name) for name in own} == own, words(pid)
            assert CANARY not in "".join(variables.values())
            assert not variables.keys() & {*CANARIES, "PERDURE_STATE_DIR", "PYTHONPATH", "VIRTUAL_ENV"}
        (theirs,) = [pid for pid in guest.processes() if "agent.py" in " ".join(words(pid)[2:4])]
        assert guest.at("bin") in environ(theirs)["PATH"].split(":")
        assert os.readlink(f"/proc/{theirs}/cwd") == guest.home
        owners = {os.lstat(path).st_uid for path in everything_below(guest.home)}
        assert owners == {guest.uid}
    (hers,) = [pid for pid in ann.processes() if "KEY_OF_ANN" in environ(pid)]
    assert environ(hers)["KEY_OF_ANN"] == "from-her-own-file"
    assert "roots" in tmux.run("list-sessions", "-F", "#{session_name}").decode()
    assert {os.lstat(path).st_uid for path in everything_below(machine.places.state)} == {0}


def words(pid: int) -> list[str]:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().decode().split("\0")[:-1]


def everything_below(path: str) -> list[str]:
    return [os.path.join(folder, name) for folder, folders, names in os.walk(path) for name in (*folders, *names)]
