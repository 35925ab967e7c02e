from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable

import pytest

from tests.conftest import PrivateHome
from tests.leftovers import servers_left, servers_of
from tests.tmux_server import TmuxFailed, TmuxServer, dispose_all
from tests.waiting import wait_for


def test_nothing_of_the_real_user_is_visible(private_home: PrivateHome) -> None:
    assert os.environ["HOME"] == private_home.home
    assert os.environ["TMUX_TMPDIR"] == private_home.sockets
    assert not [name for name in os.environ if name.startswith(("XDG_", "TMUX_PANE"))]
    assert "TMUX" not in os.environ


def test_servers_by_name_are_apart(tmux: TmuxServer, tmux_server: Callable[[str], TmuxServer]) -> None:
    other = tmux_server("other")
    tmux.run("new-session", "-d", "-s", "one")
    other.run("new-session", "-d", "-s", "two")
    assert tmux.run("list-sessions", "-F", "#{session_name}") == b"one\n"
    assert other.run("list-sessions", "-F", "#{session_name}") == b"two\n"
    assert tmux.pid != other.pid
    assert len(other.socket.encode()) < 100
    assert tmux.show("#{socket_path}") == tmux.socket


def test_a_refusal_fails_the_test_unless_asked_otherwise(tmux: TmuxServer) -> None:
    with pytest.raises(TmuxFailed, match="list-sessions"):
        tmux.run("list-sessions")
    assert tmux.run("list-sessions", check=False) == b""


def test_kill_takes_the_socket_along_and_kill9_leaves_it(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    tmux.kill9()
    assert not tmux.alive
    assert os.path.exists(tmux.socket)
    tmux.run("new-session", "-d")
    tmux.kill()
    assert not tmux.alive
    tmux.kill()


def test_clean_up_ends_a_stopped_server_and_one_nobody_told_us_of(private_home: PrivateHome, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    os.kill(tmux.pid, signal.SIGSTOP)
    subprocess.run(["tmux", "-f", "/dev/null", "-L", "stray", "new-session", "-d"], check=True)
    dispose_all(private_home.sockets)
    assert not tmux.alive
    assert os.listdir(os.path.dirname(tmux.socket)) == []
    dispose_all(private_home.sockets)
    dispose_all("/nowhere")


@pytest.mark.parametrize("place", ["t/mine", "h/deep/er/x", "beside"])
def test_clean_up_ends_servers_wherever_they_listen(private_home: PrivateHome, place: str) -> None:
    path = os.path.join(private_home.root, place)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    start = ["tmux", "-f", "/dev/null", "-S", path, "new-session", "-d", "exec sleep 1000"]
    subprocess.run(start, check=True)
    (left,) = servers_of([private_home.root])
    assert path in left.what
    dispose_all(private_home.root)
    wait_for(lambda: not servers_of([private_home.root]), "the end of the server")
    assert not os.path.exists(path)


def test_what_is_no_server_is_left_alone(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.sockets, "mine")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        dispose_all(private_home.root)
        assert os.path.exists(path)


def test_a_server_that_nobody_can_reach_any_more_is_told_of(private_home: PrivateHome, tmux: TmuxServer) -> None:
    """As when its socket was removed: nothing but the process is left, and the run that left it fails at its end."""
    tmux.run("new-session", "-d", "exec sleep 1000")
    pid = tmux.pid
    shutil.rmtree(private_home.sockets)
    dispose_all(private_home.root)
    assert [each.pid for each in servers_of([private_home.root, "/tmp/pd-another"])] == [pid]
    assert servers_of(["/tmp/pd-another"]) == []
    os.kill(pid, signal.SIGKILL)
    assert servers_left([private_home.root]) == []
