"""A server died, another was begun on its socket and saved: what ended with the first one comes back all the same."""

from __future__ import annotations

import os
from collections.abc import Iterator
from getpass import getuser

import msgspec
import pytest

from perdure.host.clock import now
from perdure.host.places import store_url
from perdure.model.event import Event, EventKind
from perdure.store import open_store
from tests.acceptance.kit import only_json, save, wait_for
from tests.acceptance.restoring import by_target, restored
from tests.acceptance.simulants import Simulants, starts
from tests.acceptance.watching import state_dir, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def simulants(private_home: PrivateHome) -> Iterator[Simulants]:
    found = Simulants(private_home)
    yield found
    found.end_all()


def begin(simulants: Simulants, tmux: TmuxServer, *sessions: str) -> dict[str, str]:
    """Start an agent in a session of its own each, say something to it, and return their conversations."""
    begun: dict[str, str] = {}
    for session in sessions:
        before, turns = set(simulants.running()), simulants.turns()
        tmux.run(
            "new-session", "-d", "-s", session, "-n", "agent", simulants.path, "--think", "0.1", f"words for {session}"
        )
        simulants.await_running(len(before) + 1, turns + 2)
        begun[session] = (set(simulants.running()) - before).pop()
    return begun


def crash(simulants: Simulants, tmux: TmuxServer) -> int:
    """Kill the server, wait until its agents are gone, and return how much they have noted."""
    tmux.kill9()
    simulants.await_gone()
    return len(simulants.records())


def shell(tmux: TmuxServer, session: str) -> None:
    """Open a session with a shell, as somebody does who finds no tmux."""
    tmux.run("new-session", "-d", "-s", session, "-n", "shell", "/bin/sh")


@pytest.mark.parametrize("sessions", [("W",), ("W", "V", "U")])
def test_what_ended_with_a_server_comes_back_beside_what_was_begun_since(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, sessions: tuple[str, ...]
) -> None:
    begun = begin(simulants, tmux, *sessions)
    save(perdure)
    since = crash(simulants, tmux)
    shell(tmux, "W")
    mine = tmux.run("list-panes", "-a", "-F", "#{pane_id} #{pane_pid}").decode().strip()
    save(perdure)

    answer = restored(perdure)

    assert simulants.running().keys() == set(begun.values())
    assert starts(simulants.records()[since:]) == dict.fromkeys(begun.values(), 1)
    # Beside what is there in its place, which is left alone.
    assert mine in tmux.run("list-panes", "-t", "=W:0", "-F", "#{pane_id} #{pane_pid}").decode()
    verified = {step["conversation"] for step in answer["steps"] if step["result"] == "verified"}
    assert verified == set(begun.values())
    assert {target.partition(":")[0] for target in by_target(answer)} == set(sessions)
    for _ in range(2):
        assert only_json(perdure("restore", "--json"))["summary"]["created"] == 0
        save(perdure)
    assert starts(simulants.records()[since:]) == dict.fromkeys(begun.values(), 1)


def test_it_is_said_what_it_is(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    begin(simulants, tmux, "work")
    save(perdure)
    crash(simulants, tmux)
    shell(tmux, "other")
    save(perdure)
    assert "1 pane would be brought back" in (out := perdure.ok("restore", "--dry-run").out)
    assert "what ended with the tmux server before" in out
    # Of what is named, only that.
    assert restored(perdure, "work")["summary"]["created"] == 1


def test_shells_and_windows_that_ended_with_it_come_back_too(perdure: Perdure, tmux: TmuxServer) -> None:
    shell(tmux, "one")
    tmux.run("new-window", "-d", "-t", "=one:4", "-n", "four", "/bin/sh")
    shell(tmux, "two")
    save(perdure)
    tmux.kill9()
    shell(tmux, "one")
    save(perdure)
    restored(perdure)
    shown = tmux.run("list-windows", "-a", "-F", "#S:#I").decode().split()
    assert sorted(shown) == ["one:0", "one:4", "two:0"]


def test_what_was_closed_while_the_server_lived_stays_closed(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    begun = begin(simulants, tmux, "closed", "open")
    save(perdure)
    tmux.run("kill-session", "-t", "=closed")
    wait_for(lambda: begun["closed"] not in simulants.running(), "its end")
    save(perdure)
    crash(simulants, tmux)
    shell(tmux, "mine")
    save(perdure)
    restored(perdure)
    assert list(simulants.running()) == [begun["open"]]


@pytest.mark.parametrize("is_saved", [True, False])
def test_what_came_back_and_was_closed_then_stays_closed(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, is_saved: bool
) -> None:
    begun = begin(simulants, tmux, "closed", "open")
    save(perdure)
    crash(simulants, tmux)
    shell(tmux, "mine")
    save(perdure)
    restored(perdure)
    if is_saved:
        save(perdure)
    tmux.run("kill-session", "-t", "=closed")
    wait_for(lambda: begun["closed"] not in simulants.running(), "its end")
    save(perdure)
    assert only_json(perdure("restore", "--json"))["summary"]["created"] == 0
    # Nor after another crash.
    crash(simulants, tmux)
    shell(tmux, "again")
    save(perdure)
    restored(perdure)
    assert list(simulants.running()) == [begun["open"]]


def test_one_server_after_the_other(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    first = begin(simulants, tmux, "first")
    save(perdure)
    crash(simulants, tmux)
    second = begin(simulants, tmux, "second")
    save(perdure)
    crash(simulants, tmux)
    shell(tmux, "third")
    save(perdure)
    # What came back is not saved before the next crash.
    restored(perdure)
    assert set(simulants.running()) == {first["first"], second["second"]}
    crash(simulants, tmux)
    shell(tmux, "fourth")
    save(perdure)
    restored(perdure)
    assert set(simulants.running()) == {first["first"], second["second"]}


def test_with_a_daemon_that_saves_the_little_there_is(simulants: Simulants, perdure: Perdure, tmux: TmuxServer) -> None:
    shell(tmux, "base")
    with watching(perdure) as watcher:
        begun = begin(simulants, tmux, "W", "V")
        watcher.wait_for(lambda: set(begun.values()) <= _saved(perdure), "the conversations to be saved")
        since = crash(simulants, tmux)
        watcher.await_event(EventKind.SERVER_DIED)
        shell(tmux, "W")
        watcher.wait_for(lambda: not _saved(perdure), "the new server to be saved")
        restored(perdure)
        assert simulants.running().keys() == set(begun.values())
        assert starts(simulants.records()[since:]) == dict.fromkeys(begun.values(), 1)


def test_a_server_that_was_told_to_end_is_not_brought_back_and_it_is_said_how(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    with watching(perdure) as watcher:
        begun = begin(simulants, tmux, "work")
        watcher.wait_for(lambda: set(begun.values()) <= _saved(perdure), "the conversation to be saved")
        tmux.run("kill-server")
        died = watcher.await_event(EventKind.SERVER_DIED).event
        before = died.data["snapshot"]
        simulants.end_all()
        shell(tmux, "mine")
        watcher.wait_for(lambda: not _saved(perdure), "the new server to be saved")
        ran = perdure.ok("restore")
        if not died.data["in_good_order"]:  # where the kernel does not tell, it may have been an accident
            assert set(simulants.running()) == set(begun.values())
            return
        assert not simulants.running()
        assert begun["work"] in ran.err
        assert f"`perdure restore --from {before}" in ran.err
        restored(perdure, "--from", before)
        assert set(simulants.running()) == set(begun.values())


@pytest.mark.parametrize("session", ["mine", "work"])
def test_programs_are_told_what_is_not_brought_back_and_how(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer, session: str
) -> None:
    begun = begin(simulants, tmux, "work")
    before = save(perdure)
    _note_good_end(tmux)
    crash(simulants, tmux)
    shell(tmux, session)
    save(perdure)
    is_taken = session == "work"
    left_out = {
        "user": getuser(),
        "socket": before["socket"],
        "snapshot": before["snapshot"],
        "target": "work:0.0",
        "agent": "simulant",
        "conversation": begun["work"],
        "why": "ended with the tmux server before, which was told to end or had no session left",
        "argv": ["perdure", "restore", "--from", before["snapshot"], "work"],
        "is_taken": is_taken,
    }
    for how in (["--dry-run"], [], ["--progress"]):
        ran = perdure.ok("restore", "--json", *how)
        answer = msgspec.json.decode(ran.out.splitlines()[-1])
        assert answer.get("restored", answer)["left_out"] == [left_out]
        assert f"{begun['work']} (work:0.0) {left_out['why']}; `perdure restore --from" in ran.err
    # The command that is told does it, once there is room for it.
    if is_taken:
        shell(tmux, "mine")
        tmux.run("kill-session", "-t", "=work")
    assert restored(perdure, *left_out["argv"][2:])["left_out"] == []
    assert set(simulants.running()) == set(begun.values())


def test_what_comes_back_elsewhere_is_not_said_to_be_left_out(
    simulants: Simulants, perdure: Perdure, tmux: TmuxServer
) -> None:
    begun = begin(simulants, tmux, "a", "b", "c", "d")
    save(perdure)
    crash(simulants, tmux)
    later = begin(simulants, tmux, "a")
    save(perdure)
    ran = perdure.ok("restore", "--json")
    assert set(simulants.running()) == {*begun.values(), *later.values()}
    assert begun["a"] not in ran.err
    assert only_json(ran)["left_out"] == []


def _note_good_end(tmux: TmuxServer) -> None:
    """Write down that the server that runs was told to end, as a daemon does that watches its end."""
    pid = int(tmux.run("display-message", "-p", "#{pid}"))
    store = open_store(store_url(os.environ, state_dir()), state_dir=state_dir())
    try:
        (server,) = {each.server.key for each in store.list_snapshots()}
        data = {"pid": pid, "in_good_order": True}
        store.record((), [Event(kind=EventKind.SERVER_DIED, at=now(), server=server, data=data)])
    finally:
        store.close()


def _saved(perdure: Perdure) -> set[str]:
    ran = perdure("show", "--json", "latest")
    if ran.code == 3:
        return set()  # nothing is saved yet
    panes = ran.json["snapshot"]["topology"]["panes"]
    return {pane["identity"]["conversation"] for pane in panes if pane["identity"]}
