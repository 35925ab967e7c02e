"""Short looks at real servers."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from perdure.host.users import current_user
from perdure.model.text import decode
from perdure.model.user import User
from perdure.tmux.glance import Glance, Glimpse, NoServer, Outline, glance, outline
from tests.integration.looking import wait_until
from tests.tmux_server import LETTING_GO, PATIENCE, TmuxServer

STAY = "exec sleep 1000"


def glanced(tmux: TmuxServer, panes: dict[str, bool]) -> Glance:
    seen = glance(tmux.socket, current_user(), panes, timeout=PATIENCE)
    assert seen is not None
    return seen


def glimpsed(tmux: TmuxServer, pane: str, *, lines: bool = False) -> Glimpse:
    return glanced(tmux, {pane: lines}).panes[pane]


def outlined(tmux: TmuxServer) -> Outline:
    seen = outline(tmux.socket, current_user(), timeout=PATIENCE)
    assert isinstance(seen, Outline)
    return seen


@pytest.fixture
def server(tmux: TmuxServer) -> TmuxServer:
    """Two windows, the first with two panes: %0 and %1, %2."""
    tmux.run("new-session", "-d", "-s", "main", "-n", "work", "-x", "100", "-y", "30", STAY)
    tmux.run(
        "split-window", "-h", "-t", "%0", "printf 'one\\n\\ntwo'; exec cat", ";", "new-window", "-n", "other", STAY
    )
    wait_until(lambda: b"two" in tmux.run("capture-pane", "-p", "-t", "%1"), "it prints")
    return tmux


@contextmanager
def attached(tmux: TmuxServer, *words: str) -> Iterator[None]:
    """Somebody sits before a terminal."""
    before = len(tmux.run("list-clients").splitlines())
    controller, terminal = pty.openpty()
    command = ["tmux", "-u", "-S", tmux.socket, *words]
    client = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal)
    try:
        wait_until(lambda: len(tmux.run("list-clients").splitlines()) > before, "a client is attached")
        yield
    finally:
        client.kill()
        client.wait()
        os.close(terminal)
        os.close(controller)


def test_where_a_pane_is_and_what_it_shows(server: TmuxServer) -> None:
    seen = glanced(server, {"%1": True, "%2": False})
    assert seen.process.pid == server.pid
    one, two = seen.panes["%1"], seen.panes["%2"]
    assert (one.session, one.window, one.window_name, one.index) == ("main", 0, "work", 1)
    assert (two.session, two.window, two.window_name, two.index) == ("main", 1, "other", 0)
    assert one.pid == int(server.show("#{pane_pid}", "%1"))
    assert (one.dead, one.in_mode, one.alternate, one.attached, one.visible) == (False, False, False, 0, False)
    assert one.client_activity_at is None
    assert (two.width, two.height) == (100, 30)
    assert one.lines is not None
    assert one.lines[:3] == ("one", "", "two")
    assert len(one.lines) == one.height
    assert two.lines is None


def test_a_pane_that_is_gone_costs_only_itself(server: TmuxServer) -> None:
    server.run("kill-pane", "-t", "%1")
    seen = glanced(server, {"%1": True, "%0": True, "%1234": False, "%2": False})
    assert seen.panes.keys() == {"%0", "%2"}
    assert glanced(server, {"%1": True}).panes == {}


HOSTILE = (
    b"%H:%M %% %s",
    b"#{pid} #(touch /tmp/never) #[fg=red]",
    b"'; kill-server ; '",
    b'"$HOME" \\n `id`',
    "naïve 🙂 日本".encode(),
    b"G%1 0 0|3:abc",
    b" leading and trailing ",
)


@pytest.mark.parametrize("title", HOSTILE)
def test_a_title_is_only_text(server: TmuxServer, title: bytes) -> None:
    with open(os.path.join(os.environ["HOME"], "title"), "wb") as file:
        file.write(title)
    # As programs set it, not as tmux's commands do, which would expand it first.
    setting = 'printf \'\\033]2;%s\\007\' "$(cat "$HOME/title")"; '
    server.run("respawn-pane", "-k", "-t", "%0", setting + STAY)
    wait_until(lambda: glimpsed(server, "%0").title == decode(title), "the title is set")
    assert outlined(server).titles["%0"] == decode(title)
    assert server.alive


@pytest.mark.parametrize("name", [b"tab\there", b"a|b 3:c", b"'\"$(x)#{pid}", "é 🙂".encode()])
def test_a_name_is_only_text(server: TmuxServer, name: bytes) -> None:
    server.run("rename-window", "-t", "%0", name.replace(b"#", b"##"), ";", "rename-session", "-t", "%0", name)
    seen = glimpsed(server, "%0")
    shown = server.show("#{n:session_name}:#{session_name}|#{window_name}", "%0")
    assert shown == f"{len(seen.session.encode())}:{seen.session}|{seen.window_name}"
    assert glanced(server, {"%0": True}).panes.keys() == {"%0"}


def test_how_a_program_ended_in_a_pane_that_stays(server: TmuxServer) -> None:
    server.run("set-option", "-g", "remain-on-exit", "on")
    server.run(
        "new-window", "-n", "failing", f"{LETTING_GO}exit 7", ";", "new-window", "-n", "k", f"{LETTING_GO}kill -9 $$"
    )
    # A pane may be dead a moment before it is known how.
    wait_until(lambda: glimpsed(server, "%3").exit_status == 7, "the first ends")
    wait_until(lambda: glimpsed(server, "%4").exit_signal == 9, "the second ends")
    first, second = glimpsed(server, "%3"), glimpsed(server, "%4")
    assert (first.dead, first.exit_signal) == (True, None)
    assert second.dead
    assert outlined(server).panes["%3"].dead
    assert not outlined(server).panes["%0"].dead


def test_a_pane_in_copy_mode_shows_what_is_below(server: TmuxServer) -> None:
    server.run("copy-mode", "-t", "%1")
    seen = glimpsed(server, "%1", lines=True)
    assert seen.in_mode
    assert seen.lines is not None
    assert seen.lines[:3] == ("one", "", "two")


def test_a_program_with_the_screen_to_itself(server: TmuxServer) -> None:
    server.run("respawn-pane", "-k", "-t", "%0", f"printf '\\033[?1049h'; {STAY}")
    wait_until(lambda: glimpsed(server, "%0").alternate, "it takes the screen")


def test_only_the_pane_somebody_has_before_them_is_visible(server: TmuxServer) -> None:
    def visible() -> set[str]:
        panes = glanced(server, {"%0": False, "%1": False, "%2": False}).panes
        assert all(pane.visible == (pane.client_activity_at is not None) for pane in panes.values())
        return {id for id, pane in panes.items() if pane.visible}

    with attached(server, "attach-session", "-t", "main"):
        assert glimpsed(server, "%0").attached == 1
        assert visible() == {"%2"}
        server.run("select-window", "-t", "main:work", ";", "select-pane", "-t", "%0")
        assert visible() == {"%0"}
        server.run("select-pane", "-t", "%1")
        assert visible() == {"%1"}
    wait_until(lambda: visible() == set(), "the client is gone")


def test_a_window_in_two_sessions_is_seen_by_who_sees_either(server: TmuxServer) -> None:
    server.run("new-session", "-d", "-s", "second", "-n", "home", STAY)
    server.run("link-window", "-s", "main:other", "-t", "second:5")
    server.run("select-window", "-t", "second:5")
    with attached(server, "attach-session", "-t", "second"):
        assert glimpsed(server, "%2").visible
        assert not glimpsed(server, "%0").visible


def test_a_program_in_control_mode_sees_nothing(server: TmuxServer) -> None:
    with attached(server, "-C", "attach-session", "-t", "main"):
        seen = glimpsed(server, "%2")
        assert (seen.attached, seen.visible) == (1, False)


def test_an_outline_changes_with_the_layout_and_not_with_titles(server: TmuxServer) -> None:
    first = outlined(server)
    assert first.panes.keys() == {"%0", "%1", "%2"}
    assert first.process == glanced(server, {}).process
    server.run("select-pane", "-t", "%0")
    before = outlined(server).digest
    server.run("select-pane", "-t", "%0", "-T", "another title")
    assert outlined(server).digest == before
    assert outlined(server).titles["%0"] == "another title"


CHANGES: tuple[tuple[str, ...], ...] = (
    ("select-window", "-t", "main:work"),
    ("resize-pane", "-t", "%0", "-x", "30"),
    ("resize-pane", "-Z", "-t", "%0"),
    ("rename-window", "-t", "%0", "renamed"),
    ("rename-session", "-t", "main", "renamed"),
    ("swap-pane", "-d", "-s", "%0", "-t", "%1"),
    ("select-pane", "-t", "%0"),
    ("move-window", "-s", "main:other", "-t", "main:7"),
    ("split-window", "-d", "-t", "%2", STAY),
    ("kill-pane", "-t", "%1"),
    ("respawn-pane", "-k", "-t", "%0", STAY),
    ("new-session", "-d", "-s", "second", "-n", "x", STAY),
    ("new-session", "-d", "-t", "main", "-s", "grouped"),
    ("link-window", "-d", "-s", "main:other", "-t", "main:9"),
)


@pytest.mark.parametrize("change", CHANGES, ids=" ".join)
def test_every_change_of_the_layout_is_a_change_of_the_outline(server: TmuxServer, change: tuple[str, ...]) -> None:
    before = outlined(server)
    assert outlined(server).digest == before.digest
    server.run(*change)
    assert outlined(server).digest != before.digest


def test_where_nobody_listens_that_is_said_and_nobody_is_started(tmux: TmuxServer) -> None:
    def look() -> None:
        assert outline(tmux.socket, current_user(), timeout=PATIENCE) == NoServer(socket=tmux.socket)
        assert glance(tmux.socket, current_user(), {"%0": True}, timeout=PATIENCE) is None
        assert not tmux.alive

    look()
    tmux.run("new-session", "-d", STAY)
    tmux.kill9()
    look()


@pytest.fixture
def stopped(server: TmuxServer) -> Iterator[TmuxServer]:
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    yield server
    os.kill(pid, signal.SIGCONT)


def test_a_server_that_hangs_gives_no_answer_which_is_not_no_server(stopped: TmuxServer) -> None:
    assert outline(stopped.socket, current_user(), timeout=0.2) is None
    assert glance(stopped.socket, current_user(), {"%0": False}, timeout=0.2) is None


def test_somebody_elses_socket_is_not_touched(server: TmuxServer) -> None:
    me = current_user()
    other = User(me.name, me.uid + 1, me.gid, me.home)
    assert outline(server.socket, other, timeout=PATIENCE) is None
    assert glance(server.socket, other, {"%0": False}, timeout=PATIENCE) is None


def test_another_server_in_the_same_place_is_noticed(server: TmuxServer) -> None:
    before = outlined(server).process
    server.kill()
    server.run("new-session", "-d", "-s", "main", "-n", "work", STAY)
    assert outlined(server).process != before
    assert glanced(server, {"%0": False}).process == outlined(server).process


def test_a_look_changes_nothing(server: TmuxServer, everything: Callable[[], list[bytes]]) -> None:
    before = everything()
    glanced(server, {"%0": True, "%1": True, "%9": True})
    outlined(server)
    assert everything() == before


@pytest.fixture
def everything(server: TmuxServer) -> Callable[[], list[bytes]]:
    """All that a look could have changed."""
    questions = (
        ("list-sessions", "-F", "#{session_id} #{session_attached} #{session_last_attached} #{session_activity}"),
        ("list-windows", "-a", "-F", "#{window_id} #{window_activity} #{window_flags} #{window_layout}"),
        ("list-buffers",),
        ("show-options", "-s"),
        ("show-options", "-g"),
        ("show-environment", "-g"),
    )
    return lambda: [server.run(*question) for question in questions]


def test_what_is_no_panes_id_is_not_sent(server: TmuxServer) -> None:
    for id in ("%0'; kill-server; '", "main", "%", "%1\n"):
        with pytest.raises(ValueError, match="no pane's id"):
            glance(server.socket, current_user(), {id: False})
    assert server.alive
