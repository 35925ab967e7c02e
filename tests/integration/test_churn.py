"""Panes that come and go while they are read: a capture is whole and true, or it is none."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from perdure.model.snapshot import Miss, Missed
from perdure.model.topology import Topology
from perdure.snapshots.look import Looked
from tests.integration.looking import look_at
from tests.tmux_server import TmuxServer

LOOKS = 40
#: Opens and closes windows and panes as fast as tmux does it, each with its own id as an option.
CHURN = """
while :; do
  a=$(t new-window -d -P -F '#{window_id} #{pane_id}' -t churn: 'exec sleep 1000') || continue
  w=${a% *} p=${a#* }
  t set-option -w -t "$w" @me "$w" \\; set-option -p -t "$p" @me "$p"
  q=$(t split-window -d -P -F '#{pane_id}' -t "$p" 'exec sleep 1000') && t set-option -p -t "$q" @me "$q"
  t kill-pane -t "$p"
  t new-session -d -s "s$$" 'exec sleep 1000' \\; kill-session -t "s$$"
  t kill-window -t "$w"
done
"""


@pytest.fixture
def churning(tmux: TmuxServer) -> Iterator[TmuxServer]:
    tmux.run(
        "new-session", "-d", "-s", "calm", "exec sleep 1000", ";", "new-session", "-d", "-s", "churn", "sleep 1000"
    )
    tmux.run("set-option", "-p", "-t", "%0", "@me", "%0", ";", "set-option", "-w", "-t", "@0", "@me", "@0")
    define = f't() {{ tmux -u -S "{tmux.socket}" "$@" 2>/dev/null; }}\n'
    running = subprocess.Popen(["sh", "-c", define + CHURN], start_new_session=True)
    yield tmux
    os.killpg(running.pid, 9)
    running.wait()


@pytest.mark.parametrize("scrollback", [False, True])
def test_every_capture_is_whole_and_true(churning: TmuxServer, scrollback: bool) -> None:
    whole = 0
    for _ in range(LOOKS):
        (looked,) = look_at(churning, scrollback=scrollback)
        if isinstance(looked, Missed):
            assert looked.reason is Miss.INCOMPLETE
            continue
        assert isinstance(looked, Looked)
        check(looked.capture.topology)
        assert set(looked.capture.details.panes) == {pane.id for pane in looked.capture.topology.panes}
        whole += 1
    assert whole, "a busy server must still be captured now and then"


def check(topology: Topology) -> None:
    sessions = {session.id for session in topology.sessions}
    windows = {window.id for window in topology.windows}
    assert {link.session for link in topology.links} == sessions
    assert {link.window for link in topology.links} == windows
    assert {pane.window for pane in topology.panes} == windows
    assert {session.name for session in topology.sessions} >= {"calm", "churn"}
    for window in topology.windows:
        assert window.options.get("@me", window.id) == window.id
    for pane in topology.panes:
        assert pane.options.get("@me", pane.id) == pane.id
        assert pane.width > 0
    assert topology.panes[0].options == {"@me": "%0"}
