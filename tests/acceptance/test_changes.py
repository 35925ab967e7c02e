"""What makes a new snapshot, and what only moves the time it was last seen."""

from __future__ import annotations

import os
import pty
import subprocess

import pytest

from tests.acceptance.kit import history, save, settle, snapshot, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def saved(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> str:
    """A server with a pane that echoes, saved."""
    tmux.run("new-session", "-d", "-s", "main", "-c", private_home.home, "-x", "80", "-y", "24", "sh")
    tmux.run("new-session", "-d", "-s", "other", "-c", private_home.home, "cat", "-")
    tmux.run("set-option", "-g", "automatic-rename", "off")
    settle(tmux)
    tmux.run("select-pane", "-t", "main", "-T", "⠂ thinking")
    return str(save(perdure)["snapshot"])


def test_an_unchanged_state_is_seen_again(perdure: Perdure, saved: str) -> None:
    (before,) = history(perdure)
    line = save(perdure)
    assert (line["result"], line["snapshot"]) == ("unchanged", saved)
    (after,) = history(perdure)
    assert after["last_seen_at"] > before["last_seen_at"]
    assert after["taken_at"] == before["taken_at"]


def test_a_turning_spinner_is_no_change_but_is_the_title_now(perdure: Perdure, tmux: TmuxServer, saved: str) -> None:
    for frame in ("⠐ thinking", "⠋ thinking", "✳ thinking"):
        tmux.run("select-pane", "-t", "main", "-T", frame)
        line = save(perdure)
        assert (line["result"], line["snapshot"]) == ("unchanged", saved), frame
    kept = snapshot(perdure)
    pane = tmux.show("#{pane_id}", "main")
    assert next(each for each in kept["topology"]["panes"] if each["id"] == pane)["title"] == "thinking"
    assert kept["details"]["panes"][pane]["title"] == "✳ thinking"


def test_growing_scrollback_is_no_change_but_is_kept(perdure: Perdure, tmux: TmuxServer, saved: str) -> None:
    tmux.run("send-keys", "-t", "other", "-l", "new words on screen")
    wait_for(lambda: b"new words" in tmux.run("capture-pane", "-p", "-t", "other"), "the words")
    assert save(perdure)["snapshot"] == saved
    assert "new words on screen" in perdure.ok("show", saved, "other", "--scrollback").out


def test_attaching_and_detaching_is_no_change(perdure: Perdure, tmux: TmuxServer, saved: str) -> None:
    tmux.run("set-option", "-g", "status", "off")
    tmux.run("set-option", "-g", "window-size", "manual")
    master, slave = pty.openpty()
    subprocess.run(["stty", "rows", "24", "cols", "80"], stdin=slave, check=True)
    command = ["tmux", "-u", "-L", "default", "attach-session", "-t", "main"]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, start_new_session=True) as client:
        wait_for(lambda: tmux.show("#{session_attached}", "main") == "1", "the client")
        attached = save(perdure)
        tmux.run("detach-client", "-s", "main")
        client.wait(60)
    os.close(slave)
    os.close(master)
    assert (attached["result"], attached["snapshot"]) == ("unchanged", saved)
    assert (save(perdure)["result"], len(history(perdure))) == ("unchanged", 1)


@pytest.mark.parametrize(
    "change",
    [
        ["new-window", "-d", "-t", "main"],
        ["split-window", "-d", "-t", "main"],
        ["rename-session", "-t", "other", "another"],
        ["rename-window", "-t", "main", "name"],
        ["select-pane", "-t", "main", "-T", "another title"],
        ["set-option", "-t", "main", "status", "off"],
        ["set-option", "-p", "-t", "main", "@mark", "x"],
        ["set-window-option", "-t", "main", "synchronize-panes", "on"],
        ["set-environment", "-t", "main", "NAME", "value"],
        ["move-window", "-s", "main:0", "-t", "main:5"],
        ["new-session", "-d", "-t", "main", "-s", "grouped"],
        ["kill-session", "-t", "other"],
        ["respawn-pane", "-k", "-t", "other", "sleep", "1000"],
    ],
    ids=lambda change: " ".join(change[:4]),
)
def test_a_change_makes_a_new_snapshot(perdure: Perdure, tmux: TmuxServer, saved: str, change: list[str]) -> None:
    tmux.run(*change)
    line = save(perdure)
    assert line["result"] == "saved"
    assert line["snapshot"] != saved
    assert [row["id"] for row in history(perdure)] == [line["snapshot"], saved]


def test_going_elsewhere_makes_a_new_snapshot(perdure: Perdure, tmux: TmuxServer, saved: str) -> None:
    tmux.run("send-keys", "-t", "main", "cd /; echo there", "Enter")
    wait_for(lambda: tmux.show("#{pane_current_path}", "main") == "/", "cd")
    assert save(perdure)["result"] == "saved"
    main = snapshot(perdure, target="main")["topology"]["panes"][0]
    assert main["cwd"] == "/"


def test_a_state_that_comes_back_is_a_snapshot_of_its_own(perdure: Perdure, tmux: TmuxServer, saved: str) -> None:
    tmux.run("rename-session", "-t", "other", "x")
    second = save(perdure)["snapshot"]
    tmux.run("rename-session", "-t", "x", "other")
    third = save(perdure)
    assert third["result"] == "saved"
    assert [row["id"] for row in history(perdure)] == [third["snapshot"], second, saved]
