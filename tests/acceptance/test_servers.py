"""Servers die, hang and come back small. None of that costs the last good snapshot."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

import pytest

from tests.acceptance.kit import configure, history, is_whole, manifests, only_json, save, snapshot
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


def test_no_server_at_all_is_no_failure(perdure: Perdure, tmux: TmuxServer) -> None:
    line = save(perdure)
    assert (line["result"], line["reason"], line["snapshot"]) == ("kept", "no-server", None)
    assert line["socket"] == tmux.socket
    assert perdure.ok("save").err == ""


def _end_with_kill_server(tmux: TmuxServer) -> None:
    tmux.kill()
    # Not every tmux takes its socket along; a reboot does.
    with suppress(FileNotFoundError):
        os.unlink(tmux.socket)


def _end_with_kill_9(tmux: TmuxServer) -> None:
    tmux.kill9()
    assert os.path.exists(tmux.socket)


@pytest.mark.parametrize("end", [_end_with_kill_server, _end_with_kill_9])
def test_a_dead_server_keeps_its_last_good_snapshot(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, end: Callable[[TmuxServer], None]
) -> None:
    tmux.run("new-session", "-d", "-s", "precious")
    tmux.run("split-window")
    good = save(perdure)
    before = snapshot(perdure, good["snapshot"])
    end(tmux)
    for _ in range(3):
        line = save(perdure)
        assert (line["result"], line["reason"], line["snapshot"]) == ("kept", "no-server", good["snapshot"])
        assert (line["sessions"], line["windows"], line["panes"]) == (1, 1, 2)
    assert snapshot(perdure) == before
    assert [row["id"] for row in history(perdure)] == [good["snapshot"]]
    assert [each["snapshot"]["id"] for each in manifests(private_home)] == [good["snapshot"]]
    assert is_whole(perdure)


def test_a_small_new_server_does_not_hide_the_big_old_state(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "big")
    for _ in range(7):
        tmux.run("new-window", "-d", "-t", "big")
    big = save(perdure)
    tmux.kill9()
    save(perdure)
    tmux.run("new-session", "-d", "-s", "tiny")
    tiny = save(perdure)
    assert tiny["result"] == "saved"
    assert [(row["id"], row["panes"]) for row in history(perdure)] == [(tiny["snapshot"], 1), (big["snapshot"], 8)]
    assert len(snapshot(perdure, big["snapshot"])["topology"]["panes"]) == 8
    assert snapshot(perdure)["id"] == tiny["snapshot"]


def test_a_hung_server_costs_its_time_and_not_the_others(
    perdure: Perdure, tmux_server: Callable[[str], TmuxServer], private_home: PrivateHome
) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 2\n")
    hung, healthy = tmux_server("hung"), tmux_server("zz-healthy")
    hung.run("new-session", "-d", "-s", "one")
    healthy.run("new-session", "-d", "-s", "one")
    perdure.ok("save")
    healthy.run("new-session", "-d", "-s", "two")
    pid = hung.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        ran = perdure("save", "--json")
        listed = perdure("ls", "--json")
        diffed = perdure("diff", _snapshot_of(perdure, hung), "--json")
        overview = perdure("--json")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert ran.code == 4
    lines = {each["socket"]: each for each in only_json(ran)["servers"]}
    assert (lines[hung.socket]["result"], lines[hung.socket]["reason"]) == ("failed", "unreachable")
    assert lines[hung.socket]["snapshot"] == _snapshot_of(perdure, hung)
    assert (lines[healthy.socket]["result"], lines[healthy.socket]["sessions"]) == ("saved", 2)
    assert ran.err.count("\n") == 1
    assert "did not answer" in ran.err
    assert listed.code == 4
    assert {pane["socket"] for pane in only_json(listed)["panes"]} == {healthy.socket}
    assert diffed.code == 4
    assert only_json(diffed)["error"]["code"] == 4
    assert overview.code == 4
    assert only_json(overview)["live"]["servers"] == 1
    assert "did not answer" in overview.err
    configure(private_home, "")
    assert perdure.ok("save").code == 0


def _snapshot_of(perdure: Perdure, server: TmuxServer) -> str:
    return next(str(row["id"]) for row in history(perdure) if row["socket"] == server.socket)


def test_a_server_without_a_session_is_empty_and_replaces_nothing(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    tmux.run("set-option", "-g", "exit-empty", "off")
    good = save(perdure)["snapshot"]
    tmux.run("kill-session", "-t", "one")
    line = save(perdure)
    assert (line["result"], line["reason"], line["snapshot"]) == ("kept", "empty", good)
    assert [row["id"] for row in history(perdure)] == [good]


def test_something_else_that_listens_is_unreachable(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    configure(private_home, "[tmux]\ntimeout_seconds = 0.5\n")
    os.makedirs(os.path.dirname(tmux.socket), mode=0o700)
    with socket.socket(socket.AF_UNIX) as deaf:
        deaf.bind(tmux.socket)
        deaf.listen()
        ran = perdure("save", "--json", timeout=120)
    os.unlink(tmux.socket)
    assert ran.code == 4
    (line,) = only_json(ran)["servers"]
    assert (line["result"], line["reason"]) == ("failed", "unreachable")


def test_saving_changes_nothing_in_tmux(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    tmux.run("new-window", "-d")

    def state() -> list[bytes]:
        commands = (["show-options", "-g"], ["show-environment", "-g"], ["show-hooks", "-g"], ["list-keys"])
        where = "#{session_last_attached} #{window_id} #{window_active} #{window_activity_flag} #{session_attached}"
        return [tmux.run(*each) for each in (*commands, ["list-windows", "-a", "-F", where], ["list-buffers"])]

    before = state()
    for args in (["save"], ["ls"], ["diff", "latest"], []):
        perdure.ok(*args)
    assert state() == before
