"""A shared machine comes back: everybody's sessions as theirs, and nobody's trouble is anybody else's."""

from __future__ import annotations

import os
import shutil
import stat
from typing import Any

import pytest

from tests.acceptance.accounts import ROOT
from tests.acceptance.guests import Guest, Machine, environ, status
from tests.acceptance.kit import configure, hand_over, only_json, run_unprivileged, sentence, wait_for
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
    configure(private_home, f"roster = '{private_home.root}/no-roster'\n[restore]\nverify_seconds = 60\n")
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


def test_after_a_boot_the_store_tells_whose_sessions_there_were(machine: Machine) -> None:
    ann, bob = machine.guest("ann"), machine.guest("bob")
    with open(os.path.join(machine.places.root, "no-roster"), "w", encoding="utf-8") as file:
        file.write("one=bob\nother=bob\n")
    for guest in (ann, bob):
        guest.sit_down()
    machine.save()
    crash(ann, bob)
    shutil.rmtree(machine.places.sockets)
    os.mkdir(machine.places.sockets)
    os.chmod(machine.places.sockets, 0o1777)
    only = machine("restore", "--socket", ann.socket, "--json")
    assert (only.code, results(only, ann), results(only, bob)) == (0, ["done"], []), only
    ran = machine("restore", "--all-users", "--json")
    assert (ran.code, results(ran, ann), results(ran, bob)) == (0, ["skipped"], ["done"]), ran
    for guest in (ann, bob):
        found = os.lstat(os.path.dirname(guest.socket))
        assert (found.st_uid, stat.S_IMODE(found.st_mode)) == (guest.uid, 0o700)
        assert guest.tmux("list-sessions", "-F", "#{session_name}") == "desk"
    table = machine.ok("restore", "--all-users", "--dry-run").out
    assert "Nothing to do: 2 panes there already." in table


def test_one_users_trouble_costs_nobody_else(machine: Machine, private_home: PrivateHome) -> None:
    names = ("homeless", "locked", "linking", "crowded", "gone", "replaced", "shellless", "lucky")
    guests = {name: machine.guest(name) for name in names}
    for guest in guests.values():
        guest.sit_down()
    machine.save()
    crash(*guests.values())
    roots_own = os.path.join(private_home.root, "roots-own")
    os.mkdir(roots_own, 0o700)
    shutil.rmtree(guests["homeless"].home)
    os.mkdir(guests["locked"].at(".local"), 0o755)
    guests["linking"].run("mkdir", "-p", guests["linking"].at(".local/state/perdure"))
    guests["linking"].run("ln", "-s", roots_own, guests["linking"].at(".local/state/perdure/restores"))
    shutil.rmtree(os.path.dirname(guests["crowded"].socket))
    os.mkdir(os.path.dirname(guests["crowded"].socket))
    os.chown(os.path.dirname(guests["crowded"].socket), guests["lucky"].uid, -1)
    os.chmod(os.path.dirname(guests["crowded"].socket), 0o777)
    guests["replaced"].name = "somebody-new"
    guests["shellless"].shell = "/bin/gone"
    machine.write_accounts(without=[guests["gone"]])
    ran = machine("restore", "--all-users", "--json")
    assert ran.code == 4, ran
    assert results(ran, guests["lucky"]) == results(ran, guests["shellless"]) == ["done"]
    said = dict(line.removeprefix("perdure: ").split(" ", 1) for line in ran.err.splitlines())
    assert said.keys() == set(names) - {"lucky", "shellless"}, ran.err
    for name, why in (
        ("homeless", "cannot be made"),
        ("locked", "Permission denied"),
        ("linking", "Permission denied"),
        ("crowded", f"belongs to uid {guests['lucky'].uid}"),
        ("gone", "does not know"),
        ("replaced", "is that of somebody-new now"),
    ):
        assert why in said[name], said[name]
    errors = only_json(ran)["errors"]
    assert {each["user"] for each in errors} == said.keys()
    assert os.listdir(roots_own) == []
    assert guests["shellless"].tmux("show-options", "-gv", "default-shell") == "/bin/sh"
    # What went wrong loses nothing: with the trouble gone, it comes back.
    os.unlink(guests["linking"].at(".local/state/perdure/restores"))
    assert results(machine("restore", "--all-users", "--json"), guests["linking"]) == ["done"]


def test_what_panes_are_handed_is_their_users_alone(machine: Machine) -> None:
    ann = machine.guest("ann")
    ann.work("work")
    machine.save()
    crash(ann)
    ran = machine("restore", "--all-users", "--lazy", "--json")
    assert (ran.code, results(ran, ann)) == (0, ["done", "unverified"]), ran
    state = ann.at(".local/state/perdure")
    modes = {path: (os.lstat(path).st_uid, stat.S_IMODE(os.lstat(path).st_mode)) for path in everything_below(state)}
    assert modes, "an agent that waits for Enter has a place for its exit status"
    assert all(found == (ann.uid, 0o700 if os.path.isdir(path) else 0o600) for path, found in modes.items()), modes
    kept = {os.path.basename(path): os.lstat(path) for path in everything_below(machine.places.state)}
    assert {found.st_uid for found in kept.values()} == {0}
    assert [stat.S_IMODE(kept[name].st_mode) for name in kept if name.endswith(".lock")] == [0o600]
    ann.tmux("send-keys", "-t", "work:1", "Enter")
    wait_for(lambda: "Noted as number 1" in ann.shown("work:1"), "the conversation")


def test_nobody_but_root_brings_back_others(machine: Machine, private_home: PrivateHome, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "roots", "/bin/sh")
    snapshot = next(iter(machine.save().values()))["snapshot"]
    hand_over(private_home)
    everybody = run_unprivileged("restore", "--all-users")
    assert everybody.code == 6
    assert "for root" in sentence(everybody)
    named = run_unprivileged("restore", "--from", snapshot)
    assert named.code == 6
    assert "only they, or root" in sentence(named)


#: What systemd-run does with --scope, without systemd.
SYSTEMD_RUN = """#!/bin/sh
printf '%s\\n' "$@" >>"${0%/*}/asked"
for word; do shift; case $word in --uid=*) uid=${word#--uid=};; --gid=*) gid=${word#--gid=};; --) break;; esac; done
exec setpriv --reuid "${uid:-0}" --regid "${gid:-0}" --keep-groups -- "$@"
"""


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_no_server_is_started_inside_the_service(machine: Machine) -> None:
    ann = machine.guest("ann")
    ann.sit_down()
    machine.save()
    crash(ann)
    root = os.path.join(machine.places.root, "machine")
    for name, text in (
        ("run/systemd/system/x", ""),
        ("proc/self/cgroup", "0::/system.slice/perdure-restore.service\n"),
        ("bin/systemd-run", SYSTEMD_RUN),
    ):
        os.makedirs(os.path.dirname(os.path.join(root, name)), exist_ok=True)
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write(text)
    os.chmod(os.path.join(root, "bin/systemd-run"), 0o755)
    path = f"{root}/bin:{os.environ['PATH']}"
    ran = machine("restore", "--all-users", "--json", env={ROOT: root, "PATH": path, **CANARIES})
    assert (ran.code, results(ran, ann)) == (0, ["done"]), ran
    with open(os.path.join(root, "bin", "asked"), encoding="utf-8") as file:
        asked = file.read().splitlines()
    assert asked[: asked.index("--")] == [
        "--scope", "--quiet", "--collect", f"--uid={ann.uid}", f"--gid={ann.uid}", f"--slice=user-{ann.uid}.slice",
    ]  # fmt: skip
    assert asked.count("--scope") == 1, "whoever finds the server running needs no place for it"
    for pid in ann.processes():
        assert status(pid)["Uid"].split() == [str(ann.uid)] * 4
        assert not environ(pid).keys() & CANARIES.keys()


def words(pid: int) -> list[str]:
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read().decode().split("\0")[:-1]


def everything_below(path: str) -> list[str]:
    return [os.path.join(folder, name) for folder, folders, names in os.walk(path) for name in (*folders, *names)]
