"""A look changes nothing in tmux and needs nothing of the environment it runs in."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator

import pytest

from tests.integration.looking import see, wait_until
from tests.tmux_server import TmuxServer

#: Everything tmux tells about itself that a look could disturb.
EVERYTHING = (
    ("list-clients", "-F", "#{client_name} #{client_session} #{client_activity} #{client_flags}"),
    ("list-sessions", "-F", "#{session_id} #{session_attached} #{session_last_attached} #{session_activity}"),
    ("list-windows", "-a", "-F", "#{window_id} #{window_active} #{window_flags} #{window_layout} #{window_activity}"),
    ("list-panes", "-a", "-F", "#{pane_id} #{pane_active} #{pane_width}x#{pane_height} #{pane_mode} #{history_size}"),
    ("show-options", "-s"),
    ("show-options", "-g"),
    ("show-options", "-wg"),
    ("show-options", "-t", "a"),
    ("show-options", "-w", "-t", "a"),
    ("show-hooks", "-g"),
    ("show-environment", "-g"),
    ("show-environment", "-t", "a"),
    ("list-buffers",),
    ("list-keys",),
    ("show-messages", "-J"),
)


def everything(tmux: TmuxServer) -> list[bytes]:
    return [tmux.run(*command) for command in EVERYTHING]


@pytest.fixture
def attached(tmux: TmuxServer) -> Iterator[TmuxServer]:
    """A server with a person looking at it, and a session that goes when that person does."""
    tmux.run("new-session", "-d", "-s", "a", "-x", "80", "-y", "24", "sleep 1000")
    tmux.run("new-session", "-d", "-s", "b", "sleep 1000", ";", "split-window", "-t", "b", "sleep 1000")
    controller, terminal = pty.openpty()
    command = ["tmux", "-u", "-S", tmux.socket, "attach-session", "-t", "a"]
    client = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True)
    wait_until(lambda: tmux.show("#{session_attached}", "a") == "1", "somebody is attached")
    tmux.run("set-option", "-t", "a", "destroy-unattached", "on")
    yield tmux
    client.kill()
    client.wait()
    os.close(controller)
    os.close(terminal)


def test_nothing_is_changed(attached: TmuxServer) -> None:
    before = everything(attached)
    seen = see(attached, scrollback=True)
    assert everything(attached) == before
    assert seen.details.sessions[seen.session("a").id].attached == 1
    assert seen.details.sessions[seen.session("a").id].last_attached_at is not None
    assert seen.details.sessions[seen.session("b").id].attached == 0
    assert attached.run("list-sessions", "-F", "#{session_name}") == b"a\nb\n"


def test_no_hook_for_somebody_coming_or_going_runs(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    for hook in ("client-attached", "client-detached", "client-session-changed", "client-resized", "session-created"):
        tmux.run("set-hook", "-g", hook, f"set-option -ga @ran {hook}")
    see(tmux, scrollback=True)
    assert tmux.run("show-options", "-gqv", "@ran") == b""


@pytest.mark.parametrize("lang", ["C", "POSIX", "en_US.ISO-8859-1", None])
def test_the_locale_does_not_matter(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch, lang: str | None) -> None:
    """To a client without UTF-8, tmux sends an underscore for every tab and everything beyond ASCII."""
    tmux.run("new-session", "-d", "-s", "naïve 日本語", "-n", "👍", "sleep 1000")
    tmux.run("select-pane", "-T", "café")
    for name in ("LANG", "LC_ALL", "LC_CTYPE", "TERM"):
        monkeypatch.delenv(name, raising=False)
    if lang:
        monkeypatch.setenv("LC_ALL", lang)
    seen = see(tmux)
    assert seen.topology.sessions[0].name == "naïve 日本語"
    assert seen.topology.windows[0].name == "👍"
    assert seen.pane("%0").title == "café"


def test_inside_another_server_the_one_that_was_asked_answers(
    tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux.run("new-session", "-d", "-s", "a", "sleep 1000")
    monkeypatch.setenv("TMUX", "/tmp/nowhere,1,0")
    monkeypatch.setenv("TMUX_PANE", "%7")
    assert see(tmux).topology.sessions[0].name == "a"
