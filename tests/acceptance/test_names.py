"""Names, titles and directories come back byte for byte, whatever tmux lets people call them."""

from __future__ import annotations

import os
from typing import Any

import pytest

from perdure.model.text import encode
from tests.acceptance.kit import only_json, save, settle, topology, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: What broke other tools: each in a session's name, a window's name, a pane's title and a directory.
ODD = {
    "tab": "tab\there",
    "newline": "line\nbreak",
    "carriage return": "carriage\rreturn",
    "pipe": "pipe|sess",
    "quotes": 'it\'s "so"',
    "dollar and backticks": "$HOME `id` $(id)",
    "backslash": "back\\slash\\n",
    "two spaces": "two  spaces",
    "trailing space": "trailing ",
    "unicode": "日本 ünï 🚀",
    "combining": "e\u0301 \u200b",
    "format": "#{pane_id} #(id) %1",
    "comma": "a,b;c&d",
    "separator": "unit\x1fsep\x1e",
    "escape": "\x1b[31mred\x07",
    "brackets": "[bold]markup[/bold]",
    "dash": "-x",
    "equals": "=w1",
}


def _make(tmux: TmuxServer, name: str, cwd: str) -> str:
    """Make a session that is called `name` as far as tmux allows, with a pane in `cwd`; return the pane's id."""
    # tmux expands formats in a directory it is given.
    made = tmux.run("new-session", "-d", "-P", "-F", "#{pane_id}", "-c", cwd.replace("#", "##"), "sleep", "1000")
    pane = made.decode().strip()
    wait_for(lambda: _says(tmux, "#{pane_current_path}", pane) == os.fsencode(cwd), "the directory")
    tmux.run("rename-session", "-t", pane, "--", name)
    tmux.run("rename-window", "-t", pane, "--", name)
    tmux.run("select-pane", "-t", pane, "-T", name.replace("\t", " "))
    return pane


def _says(tmux: TmuxServer, format: str, pane: str) -> bytes:
    return tmux.run("display-message", "-p", "-t", pane, format).removesuffix(b"\n")


def _kept(kept: dict[str, Any], pane_id: str) -> tuple[str, str, str, str]:
    pane = next(each for each in kept["panes"] if each["id"] == pane_id)
    window = next(each for each in kept["windows"] if each["id"] == pane["window"])
    link = next(each for each in kept["links"] if each["window"] == pane["window"])
    session = next(each for each in kept["sessions"] if each["id"] == link["session"])
    return session["name"], window["name"], pane["title"], pane["cwd"]


@pytest.mark.parametrize("locale", ["C.UTF-8", "C"])
def test_everything_comes_back_as_tmux_has_it(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, locale: str
) -> None:
    panes = {}
    for name in ODD.values():
        cwd = os.path.join(os.path.realpath(private_home.home), name.replace("/", "_"))
        os.mkdir(cwd)
        panes[_make(tmux, name, cwd)] = cwd
    # A service has neither a UTF-8 locale nor $TMUX.
    env = {"LANG": locale, "LC_ALL": locale}
    line = save(perdure, env=env)
    assert line["sessions"] == line["panes"] == len(ODD)
    kept = topology(perdure)
    for pane, cwd in panes.items():
        session, window, title, directory = _kept(kept, pane)
        assert encode(session) == _says(tmux, "#{session_name}", pane)
        assert encode(window) == _says(tmux, "#{window_name}", pane)
        assert encode(title) == _says(tmux, "#{pane_title}", pane)
        assert directory == cwd
    shown = only_json(perdure.ok("ls", "--json", env=env))["panes"]
    assert {row["pane_id"]: row["cwd"] for row in shown} == panes


def test_what_tmux_keeps_of_a_name_is_what_was_given(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    """Not only as tmux tells it: what tmux accepts without change is in the snapshot as it was typed."""
    plain = ["pipe|sess", 'it\'s "so"', "`id` $(id)", "two  spaces", "日本 ünï 🚀", "a,b;c&d"]
    panes = {_make(tmux, name, os.path.realpath(private_home.home)): name for name in plain}
    save(perdure)
    kept = topology(perdure)
    for pane, name in panes.items():
        assert _kept(kept, pane)[0] == name
        assert _kept(kept, pane)[2] == name


def test_bytes_that_are_no_text_come_back(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    cwd = os.fsencode(os.path.realpath(private_home.home)) + b"/no\xfftext"
    os.mkdir(cwd)
    tmux.run("new-session", "-d", "-s", "odd", "-c", cwd, "sleep", "1000")
    settle(tmux)
    save(perdure)
    (pane,) = topology(perdure)["panes"]
    assert encode(pane["cwd"]) == cwd
    assert perdure.ok("ls").code == 0
    assert perdure.ok("show", "latest").code == 0


def test_an_empty_title_shifts_nothing(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d", "-s", "t", "-c", private_home.home, "sleep", "1000")
    settle(tmux)
    tmux.run("select-pane", "-t", "t", "-T", "")
    tmux.run("rename-window", "-t", "t", "")
    assert tmux.show("[#{pane_title}]", "t") == "[]"
    save(perdure)
    kept = topology(perdure)
    assert (kept["panes"][0]["title"], kept["windows"][0]["name"]) == ("", "")
    assert kept["panes"][0]["cwd"] == os.path.realpath(private_home.home)


def test_a_directory_that_was_deleted_is_still_known(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    gone = os.path.join(os.path.realpath(private_home.home), "gone")
    os.mkdir(gone)
    tmux.run("new-session", "-d", "-s", "g", "-c", gone, "sleep", "1000")
    wait_for(lambda: tmux.show("#{pane_current_path}", "g") == gone, "the directory")
    os.rmdir(gone)
    assert save(perdure)["panes"] == 1
    (pane,) = topology(perdure)["panes"]
    assert pane["start_path"] == gone
    assert pane["cwd"].startswith(gone)


def test_a_dead_pane_is_kept_as_dead(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d", "-s", "d", "-c", private_home.home, "sleep", "1000")
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    tmux.run("split-window", "-t", "d", "-c", private_home.home, "sh", "-c", "exit 7")
    wait_for(lambda: tmux.show("#{pane_dead}", "d:0.1") == "1", "the pane's end")
    tmux.run("run-shell", "sleep 0.5")
    # On a busy machine tmux 3.3a at times never learns how a program ended: then nobody can know.
    before = tmux.show("#{pane_dead_status}", "d:0.1")
    assert before in ("7", "")
    assert save(perdure)["panes"] == 2
    dead = next(each for each in topology(perdure)["panes"] if each["index"] == 1)
    assert dead["dead"]
    # It may learn of it only now.
    known = {before, tmux.show("#{pane_dead_status}", "d:0.1")}
    assert dead["exit_status"] in {7 if status else None for status in known}
    assert dead["start_path"] == os.path.realpath(private_home.home)
    row = only_json(perdure.ok("ls", "--json"))["panes"][1]
    assert (row["dead"], row["agent"]) == (True, None)
    assert "(dead)" in perdure.ok("ls").out


def test_the_arguments_of_a_program_stay_apart(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    logs = [os.path.join(private_home.home, name) for name in ("file one.log", "it's.log", "x & touch PWNED")]
    for log in logs:
        with open(log, "w"):
            pass
    argv = ["tail", "-n", "0", "-f", *logs]
    tmux.run("new-session", "-d", "-s", "logs", *argv)
    settle(tmux)
    save(perdure)
    (pane,) = topology(perdure)["panes"]
    assert pane["program"]["argv"] == argv


def test_the_terminal_is_safe_from_what_panes_are_called(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "plain")
    settle(tmux)
    tmux.run("select-pane", "-T", "a\x1b]0;owned\x07b\u202ec")
    tmux.run("rename-window", "a\x1b[2Jb")
    for args in (["save"], ["ls"], ["show", "latest"], ["history"], ["diff", "latest"], []):
        out = perdure.ok(*args).out
        assert not set(out) & {"\x1b", "\x07", "\u202e", "\r"}, args
