from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.conftest import PrivateHome
from tests.tmux_server import TmuxFailed, TmuxServer, dispose_all


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
