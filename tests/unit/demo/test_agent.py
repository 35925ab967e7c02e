"""The simulated agent as whoever saves and restores agents meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from contextlib import suppress
from typing import Any

import pytest

from perdure.demo import agent
from perdure.demo.program import install
from tests.acceptance.kit import wait_for
from tests.conftest import PrivateHome
from tests.tmux_server import TmuxServer

ID = "5a1d7e2c-0b43-4f6e-9c38-2f1a6b7c8d90"


class Running:
    """Simulants on a private server."""

    def __init__(self, home: PrivateHome, tmux: TmuxServer) -> None:
        self.home = os.path.join(home.home, ".simulant")
        self.tmux = tmux
        self.program = install(home.root)
        tmux.run("new-session", "-d", "-s", "keep", "-x", "80", "-y", "24")

    def start(self, *args: str) -> str:
        """Start one in a window of its own, which stays after it, and return the pane."""
        made = self.tmux.run(
            "new-window", "-P", "-F", "#{pane_id}", "/bin/sh", "-c", '"$@"; read x', "sh", self.program, *args
        )
        return made.decode().strip()

    def shows(self, pane: str, text: str) -> None:
        """Wait until a text is on the screen."""
        wait_for(lambda: text in self.screen(pane), f"{text!r}")

    def screen(self, pane: str) -> str:
        return self.tmux.run("capture-pane", "-p", "-J", "-t", pane).decode()

    def type(self, pane: str, text: str) -> None:
        self.tmux.run("send-keys", "-t", pane, "-l", text)
        self.tmux.run("send-keys", "-t", pane, "Enter")

    def events(self) -> list[dict[str, Any]]:
        """Return what the record of starts says."""
        try:
            with open(os.path.join(self.home, "starts.jsonl")) as file:
                return [json.loads(line) for line in file]
        except FileNotFoundError:
            return []

    def registered(self) -> list[dict[str, Any]]:
        """Return the live registry."""
        folder = os.path.join(self.home, "running")
        found = []
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            # One that is being made has another name, and one may end while it is looked for.
            with suppress(FileNotFoundError):
                if name.endswith(".json"):
                    with open(os.path.join(folder, name)) as file:
                        found.append(json.load(file))
        return found

    def said(self, conversation: str) -> list[str]:
        """Return the texts of a conversation."""
        with open(os.path.join(self.home, "conversations", f"{conversation}.jsonl")) as file:
            return [text for line in file if (text := json.loads(line).get("text")) is not None]


@pytest.fixture
def running(private_home: PrivateHome, tmux: TmuxServer) -> Running:
    return Running(private_home, tmux)


def test_a_prompt_is_answered_and_a_resumed_conversation_shows_it_and_goes_on(running: Running) -> None:
    pane = running.start("--session", ID, "--think", "0.1", "hello there")
    running.shows(pane, "◈ Noted as number 1 of this conversation: hello there")
    running.type(pane, "/quit")
    wait_for(lambda: running.events()[-1]["event"] == "end", "its end")
    assert running.registered() == []
    pane = running.start("--resume", ID, "--think", "0.1")
    running.shows(pane, "you ▸ hello there")
    running.type(pane, "and now?")
    running.shows(pane, "Noted as number 2 of this conversation: and now?")
    assert running.said(ID)[0::2] == ["hello there", "and now?"]
    assert [(each["event"], each["id"]) for each in running.events()] == [
        ("start", ID),
        ("ready", ID),
        ("end", ID),
        ("start", ID),
        ("ready", ID),
    ]


def test_an_unknown_id_and_one_that_is_taken_end_it(running: Running) -> None:
    pane = running.start("--resume", ID)
    running.shows(pane, f"No conversation found with id {ID}")
    pane = running.start("--session", ID, "--think", "0", "hello")
    running.shows(pane, "Noted as number 1")
    running.type(pane, "/quit")
    wait_for(lambda: running.events()[-1]["why"] == "quit" if "why" in running.events()[-1] else False, "its end")
    running.shows(running.start("--session", ID), f"There is a conversation with id {ID} already")


def test_a_new_conversation_is_in_the_registry_at_once_and_has_no_file_before_something_is_said(
    running: Running,
) -> None:
    pane = running.start("--session", ID, "--think", "0", "hello")
    running.shows(pane, "Noted as number 1")
    running.type(pane, "/new")
    wait_for(lambda: [each["id"] for each in running.registered()] != [ID], "the switch")
    (entry,) = running.registered()
    assert not os.path.exists(os.path.join(running.home, "conversations", f"{entry['id']}.jsonl"))
    running.type(pane, "again")
    running.shows(pane, "Noted as number 1 of this conversation: again")
    assert running.said(entry["id"])[0] == "again"


def test_it_is_not_in_the_registry_before_it_has_started(running: Running) -> None:
    pane = running.start("--boot", "600")
    running.shows(pane, "starting…")
    assert running.registered() == []
    assert [each["event"] for each in running.events()] == ["start"]


def test_a_second_process_on_one_conversation_is_refused_and_written_down(running: Running) -> None:
    pane = running.start("--session", ID)
    running.shows(pane, "you ▸")
    running.shows(running.start("--session", ID), f"Conversation {ID} is open in another process")
    wait_for(lambda: running.events()[-1]["event"] == "end", "its end")
    assert [each["event"] for each in running.events()] == ["start", "ready", "start", "refused", "end"]


def test_it_asks_before_it_runs_something(running: Running) -> None:
    pane = running.start("--session", ID, "--think", "0", "run rm -r build")
    running.shows(pane, "  [y] yes  [n] no ▸")
    assert running.tmux.show("#{pane_title}", pane) == "◈ question · simulant"
    running.type(pane, "n")
    running.shows(pane, "◈ Not run.")


def test_it_is_busy_until_it_is_interrupted_and_its_title_says_so(running: Running) -> None:
    pane = running.start("--session", ID, "--think", "600", "think hard")
    running.shows(pane, "thinking… (")
    assert running.tmux.show("#{pane_title}", pane)[1:] == " think hard · simulant"
    running.tmux.run("send-keys", "-t", pane, "C-c")
    running.shows(pane, "◈ Interrupted.")


def test_what_is_typed_while_it_is_busy_is_answered_afterwards(running: Running) -> None:
    pane = running.start("--session", ID, "--think", "1", "first")
    running.shows(pane, "thinking… (")
    running.type(pane, "second")
    running.shows(pane, "Noted as number 2 of this conversation: second")
    assert "you ▸ second" in running.screen(pane)


def test_it_outlives_its_terminal_for_a_moment_and_then_leaves_the_registry(running: Running) -> None:
    # As long as whoever looks may be kept waiting on a busy machine.
    pane = running.start("--session", ID, "--lazy-death", "5")
    running.shows(pane, "you ▸")
    os.kill(running.tmux.pid, signal.SIGKILL)
    assert [each["id"] for each in running.registered()] == [ID]
    wait_for(lambda: running.registered() == [], "the end of its entry")
    wait_for(lambda: running.events()[-1]["event"] == "end", "its end")
    assert (running.events()[-1]["event"], running.events()[-1]["why"]) == ("end", "hangup")


@pytest.mark.parametrize(
    ("args", "status"),
    [
        (["--version"], 0),
        (["--help"], 0),
        (["--nonsense"], 2),
        (["--resume"], 2),
        (["--resume", "x"], 2),
        (["--boot", "x"], 2),
        ([], 1),
    ],
)
def test_wrong_and_other_invocations_end_at_once(running: Running, args: list[str], status: int) -> None:
    done = subprocess.run([running.program, *args], stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert running.events() == []


def test_ids_are_uuids_and_differ() -> None:
    made = {agent.new_id() for _ in range(100)}
    assert len(made) == 100
    assert all(each[14] == "4" and each[19] in "89ab" and len(each) == 36 for each in made)
