"""Why a server gives no capture: each reason is its own, and none is ever a capture of nothing."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime

import msgspec
import pytest

from perdure.errors import TmuxMissing
from perdure.host.clock import now
from perdure.host.users import current_user, user_by_uid
from perdure.model.config import Config, TmuxConfig
from perdure.model.snapshot import Miss, Missed
from perdure.model.user import User
from perdure.ports import HostView
from perdure.snapshots.ask import Question, ask
from perdure.snapshots.capture import Memory, Reading, receive, revisit
from perdure.snapshots.look import Looked, look
from tests.integration.hired import children_of
from tests.integration.looking import kill_and_wait, look_at, miss, see, surroundings, wait_until
from tests.tmux_server import PATIENCE, TmuxServer

IMPATIENT = Config(tmux=TmuxConfig(timeout_seconds=0.5))
#: Long enough for a server that answers, on a machine that has much else to do.
PATIENT = Config(tmux=TmuxConfig(timeout_seconds=4))


def test_nothing_at_the_socket(tmux: TmuxServer) -> None:
    missed = miss(tmux)
    assert missed.reason is Miss.NO_SERVER
    assert tmux.socket in missed.message
    assert not os.path.exists(tmux.socket)


def test_a_socket_left_behind(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    tmux.kill9()
    missed = miss(tmux, scrollback=True)
    assert missed.reason is Miss.NO_SERVER
    assert not tmux.alive, "looking must not start a server"


def test_a_file_that_is_no_socket(tmux: TmuxServer) -> None:
    os.makedirs(os.path.dirname(tmux.socket), mode=0o700)
    with open(tmux.socket, "w", encoding="utf-8"):
        pass
    assert miss(tmux).reason is Miss.NO_SERVER


def test_a_server_without_a_session(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", ";", "set-option", "-s", "exit-empty", "off", ";", "kill-session")
    wait_until(lambda: tmux.run("list-sessions") == b"", "the last session is gone")
    missed = miss(tmux, scrollback=True)
    assert missed.reason is Miss.EMPTY
    assert tmux.alive


def test_a_hung_server_costs_its_own_timeout_and_nobody_elses_capture(
    tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]
) -> None:
    other = tmux_server("other")
    for server in (tmux, other):
        server.run("new-session", "-d", "-s", "a", "sleep 1000")
    pid = tmux.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        hung, whole = look_at(tmux, other, config=PATIENT, scrollback=True)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert isinstance(hung, Missed)
    assert hung.reason is Miss.UNREACHABLE
    assert "in time" in hung.message
    assert isinstance(whole, Looked)
    assert see(tmux).session("a").name == "a"


def test_a_server_that_hangs_between_the_two_questions(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    reading = the_reading(tmux)
    pid = tmux.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        (missed,) = revisit([(reading, ["%0"])], lines=10, timeout=0.3)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert isinstance(missed, Missed)
    assert missed.reason is Miss.INCOMPLETE


def the_reading(tmux: TmuxServer) -> Reading:
    questions = [ask(tmux.socket, current_user(), timeout=PATIENCE)]
    (reading,) = receive(questions, host="here", now=now(), timeout=PATIENCE)
    assert isinstance(reading, Reading), reading
    return reading


def test_a_server_that_ends_between_the_two_questions(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    reading = the_reading(tmux)
    tmux.kill()
    (missed,) = revisit([(reading, ["%0"])], lines=10, timeout=PATIENCE)
    assert isinstance(missed, Missed)
    assert missed.reason is Miss.INCOMPLETE


def test_another_server_in_its_place(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    reading = the_reading(tmux)
    tmux.kill()
    tmux.run("new-session", "-d", "-s", "b", "sleep 1000")
    (missed,) = revisit([(reading, ["%0"])], lines=10, timeout=PATIENCE)
    assert isinstance(missed, Missed)
    assert missed.reason is Miss.INCOMPLETE
    assert "replaced" in missed.message


@pytest.mark.parametrize("scrollback", [False, True])
def test_a_server_killed_while_its_panes_are_identified(tmux: TmuxServer, scrollback: bool) -> None:
    """Its agents are losing their terminals while they are looked at: what is found now may not be believed."""
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    pid = tmux.pid
    around = surroundings()

    def kill_first(user: User) -> HostView:
        kill_and_wait(pid)
        return around.view_of(user)

    questions = [ask(tmux.socket, current_user(), timeout=PATIENCE)]
    (missed,) = look(questions, msgspec.structs.replace(around, view_of=kill_first), now(), scrollback=scrollback)
    assert isinstance(missed, Missed)
    assert missed.reason is Miss.INCOMPLETE


def test_a_server_killed_before_its_panes_are_identified(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its answer is whole; nothing but the process table, read before, can tell that it was there at all."""
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    pid = tmux.pid

    def receive_and_kill(
        questions: Sequence[Question], *, host: str, now: datetime, timeout: float, memory: Memory | None
    ) -> list[Reading | Missed]:
        received = receive(questions, host=host, now=now, timeout=timeout, memory=memory)
        kill_and_wait(pid)
        return received

    monkeypatch.setattr("perdure.snapshots.look.receive", receive_and_kill)
    (missed,) = look([ask(tmux.socket, current_user(), timeout=PATIENCE)], surroundings(), now())
    assert isinstance(missed, Missed)
    assert missed.reason is Miss.INCOMPLETE


class Impostor:
    """Something that listens where a tmux server should."""

    def __init__(self, path: str, reply: bytes) -> None:
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(path)
        self._listening.listen()
        self._reply = reply
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            # Whoever asked may have lost patience meanwhile.
            with connection, suppress(OSError):
                connection.sendall(self._reply)

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def impostor(tmux: TmuxServer) -> Iterator[Callable[[bytes], None]]:
    made = []
    yield lambda reply: made.append(Impostor(tmux.socket, reply))
    for each in made:
        each.close()


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", bytes(100)])
def test_something_else_listens_there(tmux: TmuxServer, impostor: Callable[[bytes], None], reply: bytes) -> None:
    impostor(reply)
    missed = miss(tmux, config=IMPATIENT)
    assert missed.reason is Miss.UNREACHABLE


def test_somebody_elses_socket_is_not_touched(tmux: TmuxServer) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a socket away")
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    os.chown(tmux.socket, 4242, 4242)
    try:
        question = ask(tmux.socket, current_user())
        assert question.client is None
        missed = miss(tmux)
    finally:
        os.chown(tmux.socket, 0, 0)
    assert missed.reason is Miss.REFUSED
    assert "4242" in missed.message


def test_root_looks_at_another_users_server_as_that_user(tmux: TmuxServer) -> None:
    nobody = user_by_uid(65534)
    if os.getuid() != 0 or nobody is None:
        pytest.skip("only root can be somebody else")
    directory = os.path.join(os.environ["TMUX_TMPDIR"], "n")
    os.mkdir(directory, 0o700)
    os.chown(directory, nobody.uid, nobody.gid)
    for path in (os.path.dirname(directory), os.path.dirname(os.path.dirname(directory))):
        os.chmod(path, 0o755)
    path = os.path.join(directory, "s")
    start = ["tmux", "-f", "/dev/null", "-S", path, "new-session", "-d", "-s", "theirs", "exec sleep 1000"]
    subprocess.run(start, user=nobody.uid, group=nobody.gid, extra_groups=[], check=True, cwd="/")

    def looked_at() -> Looked:
        question = ask(path, nobody, timeout=PATIENCE)
        (looked,) = look([question], surroundings(), now(), scrollback=True)
        assert isinstance(looked, Looked), looked
        return looked

    def runs() -> bool:
        return looked_at().capture.details.panes["%0"].processes[0].argv == ("sleep", "1000")

    try:
        wait_until(runs, "the program runs, and is seen")
        looked = looked_at()
        assert looked.capture.server.uid == nobody.uid
        assert looked.capture.server.user == nobody.name
        assert looked.capture.topology.sessions[0].name == "theirs"
    finally:
        subprocess.run(["tmux", "-S", path, "kill-server"], check=False)


def test_a_directory_nobody_may_enter(tmux: TmuxServer) -> None:
    long = TmuxServer("x" * 200)
    assert miss(long).reason is Miss.NO_SERVER
    question = ask("/tmp/" + "x" * 5000, current_user())
    (missed,) = receive([question], host="here", now=now(), timeout=1)
    assert isinstance(missed, Missed)
    assert missed.reason is Miss.UNREACHABLE


def test_no_tmux_at_all(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    tmux.run("new-session", "-d")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(TmuxMissing, match="PATH"):
        ask(tmux.socket, current_user())


def as_tmux(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a program in tmux's place that answers as another version would."""
    directory = os.path.join(os.environ["HOME"], "bin")
    os.mkdir(directory)
    with open(os.path.join(directory, "tmux"), "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(os.path.join(directory, "tmux"), 0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


#: The mark is the first word of the first message.
_MARK = 'mark=$(printf "%s\\n" "$@" | sed -n "s/ begin .*//p")'


def test_a_server_that_says_nothing_wrong_and_has_nothing(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other versions list nothing without complaining. That is no capture either."""
    tmux.run("new-session", "-d")
    as_tmux(monkeypatch, f'{_MARK}\necho "$mark begin 1 1 9.9"; echo "$mark end 1 1 9.9"')
    assert miss(tmux).reason is Miss.EMPTY


def test_a_tmux_that_is_too_old(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    tmux.run("new-session", "-d")
    as_tmux(monkeypatch, "echo 'usage: run-shell [-b] [-t target-pane] command' >&2; exit 1")
    missed = miss(tmux)
    assert missed.reason is Miss.UNREACHABLE
    assert "3.2" in missed.message


def test_an_answer_that_never_holds_together_is_asked_for_again_and_then_incomplete(
    tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux.run("new-session", "-d")
    log = os.path.join(os.environ["HOME"], "log")
    as_tmux(monkeypatch, f'{_MARK}\necho asked >>{log}\necho "$mark begin 1 1 9.9"; echo nonsense')
    assert miss(tmux).reason is Miss.INCOMPLETE
    with open(log, encoding="utf-8") as file:
        assert file.read().count("asked") == 3


def test_nobody_is_left_waiting(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many clients as are started are waited for, also when every answer is bad."""
    tmux.run("new-session", "-d")
    as_tmux(monkeypatch, f'{_MARK}\necho "$mark begin 1 1 9.9"')
    before = children_of(os.getpid())
    miss(tmux)
    assert children_of(os.getpid()) == before
