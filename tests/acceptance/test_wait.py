"""`perdure wait` and `perdure seen`, with a daemon and without."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import nullcontext, suppress

import pytest
from msgspec import structs

from perdure.cli import wait
from perdure.daemon.protocol import socket_path
from perdure.errors import Unanswered
from perdure.host.unix_socket import listening
from perdure.model.run import Reason, RunState
from tests.acceptance.kit import only_json, sentence, settle, wait_for
from tests.acceptance.simulants import Simulants
from tests.acceptance.test_events import record
from tests.acceptance.watching import stored_events, stored_runs, watching
from tests.at_rest import Rest
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure, Ran
from tests.tmux_server import TmuxServer
from tests.unit.live.events import a_run, a_status

#: Long enough for anything that does happen.
PATIENCE = "60"


@pytest.fixture
def simulants(private_home: PrivateHome) -> Iterator[Simulants]:
    simulants = Simulants(private_home)
    yield simulants
    simulants.end_all()


#: Starts `perdure wait` with these arguments.
Begin = Callable[..., subprocess.Popen[bytes]]


def _agent(tmux: TmuxServer, simulants: Simulants, name: str, *args: str) -> str:
    """Start an agent in a session of its own, in its shell; return the pane."""
    pane = tmux.run("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", name, "-n", "w", "-x", "100", "-y", "30")
    tmux.run("send-keys", "-t", name, f"{simulants.path} {' '.join(args)}", "Enter")
    wait_for(lambda: b"\xe2\x96\xb8" in tmux.run("capture-pane", "-p", "-t", name), "the agent's prompt")
    return pane.decode().strip()


@pytest.fixture
def begin(perdure: Perdure) -> Iterator[Begin]:
    started: list[subprocess.Popen[bytes]] = []

    def begin(*args: str) -> subprocess.Popen[bytes]:
        command = perdure.argv("wait", *args, "--timeout", PATIENCE)
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[-1]

    yield begin
    for each in started:
        if each.poll() is None:
            each.kill()
            each.communicate()


def _ended(waiting: subprocess.Popen[bytes]) -> Ran:
    out, err = waiting.communicate(timeout=120)
    return Ran(waiting.returncode, out.decode(), err.decode())


def _says_that_nobody_watches(ran: Ran) -> bool:
    return "No daemon is at work; the pane is looked at twice a second." in ran.err


def test_an_agent_is_waited_for_without_a_daemon(
    perdure: Perdure, begin: Begin, tmux: TmuxServer, simulants: Simulants
) -> None:
    pane = _agent(tmux, simulants, "work", "--think", "3")
    at_once = perdure.ok("wait", "work", "--until", "idle", "--json", "--timeout", PATIENCE)
    said = only_json(at_once)
    assert _says_that_nobody_watches(at_once)
    assert (said["state"], said["target"], said["pane"]) == ("idle", "work:0.0", pane)
    # Somebody who began to wait afterwards might come when it is busy no more.
    waiting = begin(pane, "--until", "busy,error")
    wait_for(lambda: _has_begun(waiting), "the beginning")
    tmux.run("send-keys", "-t", "work", "hello", "Enter")
    busy = _ended(waiting)
    assert (busy.code, "busy" in busy.out) == (0, True), busy
    # Nobody has seen it end.
    done = perdure.ok("wait", "work:0", "--until", "idle", "--timeout", PATIENCE)
    assert "work:0.0" in done.out
    tmux.run("send-keys", "-t", "work", "run make", "Enter")
    asks = only_json(perdure.ok("wait", "work", "--until", "permission,question", "--json", "--timeout", PATIENCE))
    assert (asks["state"], asks["reason"]) == ("attention", "permission")


def test_the_time_is_up(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    _agent(tmux, simulants, "work")
    ran = perdure("wait", "work", "--until", "busy", "--timeout", "0.6", "--json")
    assert ran.code == 4
    error = only_json(ran)["error"]
    assert (error["state"], error["target"]) == ("idle", "work:0.0")
    assert "is idle and was not busy in time" in error["message"]


def test_an_agent_that_ends_first_is_no_longer_waited_for(begin: Begin, tmux: TmuxServer, simulants: Simulants) -> None:
    _agent(tmux, simulants, "work")
    waiting = begin("work", "--until", "permission")
    wait_for(lambda: _has_begun(waiting), "the beginning")
    simulants.end_all()
    ran = _ended(waiting)
    assert (ran.code, "has ended" in ran.err) == (1, True), ran


def _has_begun(waiting: subprocess.Popen[bytes]) -> bool:
    """It has said that nobody watches: from then on it looks."""
    assert waiting.stderr is not None
    return b"No daemon" in waiting.stderr.peek(1)  # type: ignore[attr-defined]


def test_a_pane_that_goes_is_over_and_can_be_waited_for(begin: Begin, tmux: TmuxServer) -> None:
    for name in ("stays", "goes"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w", "sh", "-c", "sleep 1000; true")
    settle(tmux)
    busy, exited = (begin("goes", "--until", word) for word in ("idle", "exited"))
    for each in (busy, exited):
        wait_for(lambda each=each: _has_begun(each), "the beginning")  # type: ignore[misc]
    tmux.run("kill-session", "-t", "goes")
    assert _ended(busy).code == 1
    ran = _ended(exited)
    assert (ran.code, "exited" in ran.out) == (0, True), ran


def test_a_shell_is_busy_while_it_runs_something(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    settle(tmux)
    perdure.ok("wait", "work", "--until", "idle", "--timeout", PATIENCE)
    tmux.run("send-keys", "-t", "work", "sleep 1000", "Enter")
    # What is waited for adds up.
    perdure.ok("wait", "work", "--until", "busy", "--until", "permission", "--timeout", PATIENCE)
    tmux.run("send-keys", "-t", "work", "C-c")
    perdure.ok("wait", "work", "--until", "idle", "--timeout", PATIENCE)


def test_what_is_remembered_is_not_taken_for_what_is(perdure: Perdure, tmux: TmuxServer, simulants: Simulants) -> None:
    _agent(tmux, simulants, "work")
    with watching(perdure) as daemon:
        run = daemon.await_state("work:0.0", "idle")
    record([structs.replace(stored_runs()[run.id], status=a_status(RunState.BUSY))], [])
    ran = perdure("wait", run.id, "--until", "busy", "--timeout", "0")
    assert (ran.code, f"{run.id} is idle" in ran.err) == (4, True), ran
    record([structs.replace(stored_runs()[run.id], status=a_status(RunState.ATTENTION, Reason.DONE))], [])
    assert only_json(perdure.ok("wait", "work", "--until", "done", "--timeout", "0", "--json"))["run"] == run.id


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("nowhere", "--until", "idle"), 3),
        (("r7", "--until", "idle"), 3),
        (("work", "--until", "idle"), 2),
        (("work:0.0",), 2),
        (("work:0.0", "--until", "ready"), 2),
        (("work:0.0", "--until", ""), 2),
        (("work:0.0", "--until", "idle", "--timeout", "-1"), 2),
        (("work:0.0", "--until", "idle", "--timeout", "soon"), 2),
    ],
)
@pytest.mark.parametrize("daemon", [False, True])
def test_what_cannot_be_waited_for(
    perdure: Perdure, tmux: TmuxServer, args: tuple[str, ...], code: int, daemon: bool
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    tmux.run("split-window", "-t", "work")
    settle(tmux)
    with watching(perdure) if daemon else nullcontext():
        ran = perdure("wait", *args)
    assert ran.code == code, ran
    sentence(ran)


def test_with_a_daemon_it_is_told(perdure: Perdure, begin: Begin, tmux: TmuxServer, simulants: Simulants) -> None:
    _agent(tmux, simulants, "work", "--think", "3")
    with watching(perdure) as daemon:
        run = daemon.await_state("work:0.0", "idle")
        waiting = [begin(run.id, "--until", word) for word in ("busy", "done")]
        for each in waiting:
            _await_question(each)
        tmux.run("send-keys", "-t", "work", "hello", "Enter")
        for each in waiting:
            ran = _ended(each)
            assert (ran.code, ran.err) == (0, ""), ran
        late = perdure("wait", "work", "--until", "error", "--timeout", "0.3")
        assert (late.code, f"{run.id} is attention(done)" in late.err) == (4, True), late
        seen = only_json(perdure.ok("seen", "work", "--json"))
        assert seen == {"run": run.id, "target": "work:0.0", "seen": True, "state": "idle"}
        assert daemon.run(run.id).status.word == "idle"
        assert "nothing new to see" in perdure.ok("seen", run.id).out
        over = begin(run.id, "--until", "busy")
        _await_question(over)
        simulants.end_all()
        assert _ended(over).code == 1


def test_one_who_waits_goes_on_alone_when_the_daemon_ends(
    perdure: Perdure, begin: Begin, tmux: TmuxServer, simulants: Simulants
) -> None:
    _agent(tmux, simulants, "work", "--think", "3")
    with watching(perdure) as daemon:
        run = daemon.await_state("work:0.0", "idle")
        waiting = begin(run.id, "--until", "busy")
        _await_question(waiting)
    wait_for(lambda: _has_begun(waiting), "the beginning")
    tmux.run("send-keys", "-t", "work", "hello", "Enter")
    ran = _ended(waiting)
    assert (ran.code, f"{run.id} (work:0.0): busy" in ran.out) == (0, True), ran


def test_a_pane_the_daemon_does_not_follow_is_looked_at(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    settle(tmux)
    with watching(perdure) as daemon:
        run = daemon.await_run("work:0.0")
        perdure.ok("kill", "--detach", run.id)
        ran = perdure.ok("wait", "work", "--until", "idle", "--json", "--timeout", PATIENCE)
        # Whose it is the daemon says, or nobody.
        assert (only_json(ran)["run"], only_json(ran)["pane"]) == ("work:0.0", run.pane)
        assert "No daemon follows it; the pane is looked at twice a second." in ran.err
        assert perdure("wait", "work", "--until", "busy", "--timeout", "0").code == 4
        unknown = perdure("seen", "work")
        assert (unknown.code, "does not follow 'work'" in sentence(unknown)) == (3, True), unknown


def test_the_id_of_what_was_let_go_of_means_nobody(
    perdure: Perdure, begin: Begin, tmux: TmuxServer, simulants: Simulants
) -> None:
    _agent(tmux, simulants, "work", "--think", "0.1")
    with watching(perdure) as daemon:
        tmux.run("send-keys", "-t", "work", "hello", "Enter")
        run = daemon.await_state("work:0.0", "attention(done)")
        by_id, by_place = (begin(target, "--until", "permission") for target in (run.id, "work"))
        for each in (by_id, by_place):
            _await_question(each)
        perdure.ok("kill", "--detach", run.id)
        after = daemon.last()
        let_go = _ended(by_id)
        assert (let_go.code, f"`perdure follow {run.id}` does so again" in sentence(let_go)) == (3, True), let_go
        _is_nobody(perdure, run.id)
        assert daemon.last() == after
        # Whoever named the place meant whoever is there.
        wait_for(lambda: _has_begun(by_place), "the beginning")
        tmux.run("send-keys", "-t", "work", "run make", "Enter")
        ran = _ended(by_place)
        assert (ran.code, "work:0.0 (work:0.0): attention(permission)" in ran.out) == (0, True), ran
    _is_nobody(perdure, run.id)
    assert stored_runs()[run.id].status.word == "attention(done)"


def _is_nobody(perdure: Perdure, id: str) -> None:
    """See that whoever waits for a run that was let go of, or has seen it, hears so."""
    waits = [("wait", id, "--until", word, "--timeout", "0") for word in ("idle", "busy", "exited")]
    for words in (*waits, ("seen", id), ("send", id, "hello")):
        ran = perdure(*words)
        assert ran.code == 3, ran
        assert f"{id} is not followed any more" in sentence(ran)
        assert f"`perdure follow {id}` does so again" in ran.err


@pytest.mark.parametrize("ends", ["kill-session", "kill-server"])
@pytest.mark.parametrize("let_go", [False, True])
def test_a_run_whose_pane_is_gone_has_ended_whatever_it_was(
    perdure: Perdure, tmux: TmuxServer, let_go: bool, ends: str
) -> None:
    for name in ("work", "other"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w")
    settle(tmux)
    with watching(perdure) as daemon:
        run = daemon.await_state("work:0.0", "idle")
        if let_go:
            perdure.ok("kill", "--detach", run.id)
        tmux.run(ends, *(("-t", "work") if ends == "kill-session" else ()))
        daemon.wait_for(lambda: stored_runs()[run.id].status.word == "exited", "the end")
        _has_ended(perdure, run.id)
    _has_ended(perdure, run.id)


def test_without_a_daemon_a_pane_that_is_gone_has_ended_too(perdure: Perdure, tmux: TmuxServer) -> None:
    for name in ("work", "other"):
        tmux.run("new-session", "-d", "-s", name, "-n", "w")
    settle(tmux)
    with watching(perdure) as daemon:
        run = daemon.await_state("work:0.0", "idle")
    tmux.run("kill-session", "-t", "work")
    _is_waited_for_in_vain(perdure, run.id)


def _has_ended(perdure: Perdure, id: str) -> None:
    """See that whoever waits for a run whose pane is gone, or has seen it, hears so."""
    _is_waited_for_in_vain(perdure, id)
    ran = perdure("seen", id)
    assert (ran.code, f"The pane of {id} is gone" in sentence(ran)) == (3, True), ran


def _is_waited_for_in_vain(perdure: Perdure, id: str) -> None:
    for word in ("idle", "busy"):
        ran = perdure("wait", id, "--until", word, "--timeout", "0")
        assert (ran.code, f"{id} has ended and was not {word}" in sentence(ran)) == (1, True), ran
    assert perdure.ok("wait", id, "--until", "exited", "--timeout", "0").out == f"{id} (work:0.0): exited\n"


def test_one_who_looks_is_told_as_soon_as_the_daemon_follows(perdure: Perdure, begin: Begin, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "w")
    settle(tmux)
    with watching(perdure) as daemon:
        run = daemon.await_run("work:0.0")
        perdure.ok("kill", "--detach", run.id)
        waiting = begin("work", "--until", "busy")
        wait_for(lambda: _has_begun(waiting), "the beginning")
        perdure.ok("follow", run.id)
        tmux.run("send-keys", "-t", "work", "sleep 1000", "Enter")
        ran = _ended(waiting)
        assert (ran.code, ran.out) == (0, f"{run.id} (work:0.0): busy\n"), ran


def test_who_is_in_the_place_of_a_fallen_agent_is_waited_for(
    perdure: Perdure, tmux: TmuxServer, simulants: Simulants
) -> None:
    perdure.ok("new", "fix", "--agent", "simulant", "--prompt", "hello you")
    with watching(perdure) as daemon:
        run = daemon.await_run("fix:0.0", lambda run: run.identity is not None, "with its agent")
        os.kill(tmux.pid, signal.SIGKILL)
        daemon.await_gone(run.id)
        simulants.end_all()
        # It says nothing of its conversation yet, and nobody knows for a while whether it goes on with that of before.
        slow = ("--agent", "simulant", "--timeout", "0", "--", "simulant", "--boot", "2")
        assert perdure("new", "fix", *slow).code == 4
        ran = perdure.ok("wait", "fix", "--until", "idle", "--timeout", PATIENCE, "--json")
        assert only_json(ran)["run"] != run.id
        assert perdure.ok("seen", "fix", "--json").json["run"] != run.id


def test_a_daemon_that_does_not_answer_is_not_waited_for_longer_than_asked_for(
    private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wait, "_GRACE", 0.2)
    asked = argparse.Namespace(target="work", until=["idle"], timeout=0.1, socket=None, all_users=False, json=False)
    # It lets everybody in, and says nothing: it was stopped, or has very much to do.
    with listening(socket_path(private_home.state), "daemon"), pytest.raises(Unanswered, match=r"within 0\.3 s"):
        wait.run(asked)


def _await_question(waiting: subprocess.Popen[bytes]) -> None:
    """Wait until the daemon has been asked: somebody is connected to it, and has nothing left to do."""
    is_waiting = Rest(lambda: [waiting.pid])
    wait_for(lambda: is_waiting() and _is_connected(waiting.pid), "the question")


def _is_connected(pid: int) -> bool:
    folder = f"/proc/{pid}/fd"
    with suppress(FileNotFoundError):
        return any(os.readlink(f"{folder}/{name}").startswith("socket:") for name in os.listdir(folder))
    return False


def test_without_a_daemon_what_was_seen_is_written_down(perdure: Perdure) -> None:
    host = os.uname().nodename
    done, other = a_run("r7", status=a_status(RunState.ATTENTION, Reason.DONE)), a_run("r8", session="other")
    server = structs.replace(done.server, host=host)
    record([structs.replace(each, server=server) for each in (done, other)], [])
    said = only_json(perdure.ok("seen", "work", "--json"))
    assert said == {"run": "r7", "target": "work:0.0", "seen": True, "state": "idle"}
    assert stored_runs()["r7"].status.word == "idle"
    assert stored_runs()["r7"].seen_at is not None
    kinds = [each.event.kind.value for each in stored_events()]
    assert kinds == ["seen", "state_changed"]
    assert "nothing new to see" in perdure.ok("seen", "r7").out
    assert "nothing new to see" in perdure.ok("seen", "other:0.0").out
    assert len(stored_events()) == 2
    missing = perdure("seen", "r9")
    assert missing.code == 3
    sentence(missing)
