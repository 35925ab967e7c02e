"""More than one server: nothing is left open about which one is meant."""

from __future__ import annotations

import os
from collections.abc import Callable

from tests.acceptance.kit import settle
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

Servers = Callable[[str], TmuxServer]


def started(server: TmuxServer, session: str) -> TmuxServer:
    # Two words: one would be a shell's first.
    server.run("new-session", "-d", "-s", session, "cat", "-")
    settle(server)
    return server


def test_latest_is_the_default_servers(perdure: Perdure, tmux_server: Servers) -> None:
    started(tmux_server("default"), "main")
    started(tmux_server("zz"), "other")
    perdure.ok("save")
    shown = perdure.ok("show", "latest", "--json").json["snapshot"]
    assert [session["name"] for session in shown["topology"]["sessions"]] == ["main"]


def test_latest_of_two_others_has_to_be_said(perdure: Perdure, tmux_server: Servers) -> None:
    one, two = started(tmux_server("one"), "a"), started(tmux_server("two"), "b")
    perdure.ok("save")
    for command in ("show", "diff"):
        asked = perdure(command, "latest")
        assert asked.code == 2
        assert one.socket in asked.err
        assert two.socket in asked.err
    shown = perdure.ok("show", "latest", "--socket", two.socket, "--json").json["snapshot"]
    assert shown["server"]["socket"] == two.socket
    two.run("new-window", "-d", "-t", "=b:", "cat", "-")
    changed = perdure.ok("diff", "latest", "--socket", two.socket)
    assert two.socket in changed.out
    assert "+ window b:1" in changed.out
    assert "No difference." in perdure.ok("diff", "latest", "--socket", one.socket).out


def test_latest_of_a_server_nobody_saved(perdure: Perdure, tmux_server: Servers) -> None:
    started(tmux_server("one"), "a")
    perdure.ok("save")
    assert perdure("show", "latest", "--socket", "/nowhere/sock").code == 3


def test_a_difference_between_two_servers_is_called_that(perdure: Perdure, tmux_server: Servers) -> None:
    started(tmux_server("one"), "a")
    started(tmux_server("two"), "b")
    ids = [row["snapshot"] for row in perdure.ok("save", "--json").json["servers"]]
    assert "another server" in perdure.ok("diff", *ids).out


def test_ls_says_which_server_a_pane_is_on(perdure: Perdure, tmux_server: Servers) -> None:
    started(tmux_server("one"), "main")
    assert "server" not in perdure.ok("ls").out.splitlines()[0]
    started(tmux_server("two"), "main")
    lines = perdure.ok("ls").out.splitlines()
    assert "server" in lines[0]
    assert [line.split()[0] for line in lines if "main:0.0" in line] == ["one", "two"]


def test_one_export_that_fails_does_not_stop_the_others(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    started(tmux, "main")
    bad, good = private_home.root, os.path.join(private_home.root, "good.json")
    ran = perdure("export", "tmux-state", "--to", bad, good, "--json")
    assert ran.code == 4
    assert ran.json["written"] == [good]
    assert len(ran.json["failed"]) == 1
    assert bad in ran.err


def test_a_server_that_does_not_fit_an_export_is_named(
    perdure: Perdure, tmux_server: Servers, private_home: PrivateHome
) -> None:
    started(tmux_server("default"), "main")
    left_out = started(tmux_server("zz"), "other")
    ran = perdure.ok("export", "tmux-persist", "--dir", private_home.root)
    assert left_out.socket in ran.err


def test_a_configuration_that_was_named_has_to_be_there(perdure: Perdure, tmux: TmuxServer) -> None:
    started(tmux, "main")
    ran = perdure("save", env={"PERDURE_CONFIG": "/nowhere/config.toml"})
    assert ran.code == 2
    assert "/nowhere/config.toml" in ran.err
    assert perdure.ok("history", "--json").json == {"snapshots": []}
