"""Crash upon crash, and what people do in between: no conversation is lost, and none is opened twice."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec
import pytest

from perdure.store import open_store
from perdure.store.store import Store
from tests.acceptance.kit import only_json, save, sentence, wait_for
from tests.acceptance.restoring import by_target, restored
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def simulants(private_home: PrivateHome) -> Iterator[Simulants]:
    found = Simulants(private_home)
    yield found
    found.end_all()


def begin(simulants: Simulants, tmux: TmuxServer, session: str, *words: str) -> str:
    """Start an agent in a session of its own, say something to it, and return its conversation."""
    before, turns = set(simulants.running()), simulants.turns()
    tmux.run("new-session", "-d", "-s", session, simulants.path, "--think", "0.1", *words, f"words for {session}")
    simulants.await_running(len(before) + 1, turns + 2)
    return (set(simulants.running()) - before).pop()


def crash(simulants: Simulants, tmux: TmuxServer) -> int:
    """Kill the server, wait until its agents are gone, and return how much they have noted."""
    tmux.kill9()
    simulants.await_gone()
    return len(simulants.records())


def test_a_second_crash_before_anything_was_saved(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    begun = [begin(simulants, tmux, f"s{number}") for number in range(3)]
    save(perdure)
    crash(simulants, tmux)
    restored(perdure)
    # Those that were brought back outlive this server, and no snapshot knows them.
    tmux.kill9()
    since = len(simulants.records())
    answer = restored(perdure)
    assert [step["result"] for step in answer["steps"]] == ["verified"] * 3
    assert starts(simulants.records()[since:]) == dict.fromkeys(begun, 1)


def test_another_snapshot_than_that_of_an_interrupted_restore(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    old = begin(simulants, tmux, "old")
    slow = [begin(simulants, tmux, f"s{number}", "--boot", "1.5") for number in range(2)]
    first = save(perdure)["snapshot"]
    tmux.run("kill-session", "-t", "=old")
    wait_for(lambda: old not in simulants.running(), "its end")
    save(perdure)
    since = crash(simulants, tmux)
    running = subprocess.Popen(perdure.argv("restore", "--max-parallel", "1"), stdout=subprocess.DEVNULL)
    wait_for(lambda: len(simulants.records()) > since, "the first start")
    running.send_signal(signal.SIGKILL)
    running.wait()

    answer = restored(perdure, "--from", first)

    assert sorted(simulants.running()) == sorted([old, *slow])
    assert starts(simulants.records()[since:]) == dict.fromkeys([old, *slow], 1)
    assert len(answer["snapshots"]) == 2


def test_opened_elsewhere_while_it_waits_for_its_turn(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    waits = begin(simulants, tmux, "waits")
    begin(simulants, tmux, "first", "--boot", "3")  # used last, so it is the first to come back
    save(perdure)
    since = crash(simulants, tmux)
    running = subprocess.Popen(
        perdure.argv("restore", "--max-parallel", "1", "--json"), stdout=subprocess.PIPE, text=True
    )
    wait_for(lambda: len(simulants.records()) > since, "the first start")
    tmux.run("new-session", "-d", "-s", "mine", simulants.path, "--resume", waits)
    wait_for(lambda: waits in simulants.running(), "the one a person opened")
    out, _ = running.communicate(timeout=120)
    assert running.returncode == 0, out
    assert "is in use already" in out
    assert starts(simulants.records()[since:])[waits] == 1


def test_two_servers_at_once_do_not_share_a_conversation(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    begun = begin(simulants, tmux, "one")
    snapshot = save(perdure)["snapshot"]
    since = crash(simulants, tmux)
    commands = (("restore",), ("restore", "--from", snapshot, "--socket", f"{tmux.socket}-two"))
    both = [subprocess.Popen(perdure.argv(*each), stdout=subprocess.DEVNULL) for each in commands]
    codes = sorted(each.wait() for each in both)
    # One after the other, the second finds the conversation in use; at once, it is refused.
    assert codes in ([0, 0], [0, 6])
    assert starts(simulants.records()[since:]) == {begun: 1}


def test_what_came_after_a_fall_comes_back_too(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    many = [begin(simulants, tmux, f"s{number}") for number in range(5)]
    big = save(perdure)["snapshot"]
    for number in range(1, 5):
        tmux.run("kill-session", "-t", f"=s{number}")
    wait_for(lambda: len(simulants.running()) == 1, "their end")
    tmux.run("send-keys", "-t", "=s0:", "/new", "Enter")
    wait_for(lambda: many[0] not in simulants.running(), "the new conversation")
    tmux.run("send-keys", "-t", "=s0:", "another matter", "Enter")
    wait_for(lambda: simulants.turns() == 12, "the answer")
    (went_on,) = simulants.running()
    today = begin(simulants, tmux, "today")
    latest = save(perdure)["snapshot"]
    crash(simulants, tmux)

    answer = restored(perdure)

    assert answer["snapshots"] == [big, latest]
    assert set(simulants.running()) == {went_on, today, *many[1:]}
    assert by_target(answer)["today:0.0"]["result"] == "verified"
    assert only_json(perdure("restore", "--json"))["summary"]["created"] == 0


def test_agents_that_were_killed_in_their_panes_come_back(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    for number in range(4):
        tmux.run("new-session", "-d", "-s", f"s{number}", "/bin/sh")
        tmux.run("send-keys", "-t", f"=s{number}:", f"{simulants.path} --think 0.1 'words for {number}'", "Enter")
    simulants.await_running(4, 8)
    begun = simulants.running()
    save(perdure)
    for pid in begun.values():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not simulants.running(), "their end")
    save(perdure)
    # On the living server nothing is done to the shells, and it is said what is not running in them.
    assert perdure.ok("restore").out.count("is not running in it") == 4
    crash(simulants, tmux)
    restored(perdure)
    assert set(simulants.running()) == set(begun)


def test_a_snapshot_that_is_named_is_brought_back_as_it_was(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    first = begin(simulants, tmux, "one")
    begin(simulants, tmux, "other")
    named = save(perdure)["snapshot"]
    tmux.run("send-keys", "-t", "=one:", "/new", "Enter")
    wait_for(lambda: first not in simulants.running(), "the new conversation")
    tmux.run("send-keys", "-t", "=one:", "another matter", "Enter")
    wait_for(lambda: simulants.turns() == 6, "the answer")
    save(perdure)
    tmux.run("kill-session", "-t", "=one")
    wait_for(lambda: len(simulants.running()) == 1, "its end")
    save(perdure)
    assert by_target(restored(perdure, "--from", named))["one:0.0"]["conversation"] == first
    assert first in simulants.running()


@pytest.mark.parametrize("lazy_first", [True, False])
def test_a_pane_does_what_it_was_told_when_it_was_made(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, lazy_first: bool
) -> None:
    begun = begin(simulants, tmux, "one")
    begin(simulants, tmux, "slow", "--boot", "2")
    save(perdure)
    since = crash(simulants, tmux)
    options = ("--lazy",) if lazy_first else ("--max-parallel", "1")
    running = subprocess.Popen(perdure.argv("restore", *options), stdout=subprocess.DEVNULL)
    if lazy_first:
        wait_for(lambda: "one" in tmux.run("list-sessions", "-F", "#S", check=False).decode().split(), "its pane")
    else:
        wait_for(lambda: len(simulants.records()) > since, "the first start")
    running.send_signal(signal.SIGKILL)
    running.wait()

    answer = restored(perdure, *(() if lazy_first else ("--lazy",)))

    step = by_target(answer)["one:0.0"]
    if not lazy_first:
        assert (step["result"], "Enter" in step["why"]) == ("verified", False)
    elif step["result"] != "verified":  # killed before its pane was made, it is made by the second, and started
        # Killed too late, there is nothing left to do but to press Enter.
        assert (step["result"], "Enter" in step["why"]) == ("unverified", True) or step["action"] == "keep"
        tmux.run("send-keys", "-t", "=one:", "Enter")
    wait_for(lambda: begun in simulants.running(), "the agent")
    assert starts(simulants.records()[since:])[begun] == 1


@contextmanager
def opened_store(home: PrivateHome) -> Iterator[Store]:
    store = open_store(f"sqlite:///{home.state.lstrip('/')}/perdure.db", state_dir=home.state)
    try:
        yield store
    finally:
        store.close()


def test_what_was_saved_of_a_half_made_scene_is_not_all(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    begun = [begin(simulants, tmux, f"s{number}") for number in range(3)]
    save(perdure)
    crash(simulants, tmux)
    only = restored(perdure, "s0")  # as far as one that was killed may have come
    assert only["summary"]["created"] == 1
    with opened_store(private_home) as store:
        (restore,) = store.list_restores()
        store.begin_restore(msgspec.structs.replace(restore, id="0123456789abcdef", ended_at=None))
    save(perdure)
    crash(simulants, tmux)

    restored(perdure)

    assert set(simulants.running()) == set(begun)


def test_a_killed_restore_leaves_a_socket_that_can_be_used(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    save(perdure)
    tmux.kill9()
    for _ in range(5):
        running = subprocess.Popen(perdure.argv("restore"), stdout=subprocess.DEVNULL)
        wait_for(lambda: tmux.run("list-sessions", check=False), "a session")
        running.send_signal(signal.SIGKILL)
        running.wait()
        restored(perdure)
        tmux.kill()
        tmux.run("new-session", "-d", "-s", "mine")
        tmux.kill()


def test_a_target_that_means_nothing_stops_all(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    save(perdure)
    tmux.kill9()
    ran = perdure("restore", "one", "oen", "three:1")
    assert (ran.code, "'oen' or 'three:1'" in sentence(ran)) == (3, True)
    assert not tmux.alive


def test_two_servers_are_told_apart(
    perdure: Perdure, tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]
) -> None:
    servers = (tmux, tmux_server("another"))
    for server in servers:
        server.run("new-session", "-d", "-s", "one")
    perdure.ok("save")
    for server in servers:
        server.kill9()
    out = perdure.ok("restore").out
    assert "server" in out.splitlines()[2]
    assert {line.split()[0] for line in out.splitlines() if " one:0.0 " in line} == {"default", "another"}


def test_a_dry_run_counts_what_it_would_do(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one", ";", "new-session", "-d", "-s", "two")
    save(perdure)
    tmux.run("kill-session", "-t", "=one")
    assert "1 pane would be brought back; nothing was done." in perdure.ok("restore", "--dry-run").out


def test_ctrl_c_says_how_to_go_on(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    slow = begin(simulants, tmux, "slow", "--boot", "2")
    save(perdure)
    since = crash(simulants, tmux)
    running = subprocess.Popen(perdure.argv("restore"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(simulants.records()) > since, "the start")
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=120)
    assert (running.returncode, err) == (130, "perdure: interrupted; `perdure restore` goes on from here.\n")
    assert restored(perdure)["steps"][0]["result"] == "verified"
    assert starts(simulants.records()[since:]) == {slow: 1}
