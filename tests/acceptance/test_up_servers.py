"""What `perdure up` does when a server dies, and what it saves before."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

from perdure.model.event import EventKind
from perdure.model.run import Run
from tests.acceptance.kit import configure, history, is_whole, snapshot, wait_for
from tests.acceptance.restoring import restored
from tests.acceptance.simulants import Simulants, starts
from tests.acceptance.watching import Watching, kinds_of, watching
from tests.at_rest import descendants
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

_SHELL = "/bin/sh"


@pytest.fixture
def simulants(private_home: PrivateHome) -> Simulants:
    """The simulated agents of the test's home."""
    return Simulants(private_home)


def _agent(tmux: TmuxServer, simulants: Simulants, session: str, *words: str) -> None:
    """Start an agent in a shell, as people do, so that its pane outlives it."""
    tmux.run("new-session", "-d", "-s", session, "-n", "agent", "-x", "100", "-y", "30", _SHELL)
    tmux.run("send-keys", "-t", f"{session}:0", " ".join((simulants.path, "--think", "0.2", *words)), "Enter")


def _conversation(run: Run) -> str | None:
    return run.identity.conversation if run.identity else None


def _in(watcher: Watching, target: str, *words: str) -> Run:
    return watcher.await_run(
        target, lambda run: _conversation(run) is not None and run.status.word in (words or ("idle", "attention(done)"))
    )


# -- saving -----------------------------------------------------------------------------------------------------------


def test_what_changes_is_saved_by_itself(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    tmux.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        tmux.run("new-window", "-d", "-t", "base", "-n", "two", _SHELL)
        watcher.wait_for(lambda: len(snapshot(perdure)["topology"]["panes"]) == 2, "the window to be saved")

        _agent(tmux, simulants, "work", "hello")
        first = _conversation(_in(watcher, "work:0.0"))
        watcher.wait_for(lambda: first in _saved(perdure), "the conversation to be saved")

        # The agent goes on to another conversation, in the same process and the same pane.
        tmux.run("send-keys", "-t", "work:0", "/new", "Enter")
        changed = watcher.await_event(
            EventKind.IDENTITY_CHANGED, lambda each: each.event.data["was"] == first
        ).event.data
        assert changed["conversation"] in simulants.running()
        watcher.wait_for(lambda: changed["conversation"] in _saved(perdure), "the new conversation to be saved")
        assert first not in _saved(perdure)
        assert watcher.run("work:0.0").identity is not None
    assert is_whole(perdure)


def _saved(perdure: Perdure, *args: str) -> set[str | None]:
    panes = perdure.ok("show", "--json", "latest", *args).json["snapshot"]["topology"]["panes"]
    return {pane["identity"]["conversation"] for pane in panes if pane["identity"]}


def test_a_dying_server_empties_nothing(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    for number in range(4):
        tmux.run("new-session", "-d", "-s", f"s{number}", "-n", "one", _SHELL)
    _agent(tmux, simulants, "work", "hello")
    with watching(perdure) as watcher:
        conversation = _conversation(_in(watcher, "work:0.0"))
        watcher.wait_for(lambda: conversation in _saved(perdure), "the conversation to be saved")
        tmux.kill()
        watcher.await_event(EventKind.SERVER_DIED)
        watcher.wait_for(lambda: not watcher.runs(), "the runs to have ended")
    # However many there are of the last moments: none of them has less.
    kept = history(perdure)
    assert {row["panes"] for row in kept} == {5}
    assert kept[0]["agents"] == 1


def test_what_panes_show_is_saved_when_the_daemon_ends(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        tmux.run("send-keys", "-t", "work:0", "echo half a minute of work", "Enter")
        watcher.wait_for(lambda: "half" in tmux.run("capture-pane", "-p", "-t", "work:0").decode(), "the text")
    shown = perdure.ok("show", "latest", "work:0.0", "--scrollback").out
    assert "half a minute of work" in shown


# -- dying ------------------------------------------------------------------------------------------------------------


def test_a_server_that_is_killed(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    _agent(tmux, simulants, "work", "hello")
    with watching(perdure) as watcher:
        run = _in(watcher, "work:0.0")
        pid = tmux.pid
        os.kill(pid, signal.SIGKILL)
        died = watcher.await_event(EventKind.SERVER_DIED).event
        assert (died.data["cause"], died.data["pid"], died.data["agents"]) == ("signal", pid, 1)
        assert "SIGKILL" in died.data["message"]
        assert died.data["snapshot"] == snapshot(perdure)["id"]
        watcher.wait_for(lambda: not watcher.runs(), "the runs to have ended")
        gone = watcher.await_event(EventKind.RUN_DELETED).event
        assert (gone.run, gone.data["reason"]) == (run.id, "server_died")
        assert len(watcher.events(0, EventKind.SERVER_DIED)) == 1


def test_a_server_that_is_told_to_end(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        tmux.run("kill-server")
        died = watcher.await_event(EventKind.SERVER_DIED).event
        assert died.data["cause"] == "exited"
        watcher.wait_for(lambda: not watcher.runs(), "the runs to have ended")


def test_a_server_that_is_replaced_at_once(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
    with watching(perdure) as watcher:
        for _ in range(3):
            after, before = watcher.last(), tmux.pid
            os.kill(before, signal.SIGKILL)
            wait_for(lambda: not tmux.alive, "the end")
            tmux.run("new-session", "-d", "-s", "work", "-n", "one", _SHELL)
            appeared = watcher.await_event(EventKind.SERVER_APPEARED, after=after).event
            assert appeared.data["pid"] == tmux.pid
            assert watcher.await_run("work:0.0").id == "r1"
            died = watcher.await_event(EventKind.SERVER_DIED, after=after).event
            assert (died.data["pid"], died.data["cause"]) == (before, "signal")
    numbers = [each.event.data["pid"] for each in watcher.events(0, EventKind.SERVER_DIED)]
    assert len(numbers) == len(set(numbers)) == 3


# -- coming back ------------------------------------------------------------------------------------------------------


def test_runs_take_their_ids_back_after_a_restore(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    tmux.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL)
    _agent(tmux, simulants, "work", "hello")
    with watching(perdure) as watcher:
        before = _in(watcher, "work:0.0")
        ids = {run.place.target: run.id for run in watcher.runs()}
        watcher.wait_for(lambda: _conversation(before) in _saved(perdure), "the conversation to be saved")
        tmux.kill9()
        watcher.wait_for(lambda: not watcher.runs(), "the runs to have ended")
        simulants.end_all()
        restored(perdure)
        after = _in(watcher, "work:0.0")
        assert _conversation(after) == _conversation(before)
        watcher.wait_for(lambda: {run.place.target: run.id for run in watcher.runs()} == ids, "the same ids")
    assert set(starts(simulants.records()).values()) == {2}


def test_a_conversation_takes_its_id_to_another_place(
    perdure: Perdure, tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer], simulants: Simulants
) -> None:
    _agent(tmux, simulants, "work", "hello")
    with watching(perdure) as watcher:
        before = _in(watcher, "work:0.0")
    tmux.kill9()
    simulants.end_all()
    conversation = _conversation(before)
    assert conversation is not None
    other = tmux_server("other")
    other.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL)
    _agent(other, simulants, "elsewhere", "--resume", conversation)
    wait_for(lambda: conversation in simulants.running(), "the agent")
    with watching(perdure) as watcher:
        after = watcher.await_run("elsewhere:0.0", lambda run: _conversation(run) == conversation)
        assert (after.id, after.server.socket) == (before.id, other.socket)
        assert watcher.run("base:0.0").id != before.id
        # It was there, was gone, and is there again: nobody who follows it is left behind.
        kinds = kinds_of([each for each in watcher.events() if each.event.run == before.id])
        assert EventKind.RUN_RETURNED in kinds


def test_another_conversation_in_the_place_of_one_that_fell_is_another_run(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants
) -> None:
    """While it is still starting nobody knows which it will be: the id of the one before is not lent to it meanwhile."""
    _as_first_program(tmux, simulants, "first")
    with watching(perdure) as watcher:
        before = _in(watcher, "work:0.0")
        tmux.kill9()
        watcher.await_gone(before.id)
        simulants.end_all()
        _as_first_program(tmux, simulants, "--boot", "2", "second")
        after = _in(watcher, "work:0.0")
        assert _conversation(after) in simulants.running()
        assert (after.id != before.id, _conversation(after) != _conversation(before)) == (True, True)
        assert [each.event.run for each in watcher.events(0, EventKind.RUN_RETURNED)] == []
        (over,) = [run for run in watcher.runs(over=True) if run.id == before.id]
        assert (over.is_over, _conversation(over)) == (True, _conversation(before))
        assert perdure("send", before.id, "not for you").code == 3
    # The one before has its id for itself when it comes back.
    tmux.kill9()
    simulants.end_all()
    conversation = str(_conversation(before))
    _as_first_program(tmux, simulants, "--resume", conversation)
    wait_for(lambda: conversation in simulants.running(), "the agent")
    with watching(perdure) as watcher:
        back = watcher.await_run("work:0.0", lambda run: _conversation(run) == conversation)
        assert back.id == before.id


def test_who_is_still_starting_in_the_place_of_one_that_fell_can_be_waited_for_without_a_daemon(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants
) -> None:
    _as_first_program(tmux, simulants, "first")
    with watching(perdure) as watcher:
        _in(watcher, "work:0.0")
    tmux.kill9()
    simulants.end_all()
    begun = len(simulants.records())
    _as_first_program(tmux, simulants, "--boot", "2", "second")
    wait_for(lambda: len(simulants.records()) > begun, "the agent to be starting")
    perdure.ok("wait", "work", "--until", "idle", "--timeout", "60")
    assert len(simulants.running()) == 1


def _as_first_program(tmux: TmuxServer, simulants: Simulants, *words: str) -> None:
    """Start an agent that is all there is in its pane."""
    command = " ".join(("exec", simulants.path, "--think", "0.2", *words))
    tmux.run("new-session", "-d", "-s", "work", "-n", "agent", "-x", "100", "-y", "30", command)


def test_a_server_that_dies_is_brought_back_at_once(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    tmux.run("new-session", "-d", "-s", "base", "-n", "one", _SHELL)
    _agent(tmux, simulants, "work", "hello")
    with watching(perdure) as watcher:
        before = _in(watcher, "work:0.0")
        ids = {run.place.target: run.id for run in watcher.runs()}
        watcher.wait_for(lambda: _conversation(before) in _saved(perdure), "the conversation to be saved")
        os.kill(tmux.pid, signal.SIGKILL)
        done = watcher.await_event(EventKind.RESTORED).event
        assert (done.data["exit_code"], done.data["socket"]) == (0, tmux.socket)
        after = _in(watcher, "work:0.0")
        assert _conversation(after) == _conversation(before)
        watcher.wait_for(lambda: {run.place.target: run.id for run in watcher.runs()} == ids, "the same ids")
        # The session a restore speaks through is nobody's run.
        assert {each.event.run for each in watcher.events(0, EventKind.RUN_CREATED)} == set(ids.values())


def _amid_a_restore(
    watcher: Watching, perdure: Perdure, tmux: TmuxServer, simulants: Simulants
) -> tuple[str | None, list[int]]:
    """Kill the server, wait until its agent is being brought back, and return its conversation and who does that."""
    conversation = _conversation(_in(watcher, "work:0.0"))
    watcher.wait_for(lambda: conversation in _saved(perdure), "the conversation to be saved")
    tmux.kill9()
    watcher.wait_for(lambda: starts(simulants.records()) == {conversation: 2}, "the agent to be started again")
    restoring = [pid for pid in descendants(watcher.pid) if "restore" in _words(pid)]
    assert restoring
    return conversation, restoring


def test_it_ends_also_while_something_is_brought_back(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    _agent(tmux, simulants, "work", "--boot", "3", "hello")
    with watching(perdure) as watcher:
        conversation, restoring = _amid_a_restore(watcher, perdure, tmux, simulants)
        assert watcher.end() == 0
        wait_for(lambda: not any("restore" in _words(pid) for pid in restoring), "the end of the restore")
        assert "Traceback" not in watcher.log
    # What was begun is gone on with.
    with watching(perdure) as watcher:
        assert _conversation(_in(watcher, "work:0.0")) == conversation


def test_what_was_brought_back_is_told_by_the_next_one_when_it_is_killed_meanwhile(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    _agent(tmux, simulants, "work", "--boot", "2", "hello")
    with watching(perdure) as watcher:
        conversation, restoring = _amid_a_restore(watcher, perdure, tmux, simulants)
        watcher.end(signal.SIGKILL)
    wait_for(lambda: not any("restore" in _words(pid) for pid in restoring), "the end of the restore")
    for _ in range(2):
        with watching(perdure) as watcher:
            (done,) = watcher.events(0, EventKind.RESTORED)
            assert (done.event.data["socket"], done.event.data["exit_code"]) == (tmux.socket, None)
            assert _conversation(_in(watcher, "work:0.0")) == conversation


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_was_to_be_brought_back_when_it_ended_is_brought_back_by_the_next_one(
    perdure: Perdure,
    tmux: TmuxServer,
    tmux_server: Callable[[str], TmuxServer],
    simulants: Simulants,
    private_home: PrivateHome,
    number: signal.Signals,
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    servers = {"work": tmux, "rest": tmux_server("rest")}
    for name, each in servers.items():
        _agent(each, simulants, name, "--boot", "1", "hello")
    with watching(perdure) as watcher:
        before = {name: _in(watcher, f"{name}:0.0") for name in servers}
        for name, each in servers.items():
            watcher.wait_for(
                lambda name=name, each=each: _conversation(before[name]) in _saved(perdure, "--socket", each.socket),  # type: ignore[misc]
                "the conversation to be saved",
            )
        for each in servers.values():
            each.kill9()
        # One of them is being brought back, and the other waits for its turn.
        watcher.wait_for(lambda: len(watcher.events(0, EventKind.SERVER_DIED)) == 2, "both deaths")
        watcher.wait_for(lambda: 2 in starts(simulants.records()).values(), "an agent to be started again")
        assert watcher.events(0, EventKind.RESTORED) == []
        watcher.end(number)
    with watching(perdure) as watcher:
        for name, run in before.items():
            after = _in(watcher, f"{name}:0.0")
            assert (after.id, _conversation(after)) == (run.id, _conversation(run))
        watcher.wait_for(lambda: len(watcher.events(0, EventKind.RESTORED)) == 2, "both to be told of")
        assert {each.event.data["exit_code"] for each in watcher.events(0, EventKind.RESTORED)} <= {0, None}
    assert set(starts(simulants.records()).values()) == {2}


def _words(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode(errors="replace").split("\0")
    except OSError:
        return []


def test_several_servers_that_die_at_once_are_all_brought_back(
    perdure: Perdure,
    tmux_server: Callable[[str], TmuxServer],
    simulants: Simulants,
    private_home: PrivateHome,
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    servers = [tmux_server(name) for name in ("one", "two", "three")]
    for each in servers:
        _agent(each, simulants, each.name, "hello")
    with watching(perdure) as watcher:
        before = {each.name: _in(watcher, f"{each.name}:0.0") for each in servers}
        for each in servers:
            watcher.wait_for(
                lambda each=each: _conversation(before[each.name]) in _saved(perdure, "--socket", each.socket),  # type: ignore[misc]
                "the conversation to be saved",
            )
        for each in servers:
            each.kill9()
        watcher.wait_for(
            lambda: [each.event.data["exit_code"] for each in watcher.events(0, EventKind.RESTORED)] == [0, 0, 0],
            "all to be brought back",
        )
        for each in servers:
            after = _in(watcher, f"{each.name}:0.0")
            assert (after.id, _conversation(after)) == (before[each.name].id, _conversation(before[each.name]))


def test_what_its_owner_ended_in_good_order_is_not_brought_back(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    _agent(tmux, simulants, "work", "hello")
    with watching(perdure) as watcher:
        _in(watcher, "work:0.0")
        tmux.run("kill-session", "-t", "work")
        watcher.await_event(EventKind.SERVER_DIED)
        simulants.end_all()
        # A server that comes later is looked at after whatever would have been brought back.
        tmux.run("new-session", "-d", "-s", "new", "-n", "one", _SHELL)
        watcher.await_run("new:0.0")
        assert [run.place.session for run in watcher.runs()] == ["new"]
        assert watcher.events(0, EventKind.RESTORED) == []
