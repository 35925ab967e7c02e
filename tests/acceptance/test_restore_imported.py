"""Manifests of earlier scripts, brought back as those scripts do."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from tests.acceptance.kit import configure, only_json, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: The shell whose files the tests write.
BASH = {"SHELL": "/bin/bash"}
CONVERSATION = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def agents(private_home: PrivateHome) -> str:
    """Programs called like the agents, which only say what they were given; found through the user's own shell."""
    folder = os.path.join(private_home.home, "bin")
    os.makedirs(folder)
    for name in ("hermes", "claude"):
        path = os.path.join(folder, name)
        with open(path, "w") as file:
            file.write('#!/bin/sh\nprintf "[%s]" "$0" "$@"\nread _\n')
        os.chmod(path, 0o755)
    with open(os.path.join(private_home.home, ".bashrc"), "w") as file:
        file.write(f"PATH={folder}:$PATH\n")
    configure(private_home, "[restore]\nverify_seconds = 2")
    return folder


def await_text(tmux: TmuxServer, session: str, text: str) -> None:
    """Wait until a session shows something last, such as what the program in it was started with."""
    screen = ""

    def is_shown() -> bool:
        nonlocal screen
        screen = tmux.run("capture-pane", "-pJ", "-t", f"={session}:").decode()
        return screen.strip().endswith(text)

    try:
        wait_for(is_shown, text)
    except AssertionError as error:
        raise AssertionError(screen) from error


def imported(perdure: Perdure, format: str, path: str) -> str:
    found: str = only_json(perdure.ok("import", format, path, "--json"))["snapshot"]
    return found


def a_pane(address: str, number: int, **more: object) -> dict[str, object]:
    return {
        "address": address,
        "pane_id": f"%{number}",
        "pid": 1,
        "size": "80x24",
        "active": True,
        "command": "python3",
        "title": "",
        "is_hermes": True,
        **more,
    }


def a_manifest(path: str, names: list[str], panes: list[dict[str, object]]) -> None:
    sessions = [
        {
            "name": name,
            "windows": 1,
            "created_epoch": 1,
            "created": "x",
            "attached": False,
            "group": "",
            "id": f"${number}",
        }
        for number, name in enumerate(names)
    ]
    summary = {"active_pane": None}
    manifest = {"version": 1, "timestamp": "2026-04-13T21:26:03+00:00", "sessions": sessions, "panes": panes}
    with open(path, "w") as file:
        json.dump({**manifest, "summary": summary}, file)


def test_a_tmux_state_manifest_resumes_hermes_and_leaves_the_log(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, agents: str
) -> None:
    path = os.path.join(private_home.root, "tmux-state.json")
    panes = [
        a_pane("BURN:2.0", 0, session_id="20260101_abc", profile="burn"),
        a_pane("dev:0.0", 1, profile="my profile"),
        a_pane("there:0.0", 2, session_id="20260101_def"),
    ]
    a_manifest(path, ["BURN", "dev", "there"], panes)
    snapshot = imported(perdure, "tmux-state", path)
    tmux.run("new-session", "-d", "-s", "there", ";", "set-option", "-g", "default-shell", "/bin/bash")

    answer = only_json(perdure("restore", "--from", snapshot, "--json", env=BASH))

    steps: dict[str, Any] = {step["target"]: step for step in answer["steps"]}
    assert steps["BURN:2.0"]["argv"] == ["hermes", "chat", "--resume", "20260101_abc"]
    await_text(tmux, "BURN", "[chat][--resume][20260101_abc]")
    await_text(tmux, "dev", "[chat][--profile][my profile]")
    assert steps["there:0.0"]["result"] == "skipped"
    assert tmux.show("#{window_index}", "=BURN:") == "2"
    with open(os.path.join(private_home.home, ".timmy", "tmux-resume.log")) as file:
        log = json.load(file)
    assert list(log) == ["resumed_at", "manifest_age", "restored", "skipped"]
    assert (log["restored"], log["skipped"]) == (2, 1)
    assert log["manifest_age"].endswith("m ago")


def test_a_dry_run_leaves_no_log(perdure: Perdure, private_home: PrivateHome, agents: str) -> None:
    path = os.path.join(private_home.root, "tmux-state.json")
    a_manifest(path, ["a"], [a_pane("a:0.0", 0, session_id="20260101_abc")])
    perdure.ok("restore", "--from", imported(perdure, "tmux-state", path), "--dry-run")
    assert not os.path.exists(os.path.join(private_home.home, ".timmy"))


@pytest.mark.parametrize("flags", [[], ["--dangerously-skip-permissions"]])
def test_a_tmux_persist_manifest_gets_no_flag_nobody_asked_for(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, agents: str, flags: list[str]
) -> None:
    configure(private_home, f"[restore]\nverify_seconds = 2\ntmux_persist_flags = {json.dumps(flags)}")
    path = os.path.join(private_home.root, "dev.tsv")
    gone = os.path.join(private_home.home, "gone", "below")
    with open(path, "w") as file:
        file.write(f"my work\t{private_home.home}\t{CONVERSATION}\nplain\t{gone}\t\n")

    answer = only_json(perdure("restore", "--from", imported(perdure, "tmux-persist", path), "--json", env=BASH))

    words = [*flags, "--resume", CONVERSATION, "--name", "my work"]
    await_text(tmux, "my work", "".join(f"[{word}]" for word in words))
    plain = next(step for step in answer["steps"] if step["target"] == "plain:0.0")
    assert (plain["action"], plain["cwd"], plain["result"]) == ("shell", private_home.home, "done")
    assert gone in plain["why"]
    # The program ends, and its shell stays.
    tmux.run("send-keys", "-t", "=my work:", "Enter")
    wait_for(lambda: b"ended with status" in tmux.run("capture-pane", "-p", "-t", "=my work:"), "its end")
    wait_for(lambda: tmux.show("#{pane_current_command}", "=my work:") == "bash", "a shell")
