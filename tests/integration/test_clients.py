"""How many tmux clients a look starts: counted, by putting a program in tmux's place that notes the call."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from datetime import timedelta

import pytest

from perdure.host.clock import now
from perdure.model.topology import Pane, Session, Window
from perdure.snapshots.capture import Memory
from perdure.snapshots.look import Looked
from tests.integration.looking import look_at, see
from tests.tmux_server import TmuxServer


@pytest.fixture
def calls(tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Give the calls of tmux since it was last asked, one a line."""
    tmux.run("new-session", "-d", "-s", "a", "-x", "100", "-y", "50", "exec sleep 1000")
    for _ in range(5):
        tmux.run("split-window", "-d", "-t", "a", "exec sleep 1000", ";", "new-window", "-d", "exec sleep 1000")
    directory = os.path.join(os.environ["HOME"], "bin")
    log = os.path.join(directory, "log")
    os.mkdir(directory)
    with open(os.path.join(directory, "tmux"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\necho "$*" | tr "\\n" " " >>{log}; echo >>{log}\nexec {shutil.which("tmux")} "$@"\n')
    os.chmod(os.path.join(directory, "tmux"), 0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")

    def since() -> list[str]:
        try:
            with open(log, encoding="utf-8") as file:
                return file.read().splitlines()
        except FileNotFoundError:
            return []
        finally:
            if os.path.exists(log):
                os.remove(log)

    return since


def test_one_client_without_scrollback_and_two_with(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    see(tmux)
    assert len(calls()) == 1
    see(tmux, scrollback=True)
    assert len(calls()) == 2


def test_as_many_for_each_of_several_servers(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    other = TmuxServer("other")
    other.run("new-session", "-d", "sleep 1000")
    calls()
    look_at(tmux, other, TmuxServer("absent"), scrollback=True)
    assert len(calls()) == 4


def test_every_client_is_told_the_socket_and_utf8(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    see(tmux, scrollback=True)
    assert all(call.startswith(f"-u -S {tmux.socket} ") for call in calls())


def options_of(memory: Memory, tmux: TmuxServer) -> dict[str, object]:
    (looked,) = look_at(tmux, memory=memory)
    assert isinstance(looked, Looked), looked
    topology = looked.capture.topology
    parts: tuple[Session | Window | Pane, ...] = (*topology.sessions, *topology.windows, *topology.panes)
    return {part.id: dict(part.options) for part in parts}


def test_remembered_options_are_not_asked_for_again(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    memory = Memory()
    tmux.run("set-option", "-p", "-t", "%0", "@x", "1")
    first = options_of(memory, tmux)
    calls()
    tmux.run("set-option", "-p", "-t", "%0", "@x", "2")
    calls()
    assert options_of(memory, tmux) == first
    asked = calls()
    assert len(asked) == 1
    assert "run-shell" not in asked[0]


def test_what_is_new_is_always_read(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    memory = Memory()
    first = options_of(memory, tmux)
    tmux.run("new-session", "-d", "-s", "b", "exec sleep 1000")
    tmux.run("set-option", "-t", "b", "@x", "s", ";", "set-option", "-w", "-t", "b", "@x", "w")
    tmux.run("set-option", "-p", "-t", "b", "@x", "p", ";", "set-environment", "-t", "b", "X", "1")
    calls()
    second = options_of(memory, tmux)
    assert len(calls()) == 2
    assert set(second) - set(first) == {"$1", "@6", "%11"}
    assert second["@6"] == {"@x": "w"}
    assert second["%11"] == {"@x": "p"}
    assert "@x" in str(second["$1"])
    assert options_of(memory, tmux) == second
    assert len(calls()) == 1


def test_another_server_on_the_socket_has_no_past(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    memory = Memory()
    tmux.run("set-option", "-p", "-t", "%0", "@x", "old")
    assert options_of(memory, tmux)["%0"] == {"@x": "old"}
    tmux.kill()
    tmux.run("new-session", "-d", "-s", "a", "exec sleep 1000")
    assert options_of(memory, tmux)["%0"] == {}
    tmux.run("set-option", "-p", "-t", "%0", "@x", "new")
    assert options_of(Memory(), tmux)["%0"] == {"@x": "new"}


def test_after_a_while_everything_is_read_again(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    memory = Memory(lifetime=timedelta())
    assert not memory.is_fresh(tmux.socket, now())
    assert options_of(memory, tmux)["%0"] == {}
    tmux.run("set-option", "-p", "-t", "%0", "@x", "1")
    assert not memory.is_fresh(tmux.socket, now())
    assert options_of(memory, tmux)["%0"] == {"@x": "1"}


def test_with_scrollback_and_new_ids_there_are_still_two(tmux: TmuxServer, calls: Callable[[], list[str]]) -> None:
    memory = Memory()
    look_at(tmux, memory=memory)
    tmux.run("new-window", "-d", "exec sleep 1000")
    calls()
    (looked,) = look_at(tmux, memory=memory, scrollback=True)
    assert isinstance(looked, Looked)
    assert len(calls()) == 2
