"""What every command prints: the JSON that scripts read, and the words that people read."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from tests.acceptance.kit import (
    Fields,
    has_fields,
    history,
    only_json,
    save,
    sentence,
    settle,
    snapshot,
    topology,
    wait_for,
)
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

NONE = type(None)

SAVED: Fields = {
    "user": str,
    "uid": int,
    "socket": str,
    "result": str,
    "reason": (str, NONE),
    "snapshot": (str, NONE),
    "sessions": int,
    "windows": int,
    "panes": int,
    "agents": int,
}
PANE: Fields = {
    "user": str,
    "socket": str,
    "session": str,
    "window": int,
    "window_name": str,
    "pane": int,
    "pane_id": str,
    "pid": int,
    "active": bool,
    "size": str,
    "cwd": str,
    "command": str,
    "title": str,
    "agent": (str, NONE),
    "conversation": (str, NONE),
    "certain": (bool, NONE),
    "evidence": (str, NONE),
    "profile": (str, NONE),
    "model": (str, NONE),
    "provider": (str, NONE),
    "context_used": (int, NONE),
    "context_limit": (int, NONE),
    "context_pct": (int, NONE),
    "task": (str, NONE),
    "transcript": (str, NONE),
}
KEPT: Fields = {
    "id": str,
    "user": str,
    "socket": str,
    "taken_at": str,
    "last_seen_at": str,
    "sessions": int,
    "windows": int,
    "panes": int,
    "agents": int,
}


def _two_sessions(tmux: TmuxServer, cwd: str) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "edit", "-c", cwd, "-x", "100", "-y", "40")
    tmux.run("split-window", "-t", "work:0", "-c", cwd)
    tmux.run("new-window", "-t", "work:7", "-n", "logs", "-c", cwd)
    tmux.run("new-session", "-d", "-s", "side", "-c", cwd)
    settle(tmux)


def test_save_says_for_every_server_what_became_of_it(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    _two_sessions(tmux, private_home.home)
    answer = only_json(perdure.ok("save", "--json"))
    assert answer.keys() == {"servers"}
    (line,) = answer["servers"]
    has_fields(line, SAVED)
    assert line["uid"] == os.getuid()
    assert line["socket"] == tmux.socket
    assert (line["result"], line["reason"]) == ("saved", None)
    assert (line["sessions"], line["windows"], line["panes"], line["agents"]) == (2, 3, 4, 0)
    assert re.fullmatch(r"[0-9a-f]{8,}", line["snapshot"])


def test_save_finds_every_socket_of_the_user(perdure: Perdure, tmux_server: Callable[[str], TmuxServer]) -> None:
    names = ["default", "other", "a b", "ü"]
    for name in names:
        tmux_server(name).run("new-session", "-d")
    servers = only_json(perdure.ok("save", "--json"))["servers"]
    assert {os.path.basename(each["socket"]) for each in servers} == set(names)
    assert {each["result"] for each in servers} == {"saved"}
    assert len(history(perdure)) == len(names)


def test_save_of_one_socket_looks_at_no_other(
    perdure: Perdure, tmux_server: Callable[[str], TmuxServer], private_home: PrivateHome
) -> None:
    one, other = tmux_server("one"), tmux_server("other")
    one.run("new-session", "-d")
    other.run("new-session", "-d")
    link = os.path.join(private_home.root, "link")
    os.symlink(os.path.dirname(one.socket), link)
    (line,) = only_json(perdure.ok("save", "--json", "--socket", os.path.join(link, "one")))["servers"]
    assert line["socket"] == one.socket
    assert len(history(perdure)) == 1


def test_save_finds_a_server_on_a_socket_anywhere_when_it_is_configured_or_ours(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run("-S", os.path.join(private_home.root, "odd"), "new-session", "-d")
    place = os.path.join(os.path.realpath(private_home.root), "odd")
    try:
        inside = {"TMUX": f"{place},1,0"}
        assert save(perdure, env=inside)["socket"] == place
    finally:
        tmux.run("-S", place, "kill-server")


def test_ls_gives_every_pane_with_all_fields(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    _two_sessions(tmux, private_home.home)
    tmux.run("select-pane", "-t", "work:0.0", "-T", "my title")
    answer = only_json(perdure.ok("ls", "--json"))
    assert answer.keys() == {"panes"}
    panes = answer["panes"]
    for pane in panes:
        has_fields(pane, PANE)
    first = panes[0]
    assert [(pane["session"], pane["window"], pane["pane"]) for pane in panes] == [
        ("work", 0, 0),
        ("work", 0, 1),
        ("work", 7, 0),
        ("side", 0, 0),
    ]
    assert first["title"] == "my title"
    assert first["window_name"] == "edit"
    assert first["pane_id"] == tmux.show("#{pane_id}", "work:0.0")
    assert str(first["pid"]) == tmux.show("#{pane_pid}", "work:0.0")
    assert first["size"] == tmux.show("#{pane_width}x#{pane_height}", "work:0.0")
    assert first["cwd"] == os.path.realpath(private_home.home)
    assert first["command"] == tmux.show("#{pane_current_command}", "work:0.0")
    assert (first["active"], panes[1]["active"]) == (False, True)
    assert (first["agent"], first["conversation"], first["certain"]) == (None, None, None)


def test_ls_lists_a_window_that_two_sessions_show_once(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "first")
    tmux.run("new-session", "-d", "-s", "second", "-t", "first")
    panes = only_json(perdure.ok("ls", "--json"))["panes"]
    assert [pane["session"] for pane in panes] == ["first"]
    assert save(perdure)["sessions"] == 2


def test_history_is_newest_first(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    first = save(perdure)["snapshot"]
    tmux.run("new-session", "-d", "-s", "two")
    second = save(perdure)["snapshot"]
    answer = only_json(perdure.ok("history", "--json"))
    assert answer.keys() == {"snapshots"}
    rows = answer["snapshots"]
    assert [row["id"] for row in rows] == [second, first]
    for row in rows:
        has_fields(row, KEPT)
        age = datetime.now(UTC) - datetime.fromisoformat(row["taken_at"])
        assert timedelta(0) <= age < timedelta(minutes=5)
        assert row["last_seen_at"] >= row["taken_at"]
    assert [(row["sessions"], row["panes"]) for row in rows] == [(2, 2), (1, 1)]
    assert [row["id"] for row in only_json(perdure.ok("history", "--json", "--limit", "1"))["snapshots"]] == [second]


def test_show_takes_the_beginning_of_an_id_and_says_when_that_is_too_short(perdure: Perdure, tmux: TmuxServer) -> None:
    ids = []
    for number in range(20):
        tmux.run("new-session", "-d", "-s", f"s{number}")
        ids.append(save(perdure, "--no-scrollback")["snapshot"])
    assert snapshot(perdure, ids[3][:12])["id"] == ids[3]
    twice = next(id[0] for id in ids if sum(other[0] == id[0] for other in ids) > 1)
    ran = perdure("show", twice, "--json")
    assert ran.code == 2
    assert "More than one" in sentence(ran)
    assert only_json(ran)["error"]["code"] == 2
    assert perdure("show", "f" * 16).code == 3


def test_show_keeps_every_fact_of_a_session(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    _two_sessions(tmux, private_home.home)
    tmux.run("set-option", "-t", "work", "status", "off")
    tmux.run("set-option", "-t", "work", "@mine", "session value")
    tmux.run("set-environment", "-t", "work", "PROJECT", "one two\n'three'")
    tmux.run("set-environment", "-t", "work", "-r", "GONE")
    tmux.run("set-window-option", "-t", "work:0", "synchronize-panes", "on")
    tmux.run("set-window-option", "-t", "work:0", "remain-on-exit", "on")
    tmux.run("set-option", "-p", "-t", "work:0.1", "@agent", 'a "b" $c')
    tmux.run("resize-pane", "-t", "work:0.0", "-Z")
    tmux.run("new-session", "-d", "-s", "pair", "-t", "work")
    save(perdure)
    kept = topology(perdure)
    work = next(each for each in kept["sessions"] if each["name"] == "work")
    assert work["environment"]["PROJECT"] == "one two\n'three'"
    assert "GONE" in work["removed"]
    assert (work["options"]["status"], work["options"]["@mine"]) == ("off", "session value")
    assert [each["group"] for each in kept["sessions"] if each["name"] in ("work", "pair")] == ["work", "work"]
    zoomed = next(each for each in kept["windows"] if each["name"] == "edit")
    assert zoomed["zoomed"]
    assert zoomed["layout"] != zoomed["visible_layout"]
    assert (zoomed["options"]["synchronize-panes"], zoomed["options"]["remain-on-exit"]) == ("on", "on")
    second = next(each for each in kept["panes"] if each["window"] == zoomed["id"] and each["index"] == 1)
    assert second["options"]["@agent"] == 'a "b" $c'
    assert [link["index"] for link in kept["links"] if link["session"] == work["id"]] == [0, 7]
    assert kept["process"]["pid"] == tmux.pid
    assert kept["process"]["version"]


def test_show_of_a_target_is_exact(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "w1", "-n", "main")
    tmux.run("split-window", "-t", "=w1:0")
    tmux.run("new-session", "-d", "-s", "w10")
    save(perdure)
    assert [each["name"] for each in snapshot(perdure, target="w1")["topology"]["sessions"]] == ["w1"]
    assert len(snapshot(perdure, target="w1")["topology"]["panes"]) == 2
    assert len(snapshot(perdure, target="w1:main.1")["topology"]["panes"]) == 1
    pane = tmux.show("#{pane_id}", "=w10:0.0")
    assert [each["id"] for each in snapshot(perdure, target=pane)["topology"]["panes"]] == [pane]
    for absent in ("w", "w1:9", "w1:0.9", "%999", ""):
        assert perdure("show", "latest", absent).code == 3


def test_show_prints_what_a_pane_showed_with_its_colours(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    script = os.path.join(private_home.root, "colours")
    with open(script, "w") as file:
        file.write("for n in $(seq 100); do printf '\\033[31mred %s\\033[0m plain\\n' $n; done; exec sleep 1000")
    tmux.run("new-session", "-d", "-s", "c", "-x", "80", "-y", "24", "sh", script)
    wait_for(lambda: b"red 100" in tmux.run("capture-pane", "-p", "-t", "c"), "a hundred lines")
    save(perdure)
    text = perdure.ok("show", "latest", "c", "--scrollback").out
    assert "\x1b[31mred 1\x1b" in text
    assert "red 100" in text
    as_json = only_json(perdure.ok("show", "latest", "c:0.0", "--scrollback", "--json"))
    assert as_json["scrollback"] == text
    assert as_json["pane_id"] == tmux.show("#{pane_id}", "c")


def test_scrollback_is_kept_only_when_wanted(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "quiet", "sh", "-c", "echo private; exec sleep 1000")
    wait_for(lambda: b"private" in tmux.run("capture-pane", "-p", "-t", "quiet"), "the first line")
    save(perdure, "--no-scrollback")
    ran = perdure("show", "latest", "quiet", "--scrollback", "--json")
    assert ran.code == 3
    assert "No scrollback" in sentence(ran)


def test_diff_says_what_changed_since(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    _two_sessions(tmux, private_home.home)
    before = save(perdure)["snapshot"]
    assert only_json(perdure.ok("diff", before, "--json")) == {"a": before, "b": None, "changes": []}
    tmux.run("rename-window", "-t", "work:7", "renamed")
    tmux.run("new-session", "-d", "-s", "added")
    tmux.run("kill-session", "-t", "side")
    live = only_json(perdure.ok("diff", before, "--json"))["changes"]
    after = save(perdure)["snapshot"]
    kept = only_json(perdure.ok("diff", before, after, "--json"))
    assert (kept["a"], kept["b"]) == (before, after)
    assert kept["changes"] == live
    found = {(each["kind"], each["target"], each["change"], each["property"]) for each in live}
    assert {
        ("session", "added", "new", None),
        ("session", "side", "gone", None),
        ("window", "work:7", "changed", "name"),
    } <= found
    (name,) = [each for each in live if each["property"] == "name"]
    assert (name["before"], name["after"]) == ("logs", "renamed")
    text = perdure.ok("diff", before, after).out
    assert "+ session added" in text
    assert "- session side" in text
    assert "logs -> renamed" in text


def test_diff_with_a_server_that_is_gone_says_that_everything_is(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "one")
    before = save(perdure)["snapshot"]
    tmux.kill()
    changes = only_json(perdure.ok("diff", before, "--json"))["changes"]
    assert {(each["kind"], each["change"]) for each in changes} == {
        ("session", "gone"),
        ("window", "gone"),
        ("pane", "gone"),
    }


def test_check_says_that_everything_reads_back(perdure: Perdure, tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d")
    save(perdure)
    assert only_json(perdure.ok("check", "--json")) == {"ok": True, "problems": [], "repaired": []}
    assert perdure.ok("check").out == "Everything reads back.\n"
    assert only_json(perdure.ok("check", "--repair", "--json")) == {"ok": True, "problems": [], "repaired": []}


def test_the_bare_program_says_how_things_stand(perdure: Perdure, tmux: TmuxServer) -> None:
    empty = only_json(perdure.ok("--json"))
    assert empty["live"] == {"servers": 0, "silent": 0, "panes": 0, "agents": 0, "certain": 0, "states": {}}
    assert empty["saved"] == {"panes": 0, "agents": 0, "last_seen_at": None}
    assert "start tmux" in perdure.ok().out
    tmux.run("new-session", "-d")
    tmux.run("split-window")
    save(perdure)
    answer = only_json(perdure.ok("--json"))
    assert answer["live"] == {"servers": 1, "silent": 0, "panes": 2, "agents": 0, "certain": 0, "states": {}}
    assert (answer["saved"]["panes"], answer["saved"]["agents"]) == (2, 0)
    assert answer["saved"]["last_seen_at"]
    text = perdure.ok().out
    assert "2 panes on 1 tmux server," in text
    assert "perdure up" in text
    tmux.kill()
    assert "perdure restore" in perdure.ok().out


def test_people_can_read_what_is_printed(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    _two_sessions(tmux, private_home.home)
    tmux.run("rename-window", "-t", "work:0", "x" * 120)
    said = perdure.ok("save").out
    id = save(perdure)["snapshot"]
    assert said.count("\n") == 1
    assert id in said
    assert "4 panes in 3 windows of 2 sessions, 0 agents" in said
    listed = perdure.ok("ls").out
    assert [line.split()[0] for line in listed.splitlines()[2:]] == ["work:0.0", "work:0.1", "work:7.0", "side:0.0"]
    shown = perdure.ok("show", id).out
    assert id in shown
    assert "x" * 120 in shown
    kept = perdure.ok("history").out
    assert id in kept
    assert tmux.socket in kept
    assert "1 pane in 1 window of 1 session, 0 agents" in _saved_alone(perdure, tmux)


def _saved_alone(perdure: Perdure, tmux: TmuxServer) -> str:
    tmux.kill()
    tmux.run("new-session", "-d")
    settle(tmux)
    return perdure.ok("save").out


def test_before_anything_is_saved_people_are_told(perdure: Perdure) -> None:
    assert perdure.ok("history").out == "Nothing is saved yet. `perdure save` keeps what runs now.\n"
    assert only_json(perdure.ok("history", "--json")) == {"snapshots": []}
    assert "No tmux server" in perdure.ok("ls").out
    assert only_json(perdure.ok("ls", "--json")) == {"panes": []}
    assert only_json(perdure.ok("check", "--json"))["ok"]
