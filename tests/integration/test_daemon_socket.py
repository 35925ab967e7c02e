"""The daemon's socket as its clients find it: several at once, slow, rude, killed, and somebody else's."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator

import pytest

from perdure.daemon.call import call, daemon_there, stream
from perdure.daemon.listen import Limits
from perdure.daemon.protocol import AskRun, AskStatus, Detach, Events, Line, Reload, Save, encode_line
from perdure.errors import NoDaemon, PerdureError, Refused, RunNotFound, Unanswered
from perdure.host.unix_socket import connected, peer_uid
from perdure.model.event import EventKind, Lagged, StoredEvent
from tests.conftest import PrivateHome
from tests.integration.serving import Raw, Served, wait_for
from tests.unit.live.events import an_event

ME = os.geteuid()
NOBODY = 65534
as_root = pytest.mark.skipif(ME != 0, reason="only root can be somebody else")


@pytest.fixture
def served(private_home: PrivateHome) -> Iterator[Served]:
    with Served(private_home.state) as served:
        yield served


def _mine(number: int, kind: EventKind = EventKind.TITLE_CHANGED, run: str = "r1") -> StoredEvent:
    return an_event(number, kind, uid=ME, run=run)


def test_a_request_is_answered_and_an_error_arrives_as_what_it_was(served: Served) -> None:
    assert daemon_there(served.state_dir)
    assert call(served.state_dir, AskStatus(id=3), 20) == {"pid": os.getpid()}
    with pytest.raises(RunNotFound) as raised:
        call(served.state_dir, AskRun(run="r9"), 20)
    assert raised.value.message == "There is no run 'r9'."
    assert raised.value.data["run"] == "r9"
    with pytest.raises(Refused, match="Not this one"):
        call(served.state_dir, Detach(run="r1"), 20)
    assert served.asked[0] == (AskStatus(id=3), ME)


def test_an_answer_that_is_too_long_is_an_error(served: Served) -> None:
    with pytest.raises(PerdureError, match="no line is longer"):
        call(served.state_dir, Save(), 20)


def test_without_a_daemon_there_is_none(private_home: PrivateHome) -> None:
    assert not daemon_there(private_home.state)
    with pytest.raises(NoDaemon):
        call(private_home.state, AskStatus(), 20)
    with pytest.raises(NoDaemon):
        next(stream(private_home.state, Events(follow=True)))


def test_a_socket_that_somebody_removes_is_there_again(private_home: PrivateHome) -> None:
    with Served(private_home.state, limits=Limits(removal=0.05)) as served:
        os.unlink(served.path)
        wait_for(lambda: daemon_there(served.state_dir), "the socket")
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}
        assert stat.S_IMODE(os.stat(served.path).st_mode) == 0o600
    assert not os.path.exists(served.path)


def test_a_state_directory_that_somebody_removes_is_there_again_for_who_has_the_lease(
    private_home: PrivateHome,
) -> None:
    with Served(private_home.state, limits=Limits(removal=0.05)) as served:
        shutil.rmtree(served.state_dir)
        wait_for(lambda: daemon_there(served.state_dir), "the socket")
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}
        assert stat.S_IMODE(os.stat(served.state_dir).st_mode) == 0o700
        with Served(served.state_dir) as second:
            wait_for(lambda: second.error is not None, "the refusal")
        assert isinstance(second.error, Refused)
        # The lock alone, too: without it another would take this place, and what else was put back leads nowhere.
        os.unlink(served.path)
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(served.path)
        os.unlink(f"{served.path}.lock")
        wait_for(lambda: daemon_there(served.state_dir), "the socket")
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}
    assert os.listdir(private_home.state) == ["daemon.sock.lock"]


def test_where_another_has_begun_nothing_is_put_back_and_nothing_of_it_removed(private_home: PrivateHome) -> None:
    with Served(private_home.state, limits=Limits(removal=0.05)) as served:
        served.has_lease = False
        shutil.rmtree(served.state_dir)
        wait_for(lambda: served.asked_for_lease > 1, "the question whose place it is")
        assert not os.path.exists(served.state_dir)
        with Served(private_home.state) as second:
            served.has_lease = True
            asked = served.asked_for_lease
            wait_for(lambda: served.asked_for_lease > asked + 1, "the question whose place it is")
            there = os.stat(second.path).st_ino
            served.stop()
            assert os.stat(second.path).st_ino == there
            assert call(second.state_dir, AskStatus(), 20) == {"pid": os.getpid()}


def test_what_is_in_the_place_of_the_socket_is_said_once_and_goes(
    private_home: PrivateHome, caplog: pytest.LogCaptureFixture
) -> None:
    with Served(private_home.state, limits=Limits(removal=0.01)) as served:
        os.unlink(served.path)
        os.mkdir(served.path)
        wait_for(lambda: "Is a directory" in caplog.text, "the sentence")
        os.unlink(f"{served.path}.lock")
        asked = served.asked_for_lease
        wait_for(lambda: served.asked_for_lease > asked, "the next try")
        assert caplog.text.count("nobody can ask any more") == 1
        os.rmdir(served.path)
        wait_for(lambda: "is answered again" in caplog.text, "the end of it")
        assert daemon_there(served.state_dir)
        os.unlink(served.path)
        with open(served.path, "w"):
            pass
        wait_for(lambda: daemon_there(served.state_dir), "the socket")
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}
    assert os.listdir(private_home.state) == ["daemon.sock.lock"]


def test_an_answer_that_does_not_come_is_not_waited_for_longer_than_asked(served: Served) -> None:
    with pytest.raises(Unanswered):
        call(served.state_dir, Reload(), 0.1)
    wait_for(lambda: served.cancelled == 1, "the request nobody waits for")


def test_what_is_no_request_is_answered_and_the_next_one_is_too(served: Served) -> None:
    with Raw(served.path) as client:
        bad = [b"{", b"\xff\xfe", b"[]", b'{"do":"dance","id":5}', b'{"do":"run","id":6}', b'{"do":"status","more":1}']
        bad += [b'{"do":"events","after":-1,"id":7}', b'{"do":"wait","run":"r1","until":[],"id":8}', b"null"]
        client.send(b"", *bad)
        said = []
        for _ in bad:
            line = client.line()
            assert line is not None
            assert (line["error"]["code"], line["error"]["exit_code"]) == ("usage_error", 2)
            assert "Traceback" not in line["error"]["message"]
            said.append(line.get("id"))
        assert {5, 6, 7, 8} <= set(said)
        client.send(b'{"do":"status","id":9}')
        assert client.line() == {"id": 9, "ok": {"pid": os.getpid()}}


def test_a_line_without_end_is_cut_off(served: Served) -> None:
    with Raw(served.path) as client:
        try:
            for _ in range(20):
                client.socket.sendall(b"x" * (1 << 20))
        except ConnectionError:
            pass
        line = client.line()
        assert line is not None
        assert "longer than" in line["error"]["message"]
        assert client.line() is None
    assert daemon_there(served.state_dir)


def test_one_who_says_that_nothing_more_comes_still_gets_the_answer(served: Served) -> None:
    with Raw(served.path) as client:
        client.socket.sendall(b'{"do":"status","id":1}')
        client.socket.shutdown(socket.SHUT_WR)
        assert client.line() == {"id": 1, "ok": {"pid": os.getpid()}}
        assert client.line() is None


def test_answers_overtake_each_other_and_too_many_at_once_are_refused(private_home: PrivateHome) -> None:
    with Served(private_home.state, limits=Limits(requests=3)) as served, Raw(served.path) as client:
        client.send(b'{"do":"reload","id":1}', b'{"do":"status","id":2}')
        assert client.line() == {"id": 2, "ok": {"pid": os.getpid()}}
        client.send(b'{"do":"reload","id":3}', b'{"do":"reload","id":4}', b'{"do":"reload","id":5}')
        line = client.line()
        assert line is not None
        assert (line["id"], line["error"]["code"]) == (5, "refused")


def test_several_follow_from_where_each_wants(served: Served) -> None:
    served.publish(*(_mine(number) for number in range(1, 1201)))
    followers = [stream(served.state_dir, Events(after=after, follow=True)) for after in (0, 600, 1200)]
    firsts = [next(followers[0]), next(followers[1])]
    served.publish(*(_mine(number) for number in range(1201, 1211)))
    for after, first, follower in zip((0, 600, 1200), [*firsts, None], followers, strict=True):
        got = [first] if first else []
        while not got or got[-1] != _mine(1210):
            got.append(next(follower))
        assert got == [_mine(number) for number in range(after + 1, 1211)]
        follower.close()
    wait_for(lambda: len(served.feed) == 0, "the followers to be forgotten")


def test_only_what_was_asked_for_comes(served: Served) -> None:
    kinds = [EventKind.SAVED, EventKind.STATE_CHANGED]
    served.publish(*(_mine(number, kinds[number % 2], run=f"r{number % 3}") for number in range(1, 13)))
    asked = Events(after=2, follow=True, run="r1", kinds=(EventKind.STATE_CHANGED,))
    follower = stream(served.state_dir, asked)
    assert next(follower) == _mine(7, EventKind.STATE_CHANGED)
    served.publish(*(_mine(number, kinds[number % 2], run=f"r{number % 3}") for number in range(13, 20)))
    assert [next(follower), next(follower)] == [_mine(number, EventKind.STATE_CHANGED) for number in (13, 19)]
    follower.close()


def test_a_page_says_how_far_it_goes(served: Served) -> None:
    served.publish(*(_mine(number) for number in range(1, 6)))
    page = call(served.state_dir, Events(after=1, limit=3), 20)
    assert isinstance(page, dict)
    assert ([each["seq"] for each in page["events"]], page["after"], page["more"]) == ([2, 3, 4], 4, True)
    assert call(served.state_dir, Events(after=5), 20) == {"events": [], "after": 5, "more": False}


def _large(number: int) -> StoredEvent:
    event = _mine(number)
    data = {"title": "x" * 20_000}
    return StoredEvent(
        seq=number,
        event=type(event.event)(
            kind=event.event.kind, at=event.event.at, run="r1", server=event.event.server, data=data
        ),
    )


def test_a_slow_reader_is_dropped_with_a_mark_and_misses_nothing_in_the_end(private_home: PrivateHome) -> None:
    # It is dropped for what waits for it, not for the time that all this takes.
    limits = Limits(patience=600)
    with Served(private_home.state, most=20, limits=limits) as served, Raw(served.path) as slow:
        slow.send(b'{"do":"events","follow":true,"id":1}')
        wait_for(lambda: len(served.feed) == 1, "the follower")
        # By one who keeps pace it is seen that nobody waits for the other.
        quick = stream(served.state_dir, Events(follow=True))
        for number in range(1, 301):
            served.publish(_large(number))
            item = next(quick)
            assert isinstance(item, StoredEvent)
            assert item.seq == number
        quick.close()
        wait_for(lambda: len(served.feed) == 0, "the slow one to be dropped")
        got, line = [], slow.line()
        while line is not None and "event" in line:
            got.append(line["event"]["seq"])
            line = slow.line()
        assert line == {"id": 1, "lagged": {"after": got[-1]}}
        assert slow.line() is None
        rest = stream(served.state_dir, Events(after=got[-1], follow=True))
        while got[-1] < 300:
            item = next(rest)
            assert isinstance(item, StoredEvent)
            got.append(item.seq)
        rest.close()
        assert got == list(range(1, 301))


def test_a_mark_reaches_the_client_as_one(private_home: PrivateHome) -> None:
    with Served(private_home.state, most=1) as served:
        follower = stream(served.state_dir, Events(follow=True))
        served.publish(_mine(1))
        numbers, published = [0], 1
        for item in follower:
            if isinstance(item, Lagged):
                assert item.after == numbers[-1]
                break
            numbers.append(item.seq)
            if item.seq == published:
                # Once it has caught up, more at once than may wait for it.
                served.publish(*(_large(published + number) for number in range(1, 4)))
                published += 3
        assert numbers == list(range(len(numbers)))
        assert list(follower) == []


def test_one_who_never_reads_is_dropped_for_good(private_home: PrivateHome) -> None:
    with Served(private_home.state, limits=Limits(patience=0.2)) as served, Raw(served.path) as stuck:
        served.publish(*(_large(number) for number in range(1, 200)))
        stuck.send(b'{"do":"events","follow":true}')
        wait_for(lambda: _is_closed(stuck.socket), "the end of the connection")
        wait_for(lambda: len(served.feed) == 0, "it to be forgotten")


def _is_closed(connection: socket.socket) -> bool:
    try:
        connection.send(b"\n", socket.MSG_NOSIGNAL)
    except OSError:
        return True
    return False


CLIENT = """
import sys
from perdure.daemon.call import call, stream
from perdure.daemon.protocol import Events, Reload
print("up", flush=True)
if sys.argv[2] == "follow":
    for each in stream(sys.argv[1], Events(follow=True)):
        pass
else:
    call(sys.argv[1], Reload(), None)
"""


def test_clients_that_are_killed_leave_nothing_behind(served: Served) -> None:
    children = [
        subprocess.Popen([sys.executable, "-c", CLIENT, served.state_dir, how], stdout=subprocess.PIPE)
        for how in ("follow", "wait", "follow")
    ]
    try:
        wait_for(lambda: len(served.feed) == 2 and len(served.asked) == 1, "the clients")
    finally:
        for child in children:
            child.send_signal(signal.SIGKILL)
            child.communicate()
    wait_for(lambda: len(served.feed) == 0 and served.cancelled == 1, "the clients to be forgotten")
    assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}


def test_only_so_many_may_connect_and_room_is_made_when_one_leaves(private_home: PrivateHome) -> None:
    with Served(private_home.state, limits=Limits(connections=3)) as served:
        guests = [Raw(served.path) for _ in range(3)]
        for guest in guests:
            guest.send(b'{"do":"status"}')
            assert guest.line()
        with pytest.raises(Refused, match="connected already"):
            call(served.state_dir, AskStatus(), 20)
        guests.pop().__exit__()

        def is_let_in() -> bool:
            try:
                return bool(call(served.state_dir, AskStatus(), 20))
            except Refused:
                return False

        wait_for(is_let_in, "room")
        for guest in guests:
            guest.__exit__()


def test_the_end_lets_followers_read_the_rest(private_home: PrivateHome) -> None:
    served = Served(private_home.state)
    with served:
        follower = stream(served.state_dir, Events(follow=True))
        served.publish(_mine(1))
        assert next(follower) == _mine(1)
        served.publish(_mine(2, EventKind.DAEMON_STOPPED))
        served.stop()
        assert next(follower) == _mine(2, EventKind.DAEMON_STOPPED)
        with pytest.raises(NoDaemon):
            next(follower)
    assert served.error is None
    assert os.listdir(private_home.state) == ["daemon.sock.lock"]


def test_a_request_that_is_open_at_the_end_is_told_so(served: Served) -> None:
    with Raw(served.path) as client:
        client.send(b'{"do":"reload"}')
        wait_for(lambda: served.asked, "the request")
        served.stop()
        assert client.line() is None


def test_the_socket_is_ours_alone(served: Served) -> None:
    found = os.stat(served.path)
    assert stat.S_ISSOCK(found.st_mode)
    assert (stat.S_IMODE(found.st_mode), found.st_uid) == (0o600, ME)
    assert stat.S_IMODE(os.stat(served.state_dir).st_mode) == 0o700
    with connected(served.path, timeout=20) as connection:
        assert peer_uid(connection) == ME


def test_a_second_daemon_is_refused_and_the_first_goes_on(served: Served) -> None:
    second = Served(served.state_dir)
    with second:
        wait_for(lambda: second.error is not None, "the refusal")
    assert isinstance(second.error, Refused)
    assert f"pid {os.getpid()}" in second.error.message
    assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}


ORPHAN = """
import asyncio, sys
from perdure.daemon.listen import serve
from perdure.live.feed import Feed
async def nothing(*_): return ()
asyncio.run(serve(sys.argv[1], nothing, Feed(), read=nothing, has_lease=nothing, ready=lambda: print("up", flush=True)))
"""


def test_what_a_killed_daemon_left_is_replaced(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.state, "daemon.sock")
    child = subprocess.Popen([sys.executable, "-c", ORPHAN, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"up\n"
    assert daemon_there(private_home.state)
    child.kill()
    child.communicate()
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert not daemon_there(private_home.state)
    with pytest.raises(NoDaemon):
        call(private_home.state, AskStatus(), 20)
    with Served(private_home.state) as served:
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="elsewhere such a path is refused")
def test_a_path_that_is_too_long_for_a_socket_is_none_for_us(private_home: PrivateHome) -> None:
    with Served(os.path.join(private_home.root, *["a-long-name"] * 15)) as served:
        assert served.error is None
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}


def _as_nobody(program: str, *args: str) -> subprocess.CompletedProcess[str]:
    """Run a program of the standard library as an account that owns nothing."""
    return subprocess.run(
        ["/usr/bin/env", "python3", "-c", program, *args],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


ASK = """
import socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
try:
    connection.sendall(sys.argv[2].encode() + b"\\n")
except ConnectionError:
    pass
print(connection.makefile().readline(), end="")
"""


def _opened(served: Served, home: PrivateHome) -> None:
    """Let everybody get as far as the socket: what is shown then is not up to the file."""
    for path in (home.root, home.state):
        os.chmod(path, 0o711)
    os.chmod(served.path, 0o666)


@as_root
def test_somebody_else_cannot_even_reach_the_socket(served: Served, private_home: PrivateHome) -> None:
    os.chmod(private_home.root, 0o711)
    os.chmod(private_home.state, 0o711)
    assert "PermissionError" in _as_nobody(ASK, served.path, '{"do":"status"}').stderr


@as_root
def test_somebody_else_is_not_let_in(private_home: PrivateHome) -> None:
    with Served(private_home.state, me=1000) as served:
        _opened(served, private_home)
        ran = _as_nobody(ASK, served.path, '{"do":"status"}')
        assert '"code":"refused"' in ran.stdout, ran
        assert served.asked == []
        # Root is, whoever's daemon it is.
        assert call(served.state_dir, AskStatus(), 20) == {"pid": os.getpid()}


@as_root
def test_of_roots_daemon_everybody_sees_what_is_theirs(served: Served, private_home: PrivateHome) -> None:
    _opened(served, private_home)
    served.publish(_mine(1), an_event(2, uid=NOBODY), an_event(3, uid=6553), an_event(4, uid=NOBODY))
    assert f'"pid":{os.getpid()}' in _as_nobody(ASK, served.path, '{"do":"status"}').stdout
    assert served.asked == [(AskStatus(), NOBODY)]
    page = _as_nobody(ASK, served.path, '{"do":"events"}').stdout
    theirs = {"events": [an_event(2, uid=NOBODY), an_event(4, uid=NOBODY)], "after": 4, "more": True}
    assert page.encode() == encode_line(Line(id=0, ok=theirs))
    follows = _as_nobody(ASK, served.path, '{"do":"events","follow":true}').stdout
    assert follows.encode() == encode_line(Line(id=0, event=an_event(2, uid=NOBODY)))


TRAP = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
listener.listen()
os.chmod(sys.argv[1], 0o666)
print("up", flush=True)
connection, _ = listener.accept()
print(connection.recv(100), flush=True)
"""


@as_root
def test_somebody_elses_socket_is_not_spoken_to(private_home: PrivateHome) -> None:
    os.chmod(private_home.root, 0o711)
    os.mkdir(private_home.state, 0o700)
    os.chown(private_home.state, NOBODY, NOBODY)
    trap = subprocess.Popen(
        ["/usr/bin/env", "python3", "-c", TRAP, os.path.join(private_home.state, "daemon.sock")],
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
        stdout=subprocess.PIPE,
    )
    try:
        assert trap.stdout is not None
        assert trap.stdout.readline() == b"up\n"
        with pytest.raises(Refused, match=f"user {NOBODY}"):
            call(private_home.state, AskStatus(), 20)
        assert trap.stdout.readline() == b"b''\n"
        assert not daemon_there(private_home.state)
    finally:
        trap.kill()
        trap.communicate()
