"""The files of earlier scripts: written exactly, read exactly, never replaced by less than they hold."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.fake_agent import CONVERSATION, MODEL, FakeAgent
from tests.acceptance.kit import configure, history, only_json, save, sentence, settle, snapshot
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

MANIFEST = ["version", "timestamp", "timestamp_epoch", "hostname", "sessions", "panes", "summary"]
SESSION = {
    "name": str,
    "windows": int,
    "created_epoch": int,
    "created": str,
    "attached": bool,
    "group": str,
    "id": str,
}
PANE = [
    "address",
    "pane_id",
    "pid",
    "size",
    "active",
    "command",
    "title",
    "profile",
    "model",
    "provider",
    "session_id",
    "task",
    "context_pct",
    "is_hermes",
]
SUMMARY = ["total_sessions", "total_panes", "hermes_panes", "active_pane", "active_model", "active_provider"]


def _read(path: str) -> dict[str, Any]:
    with open(path) as file:
        found: dict[str, Any] = json.load(file)
    return found


def _exists(home: PrivateHome, *parts: str) -> bool:
    return os.path.exists(os.path.join(home.home, *parts))


def test_tmux_state_has_exactly_its_fields(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, fake_agent: Callable[..., FakeAgent]
) -> None:
    agent = fake_agent(tmux, "pipe|sess")
    agent.register()
    agent.write_transcript("fix the build")
    path = os.path.join(private_home.root, "state.json")
    assert only_json(perdure.ok("export", "tmux-state", "--to", path, "--json")) == {"written": [path], "failed": []}
    manifest = _read(path)
    assert list(manifest) == MANIFEST
    assert (manifest["version"], manifest["hostname"]) == (1, os.uname().nodename)
    assert manifest["timestamp"].endswith("+00:00")
    assert isinstance(manifest["timestamp_epoch"], int)
    (session,) = manifest["sessions"]
    assert {name: type(value) for name, value in session.items()} == SESSION
    (pane,) = manifest["panes"]
    assert list(pane) == PANE
    assert (pane["address"], pane["pane_id"], pane["pid"]) == ("pipe|sess:0.0", agent.pane, agent.pid)
    assert (pane["session_id"], pane["model"], pane["provider"]) == (CONVERSATION, MODEL, "anthropic")
    assert (pane["task"], pane["is_hermes"]) == ("fix the build", False)
    assert list(manifest["summary"]) == SUMMARY
    assert (manifest["summary"]["total_panes"], manifest["summary"]["active_pane"]) == (1, "pipe|sess:0.0")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600


def test_tmux_state_goes_to_its_two_places_or_to_those_named(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run("new-session", "-d")
    named = [os.path.join(private_home.root, "deep", name) for name in ("a", "b", "c")]
    perdure.ok("export", "tmux-state", "--to", *named[:2], "--to", named[2])
    assert all(_read(path)["version"] == 1 for path in named)
    assert not _exists(private_home, ".timmy")
    perdure.ok("export", "tmux-state")
    places = [os.path.join(private_home.home, name, "tmux-state.json") for name in (".timmy", ".hermes")]
    assert _read(places[0]) == _read(places[1])


def test_an_export_is_never_replaced_by_an_empty_one(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    tmux.run("new-session", "-d", "-s", "precious", "-c", "/")
    settle(tmux)
    directory = os.path.join(private_home.root, "persist")
    exports = [["export", "tmux-state"], ["export", "tmux-persist", "--dir", directory]]
    for args in exports:
        perdure.ok(*args)
    (name,) = os.listdir(directory)
    tmux.kill9()
    for args in exports:
        perdure.ok(*args)
    assert [
        each["name"] for each in _read(os.path.join(private_home.home, ".timmy", "tmux-state.json"))["sessions"]
    ] == ["precious"]
    with open(os.path.join(directory, name)) as file:
        assert file.read() == "precious\t/\t\n"


def test_with_nothing_saved_there_is_nothing_to_export(perdure: Perdure, private_home: PrivateHome) -> None:
    ran = perdure("export", "tmux-state", "--json")
    assert ran.code == 3
    sentence(ran)
    assert not _exists(private_home, ".timmy")


def test_tmux_persist_is_a_line_a_session(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, fake_agent: Callable[..., FakeAgent]
) -> None:
    agent = fake_agent(tmux, "agent")
    agent.register()
    agent.write_transcript("go")
    tmux.run("new-session", "-d", "-s", "a b|c", "-c", "/", "sleep", "1000")
    odd = os.path.join(private_home.home, "line\nbreak")
    os.mkdir(odd)
    tmux.run("new-session", "-d", "-s", "odd", "-c", odd, "sleep", "1000")
    settle(tmux)
    directory = os.path.join(private_home.root, "persist")
    ran = perdure.ok("export", "tmux-persist", "--dir", directory)
    user = save(perdure)["user"]
    assert ran.out == f"wrote {os.path.join(directory, user)}.tsv\n"
    assert ran.err.count("\n") == 1
    with open(os.path.join(directory, f"{user}.tsv")) as file:
        lines = file.read().splitlines()
    home = os.path.realpath(private_home.home)
    assert sorted(lines) == sorted([f"agent\t{home}\t{CONVERSATION}", "a b|c\t/\t", f"odd\t{home}\t"])
    assert stat.S_IMODE(os.stat(os.path.join(directory, f"{user}.tsv")).st_mode) == 0o600


def test_both_are_written_with_every_save_when_that_is_configured(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    directory = os.path.join(private_home.root, "persist")
    configure(private_home, f"[export]\non_save = true\ntmux_persist_dir = '{directory}'\n")
    tmux.run("new-session", "-d", "-s", "one", "-c", "/")
    user = save(perdure)["user"]
    state = os.path.join(private_home.home, ".hermes", "tmux-state.json")
    assert [each["name"] for each in _read(state)["sessions"]] == ["one"]
    tmux.run("new-session", "-d", "-s", "two", "-c", "/")
    save(perdure)
    assert len(_read(state)["sessions"]) == 2
    with open(os.path.join(directory, f"{user}.tsv")) as file:
        assert [line.split("\t")[0] for line in file] == ["one", "two"]
    tmux.kill9()
    save(perdure)
    assert len(_read(state)["sessions"]) == 2


def test_an_export_that_cannot_be_written_does_not_cost_the_save(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    blocked = os.path.join(private_home.root, "blocked")
    with open(blocked, "w"):
        pass
    configure(private_home, f"[export]\non_save = true\ntmux_persist_dir = '{blocked}'\n")
    tmux.run("new-session", "-d", "-s", "one")
    ran = perdure.ok("save", "--json")
    assert only_json(ran)["servers"][0]["result"] == "saved"
    assert blocked in sentence(ran)
    assert _exists(private_home, ".timmy", "tmux-state.json")


def test_what_was_exported_can_be_imported(perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome) -> None:
    tmux.run("new-session", "-d", "-s", "one", "-n", "w", "-c", "/")
    tmux.run("split-window", "-t", "one", "-c", "/")
    tmux.run("new-session", "-d", "-s", "日本", "-c", "/")
    settle(tmux)
    state = os.path.join(private_home.root, "state.json")
    perdure.ok("export", "tmux-state", "--to", state)
    perdure.ok("export", "tmux-persist", "--dir", private_home.root)
    good = snapshot(perdure)["id"]
    user = save(perdure)["user"]
    for format, path, panes in (
        ("tmux-state", state, 3),
        ("tmux-persist", os.path.join(private_home.root, f"{user}.tsv"), 2),
    ):
        answer = only_json(perdure.ok("import", format, path, "--json"))
        assert (answer["result"], answer["sessions"], answer["panes"]) == ("saved", 2, panes)
        names = {each["name"] for each in snapshot(perdure, answer["snapshot"])["topology"]["sessions"]}
        assert names == {"one", "日本"}
        assert only_json(perdure.ok("import", format, path, "--json"))["result"] == "unchanged"
    assert {row["origin"] for row in history(perdure)} == {"capture", "tmux-state", "tmux-persist"}
    assert snapshot(perdure)["id"] == good, "an import is not what was last seen"
    tmux.kill9()
    assert save(perdure)["snapshot"] == good, "an import is no last good state of a server"


RESURRECT = "".join(
    "\t".join(columns) + "\n"
    for columns in [
        ("pane", "main", "0", "1", ":*", "0", "a title", ":/tmp", "1", "vim", ":vim notes"),
        ("window", "main", "0", ":editor", "1", ":*", "b25d,80x24,0,0,0", ":"),
        ("state", "main", ""),
    ]
)


def test_a_save_of_tmux_resurrect_can_be_imported(perdure: Perdure, private_home: PrivateHome) -> None:
    path = os.path.join(private_home.root, "tmux_resurrect_20260102T030405.txt")
    with open(path, "w") as file:
        file.write(RESURRECT)
    answer = only_json(perdure.ok("import", "resurrect", path, "--json"))
    assert (answer["sessions"], answer["windows"], answer["panes"]) == (1, 1, 1)
    kept = snapshot(perdure, answer["snapshot"])
    assert (kept["origin"], kept["topology"]["windows"][0]["name"]) == ("resurrect", "editor")
    assert kept["topology"]["panes"][0]["cwd"] == "/tmp"
    said = perdure.ok("import", "resurrect", path).out
    assert said == f"Already there: {answer['snapshot']} (1 session, 1 window, 1 pane, 0 agents)\n"


@pytest.mark.parametrize(
    ("format", "text", "line"),
    [
        ("tmux-persist", "one\t/\t\ntwo\t/\n", 2),
        ("tmux-persist", "one\t/\t\n\t/\t\n", 2),
        ("tmux-persist", "one\t/\t\none\t/\t\n", 2),
        ("tmux-persist", "ag_12180_/tmp/w\t\t\n", 1),
        ("tmux-persist", "one\t/\tnot-an-id\n", 1),
        ("tmux-state", "{", 1),
        ("tmux-state", '{\n"version": 1,\n"sessions": [\n', 4),
        ("tmux-state", '{\n"version": 2}', 2),
        ("tmux-state", "[]", 1),
        ("resurrect", RESURRECT + "pane\tmain\n", 4),
        ("resurrect", RESURRECT.replace("\t0\t1\t:*\t0\t", "\tx\t1\t:*\t0\t", 1), 1),
    ],
)
def test_a_broken_file_is_one_sentence_with_its_line(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, format: str, text: str, line: int
) -> None:
    tmux.run("new-session", "-d")
    save(perdure)
    before = history(perdure)
    path = os.path.join(private_home.root, "broken")
    with open(path, "w") as file:
        file.write(text)
    ran = perdure("import", format, path, "--json")
    assert ran.code == 1, ran
    assert f"line {line}" in sentence(ran).lower()
    assert only_json(ran)["error"]["code"] == 1
    assert history(perdure) == before


@pytest.mark.parametrize("format", ["tmux-state", "tmux-persist", "resurrect"])
@pytest.mark.parametrize("raw", [b"", b"\x00\xff" * 500, b"\n\n\n", b"null", b'{"version":1}', b"\t\t\t\t\n"])
def test_a_file_of_anything_is_one_sentence(
    perdure: Perdure, private_home: PrivateHome, format: str, raw: bytes
) -> None:
    path = os.path.join(private_home.root, "anything")
    with open(path, "wb") as file:
        file.write(raw)
    ran = perdure("import", format, path, "--json")
    assert ran.code == 1, ran
    sentence(ran)
    assert history(perdure) == []
