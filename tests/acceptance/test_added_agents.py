"""An agent of the user's own, told in config.toml and nowhere else."""

from __future__ import annotations

import os
import sys

import pytest

from tests.acceptance.kit import only_json, sentence, settle, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="command lines are read from /proc")

CONFIG = r"""
[agents.ren]
binaries = ["ren"]
not_agents = ["serve"]
environment = ["REN_HOME"]
id = 'chat-[0-9]+'
keep = ["-m, --model <name>"]
resume = ["--open", "{id}"]
transcripts = ["$REN_HOME/{id}.log", "~/.ren/{id}.log"]

[[agents.ren.screen]]
id = "approval"
match = '^Run it\? y/n$'
region = "last"
state = "attention"
reason = "permission"
"""


@pytest.fixture
def config(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> str:
    path = os.path.join(private_home.root, "config.toml")
    monkeypatch.setenv("PERDURE_CONFIG", path)
    with open(path, "w") as file:
        file.write(CONFIG)
    return path


def start(tmux: TmuxServer, home: PrivateHome, *args: str) -> str:
    script = os.path.join(home.root, "ren")
    with open(script, "w") as file:
        file.write("#!/bin/sh\necho 'Run it? y/n'\nwhile :; do sleep 1000; done\n")
    os.chmod(script, 0o755)
    return (
        tmux.run("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", "mine", "/bin/sh", script, *args).decode().strip()
    )


def test_it_is_recognised_saved_read_and_brought_back(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, config: str
) -> None:
    os.makedirs(os.path.join(private_home.home, ".ren"))
    with open(os.path.join(private_home.home, ".ren", "chat-7.log"), "w") as file:
        file.write("hello\n")
    pane = start(tmux, private_home, "--open", "chat-7", "-m", "big", "fix it")
    settle(tmux)
    wait_for(lambda: b"Run it?" in tmux.run("capture-pane", "-p", "-t", pane), "the screen")
    (row,) = only_json(perdure.ok("ls", "--json"))["panes"]
    assert (row["agent"], row["conversation"], row["evidence"], row["certain"]) == ("ren", "chat-7", "argv", True)
    assert row["transcript"] == os.path.join(private_home.home, ".ren", "chat-7.log")
    assert only_json(perdure.ok("save", "--json"))["servers"][0]["agents"] == 1
    said = only_json(perdure.ok("explain", "mine", "--json"))
    assert said["resume"][2:] == ["-m", "big", "--open", "chat-7"]
    assert (said["screen"]["state"], said["screen"]["reason"], said["screen"]["rule"]) == (
        "attention",
        "permission",
        "ren.approval",
    )


def test_its_other_runs_are_no_agents(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, config: str
) -> None:
    start(tmux, private_home, "serve")
    settle(tmux)
    (row,) = only_json(perdure.ok("ls", "--json"))["panes"]
    assert row["agent"] is None


@pytest.mark.parametrize("command", ["ls", "save", "explain"])
def test_every_mistake_is_named_in_a_sentence(perdure: Perdure, config: str, command: str) -> None:
    with open(config, "a") as file:
        file.write("[agents.Two]\nbinaries = ['bash']\n[agents.three]\nbinary = 'x'\n")
    ran = perdure(command, *(["x"] if command == "explain" else []))
    assert ran.code == 2
    assert "Traceback" not in ran.err
    lines = ran.err.splitlines()
    assert len(lines) == 3
    assert "[agents.Two]: its name" in lines[0]
    assert "runs other programs" in lines[1]
    assert "[agents.three]" in lines[2]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("[agents.claude]\nbinaries = ['x']\n", "[agents.claude] is left out"),
        ("[agents.mine]\nbinaries = ['claude']\n", "that is the agent claude"),
    ],
)
def test_an_agent_perdure_knows_itself_stays_what_it_is_and_saves_go_on(
    perdure: Perdure, config: str, tmux: TmuxServer, table: str, said: str
) -> None:
    """A later version may know what somebody had to describe: that must not stop their saves."""
    tmux.run("new-session", "-d")
    with open(config, "w") as file:
        file.write(table)
    ran = perdure.ok("save")
    assert said in sentence(ran)
    assert "saved" in ran.out


@pytest.mark.parametrize("text", ["agents = false", "agents = []", "agents = ''", "agents = 3"])
def test_agents_that_are_no_tables_are_refused(perdure: Perdure, config: str, text: str) -> None:
    with open(config, "w") as file:
        file.write(text)
    ran = perdure("save")
    assert ran.code == 2
    assert "must be tables" in sentence(ran)
