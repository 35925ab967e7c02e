"""What `perdure up` finds by itself: panes that others make, end, rename and move, on every server of the user."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable

import pytest

from perdure.model.event import EventKind, StoredEvent
from perdure.model.run import Health, RunState
from tests.acceptance.kit import NOBODY, configure
from tests.acceptance.simulants import Simulants
from tests.acceptance.watching import PATIENCE, Watching, begin, dispose, kinds_of, stored_runs, watching
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

_SHELL = "/bin/sh"


def _about(watcher: Watching, id: str, *kinds: EventKind) -> list[StoredEvent]:
    return [each for each in watcher.events(0, *kinds) if each.event.run == id]


def test_what_is_there_is_known_when_it_says_that_it_is_ready(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
    tmux.run("split-window", "-d", "-t", "work:two", _SHELL)

    with watching(perdure) as watcher:
        assert watcher.said == {"servers": 1, "panes": 3, "agents": 0}
        runs = watcher.runs()
        assert [run.place.target for run in runs] == ["work:0.0", "work:1.0", "work:1.1"]
        assert [run.id for run in runs] == ["r1", "r2", "r3"]
        created = watcher.events(0, EventKind.RUN_CREATED)
        assert {each.event.data["reason"] for each in created} == {"startup_discovery"}
        assert kinds_of(watcher.events())[0] is EventKind.DAEMON_STARTED


def test_panes_that_others_make_end_rename_and_move(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)

    with watching(perdure) as watcher:
        tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
        made = watcher.await_run("work:1.0")
        assert _about(watcher, made.id, EventKind.RUN_CREATED)[0].event.data["reason"] == "periodic_tmux_reconcile"

        tmux.run("rename-session", "-t", "work", "play")
        tmux.run("rename-window", "-t", "play:1", "deux")
        renamed = watcher.await_run("play:1.0", lambda run: run.place.window_name == "deux")
        assert renamed.id == made.id

        tmux.run("move-window", "-d", "-s", "play:1", "-t", "play:7")
        assert watcher.await_run("play:7.0").id == made.id

        tmux.run("kill-window", "-t", "play:7")
        watcher.await_gone(made.id)
        gone = _about(watcher, made.id, EventKind.RUN_DELETED)
        assert [each.event.data["reason"] for each in gone] == ["tmux_reconcile_missing"]
        assert stored_runs()[made.id].is_over
        assert [run.place.target for run in watcher.runs()] == ["play:0.0"]


def test_a_pane_that_goes_to_another_session_stays_the_same_run(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "here", "-n", "one", _SHELL)
    tmux.run("split-window", "-d", "-t", "here:one", _SHELL)
    tmux.run("new-session", "-d", "-s", "there", "-n", "two", _SHELL)

    with watching(perdure) as watcher:
        moving = watcher.run("here:0.1")
        tmux.run("join-pane", "-d", "-s", "here:0.1", "-t", "there:0")
        assert watcher.await_run("there:0.1").id == moving.id
        assert {run.id for run in watcher.runs()} == {"r1", "r2", "r3"}
        assert len(watcher.events(0, EventKind.RUN_CREATED)) == 3


def test_servers_that_appear_later(
    perdure: Perdure, tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]
) -> None:
    # Not even the directory of the sockets is there yet, as after a boot.
    with watching(perdure) as watcher:
        assert watcher.said == {"servers": 0, "panes": 0, "agents": 0}
        tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
        watcher.await_run("work:0.0")
        other = tmux_server("other")
        other.run("new-session", "-d", "-s", "else", "-n", "one", _SHELL)
        assert watcher.await_run("else:0.0").server.socket == other.socket
        appeared = watcher.events(0, EventKind.SERVER_APPEARED)
        assert [each.event.data["socket"] for each in appeared] == [tmux.socket, other.socket]


def test_a_server_without_a_session_is_no_trouble_and_its_first_session_is_noticed(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run(
        "start-server", ";", "set-option", "-s", "exit-empty", "off", ";", "new-session", "-d", "-s", "brief", "true"
    )
    with watching(perdure) as watcher:
        watcher.wait_for(lambda: not watcher.runs(), "nothing to be there")
        tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
        watcher.await_run("work:0.0")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a socket somebody else's")
def test_a_socket_of_somebody_else_is_left_alone(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    strange = os.path.join(os.path.dirname(tmux.socket), "strange")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(strange)
        listener.listen()
        listener.setblocking(False)
        os.chown(strange, NOBODY, NOBODY)
        with watching(perdure) as watcher:
            tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
            watcher.await_run("work:1.0")
            assert {run.server.socket for run in watcher.runs()} == {tmux.socket}
        # Not even knocked at: whoever listens there learns nothing of us.
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_a_socket_at_which_nobody_listens_any_more_and_one_that_is_no_tmux(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    directory = os.path.dirname(tmux.socket)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(os.path.join(directory, "left"))
    with open(os.path.join(directory, "file"), "w") as file:
        file.write("no socket at all")
    with watching(perdure) as watcher:
        assert watcher.said["servers"] == 1
        assert [run.place.target for run in watcher.runs()] == ["work:0.0"]
        assert watcher.log == ""


def test_states_of_shells_and_of_a_pane_that_stays_when_its_program_ends(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    with watching(perdure) as watcher:
        watcher.await_state("work:0.0", "idle")
        tmux.run("send-keys", "-t", "work:0", "sleep 1000", "Enter")
        # Not the first that is seen of it: that may be the shell that becomes it.
        watcher.await_run("work:0.0", lambda run: (run.status.word, run.status.cause) == ("busy", "process:sleep"))
        tmux.run("send-keys", "-t", "work:0", "C-c", "")
        watcher.await_state("work:0.0", "idle")
        tmux.run(
            "send-keys", "-t", "work:0", "trap '' HUP; exec </dev/null >/dev/null 2>&1; sleep 0.3; exit 7", "Enter"
        )
        ended = watcher.await_state("work:0.0", "exited")
        assert not ended.is_over
        assert ended.exit_status in (7, None)


def test_an_agent_that_begins_without_a_word_is_noticed(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    """A shell that was told to run something becomes an agent, long after its window was looked at."""
    simulants = Simulants(private_home)
    gates = {session: os.path.join(private_home.root, session) for session in ("exec", "child")}
    for gate in gates.values():
        os.mkfifo(gate)
    tmux.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        tmux.run("new-session", "-d", "-s", "exec", "-n", "one", f"cat {gates['exec']}; exec {simulants.path}")
        tmux.run("new-session", "-d", "-s", "child", "-n", "one", f"cat {gates['child']}; {simulants.path}; true")
        for session in gates:
            watcher.await_run(f"{session}:0.0", lambda run: run.status.cause == "process:cat")
        time.sleep(4)
        for gate in gates.values():
            os.close(os.open(gate, os.O_WRONLY))
        for session in ("exec", "child"):
            watcher.await_run(f"{session}:0.0", lambda run: run.agent == "simulant" and run.status.word == "idle")


# -- a listing that cannot be relied on -------------------------------------------------------------------------------


def test_a_server_that_hangs_loses_nothing(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 1\n")
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
    pid = tmux.pid
    with watching(perdure) as watcher:
        for target in ("work:0.0", "work:1.0"):
            # On a slow machine the first look may be one that takes too long.
            watcher.await_run(target, lambda run: run.health is Health.HEALTHY)
        before = {run.id: run.place.target for run in watcher.runs()}
        after = watcher.last()
        tmux.run("send-keys", "-t", "work:0", "echo stirred", "Enter")
        os.kill(pid, 19)
        try:
            watcher.await_event(EventKind.SERVER_HEALTH, lambda each: each.event.data["health"] == "degraded", after)
            watcher.await_event(EventKind.SERVER_HEALTH, lambda each: each.event.data["health"] == "overloaded", after)
            assert {run.id: run.place.target for run in watcher.runs()} == before
            assert {run.health for run in watcher.runs()} == {Health.OVERLOADED}
        finally:
            os.kill(pid, 18)
        watcher.await_event(EventKind.SERVER_HEALTH, lambda each: each.event.data["health"] == "healthy", after)
        assert {run.id: run.place.target for run in watcher.runs()} == before
        assert {run.health for run in watcher.runs()} == {Health.HEALTHY}
        lost = watcher.events(after, EventKind.RUN_DELETED, EventKind.SERVER_DIED, EventKind.RUN_CREATED)
        assert lost == []


def test_a_server_that_hangs_costs_the_others_nothing(
    perdure: Perdure, tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    other = tmux_server("other")
    other.run("new-session", "-d", "-s", "else", "-n", "one", _SHELL)
    pid = other.pid
    with watching(perdure) as watcher:
        other.run("send-keys", "-t", "else:0", "echo stirred", "Enter")
        os.kill(pid, 19)
        try:
            watcher.await_event(EventKind.SERVER_HEALTH)
            # While it hangs it is not asked again and again: each question would hold everybody else up.
            after = watcher.last()
            for number in range(1, 6):
                tmux.run("new-window", "-d", "-t", f"work:{number}", "-n", "more", _SHELL)
                watcher.await_run(f"work:{number}.0")
            health = [each.event.data["socket"] for each in watcher.events(after, EventKind.SERVER_HEALTH)]
            assert tmux.socket not in health
        finally:
            os.kill(pid, 18)
        watcher.await_run("else:0.0", lambda run: run.health is Health.HEALTHY)


def test_a_server_whose_socket_is_gone_is_not_dead(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    pid = tmux.pid
    with watching(perdure) as watcher:
        after = watcher.last()
        os.unlink(tmux.socket)
        watcher.await_run("work:0.0", lambda run: run.health is not Health.HEALTHY)
        os.kill(pid, 10)  # SIGUSR1: tmux makes its socket again
        watcher.await_run("work:0.0", lambda run: run.health is Health.HEALTHY)
        assert watcher.events(after, EventKind.RUN_DELETED, EventKind.SERVER_DIED) == []


# -- numbers ----------------------------------------------------------------------------------------------------------


def test_ids_are_never_given_again(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        seen = {"r1"}
        for number in range(2, 5):
            # Each elsewhere: in the same place it would be the same run.
            tmux.run("new-window", "-d", "-t", f"work:{number}", "-n", "more", _SHELL)
            made = watcher.await_run(f"work:{number}.0")
            assert made.id not in seen
            seen.add(made.id)
            tmux.run("kill-window", "-t", f"work:{number}")
            watcher.await_gone(made.id)
    assert set(stored_runs()) == seen


def test_the_same_place_takes_its_id_back(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL)
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        before = watcher.run("work:0.0")
        tmux.run("kill-session", "-t", "work")
        watcher.await_gone(before.id)
        tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
        assert watcher.await_run("work:0.0").id == before.id
        assert EventKind.RUN_RETURNED in kinds_of(_about(watcher, before.id))


def test_a_daemon_that_was_killed_leaves_everything_known(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    tmux.run("new-window", "-d", "-t", "work", "-n", "two", _SHELL)
    tmux.run("new-window", "-d", "-t", "work", "-n", "three", _SHELL)
    first = begin(perdure)
    try:
        before = {run.place.target: run.id for run in first.runs()}
        first.process.kill()
        first.process.wait(PATIENCE)
    finally:
        dispose(first)
    tmux.run("kill-window", "-t", "work:1")
    tmux.run("new-window", "-d", "-t", "work:5", "-n", "new", _SHELL)

    with watching(perdure) as watcher:
        now = {run.place.target: run.id for run in watcher.runs()}
        assert now == {"work:0.0": before["work:0.0"], "work:2.0": before["work:2.0"], "work:5.0": "r4"}
        (gone,) = watcher.events(0, EventKind.RUN_DELETED)
        assert (gone.event.run, gone.event.data["reason"]) == (before["work:1.0"], "startup_missing_tmux")
        # What was there all along has not happened again.
        assert len(watcher.events(0, EventKind.RUN_CREATED)) == 4
        assert watcher.events(0, EventKind.RUN_RETURNED) == []
        assert not any(run.stale for run in watcher.runs())
    numbers = [each.seq for each in watcher.events()]
    assert numbers == sorted(set(numbers))


def test_servers_that_ended_while_nobody_watched(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure):
        pass
    tmux.kill9()
    with watching(perdure) as watcher:
        assert watcher.runs() == []
        (gone,) = watcher.events(0, EventKind.RUN_DELETED)
        assert gone.event.data["reason"] == "startup_missing_tmux"
        run = stored_runs()["r1"]
        assert (run.status.state, run.is_over) == (RunState.EXITED, True)


def test_a_server_that_hangs_when_the_daemon_begins_keeps_its_runs(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure):
        pass
    configure(private_home, "[tmux]\ntimeout_seconds = 0.5\n")
    pid = tmux.pid
    os.kill(pid, 19)
    try:
        watcher = begin(perdure)
        try:
            (run,) = watcher.runs()
            assert (run.id, run.stale) == ("r1", True)
        finally:
            os.kill(pid, 18)
        watcher.await_run("r1", lambda run: not run.stale and run.health is Health.HEALTHY)
        assert watcher.events(0, EventKind.RUN_DELETED) == []
        assert watcher.end() == 0
    finally:
        os.kill(pid, 18)
        dispose(watcher)


def test_runs_on_a_socket_that_is_not_looked_for_any_more_are_not_taken_for_ended(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    apart = os.path.join(private_home.root, "apart")
    configure(private_home, f'[tmux]\nsockets = ["{apart}"]\n')
    tmux.run("-S", apart, "new-session", "-d", "-s", "apart", "-n", "one", _SHELL)
    try:
        with watching(perdure) as watcher:
            assert [run.place.session for run in watcher.runs()] == ["apart"]
        configure(private_home, "")
        with watching(perdure) as watcher:
            assert watcher.events(0, EventKind.RUN_DELETED) == []
        configure(private_home, f'[tmux]\nsockets = ["{apart}"]\n')
        with watching(perdure) as watcher:
            assert [(run.id, run.stale) for run in watcher.runs()] == [("r1", False)]
    finally:
        tmux.run("-S", apart, "kill-server", check=False)
