"""Real panes: what is printed after a save is in the next one, however little time lies between."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator

from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def shown(perdure: Perdure, target: str) -> str:
    return perdure.ok("show", "latest", target, "--scrollback").out


def until(tmux: TmuxServer, target: str, text: str) -> None:
    deadline = time.monotonic() + 20
    while text.encode() not in tmux.run("capture-pane", "-p", "-t", target):
        assert time.monotonic() < deadline, f"{text!r} never appeared"
        time.sleep(0.02)


def words() -> Iterator[str]:
    return (f"word-{number}" for number in range(6))


def test_output_between_two_saves_is_never_missed(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "busy", "cat")
    tmux.run("new-session", "-d", "-s", "quiet", "echo still here; exec cat")
    until(tmux, "=quiet:", "still here")
    for word in words():
        tmux.run("send-keys", "-t", "=busy:", word, "Enter")
        until(tmux, "=busy:", word)
        perdure.ok("save")
        assert word in shown(perdure, "busy")
        assert "still here" in shown(perdure, "quiet")


def test_a_quiet_pane_is_not_asked_again(tmux: TmuxServer, perdure: Perdure, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d", "-s", "quiet", "echo once; exec cat")
    until(tmux, "=quiet:", "once")
    time.sleep(1.1)  # tmux notes the second of the last output; let it pass before the first reading
    clients = [clients_of_a_save(perdure, private_home) for _ in range(3)]
    assert clients == [2, 1, 1]
    assert "once" in shown(perdure, "quiet")


def test_a_pane_that_was_reset_is_read_again(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "reset", "echo gone soon; exec cat")
    until(tmux, "=reset:", "gone soon")
    time.sleep(1.1)
    perdure.ok("save")
    assert "gone soon" in shown(perdure, "reset")
    # Prints nothing, so that tmux notes no activity; moves what was on the screen into the history.
    tmux.run("send-keys", "-R", "-t", "=reset:", ";", "clear-history", "-t", "=reset:")
    perdure.ok("save")
    assert perdure("show", "latest", "reset", "--scrollback").code == 3


def clients_of_a_save(perdure: Perdure, places: PrivateHome) -> int:
    """How many tmux processes one save starts, by a `tmux` that comes first on the PATH and counts."""
    folder = os.path.join(places.root, "count")
    log = os.path.join(folder, "log")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tmux"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho . >> {log}\nexec {shutil.which("tmux")} "$@"\n')
    os.chmod(os.path.join(folder, "tmux"), 0o755)
    with open(log, "w", encoding="utf-8"):
        pass
    perdure.ok("save", env={"PATH": f"{folder}:{os.environ['PATH']}"})
    with open(log, encoding="utf-8") as file:
        return len(file.readlines())
