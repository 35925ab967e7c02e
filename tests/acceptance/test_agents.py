"""Which agent and which conversation is in a pane, from the processes and files a real one leaves."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.acceptance.fake_agent import ANOTHER, CONVERSATION, MODEL, FakeAgent
from tests.acceptance.kit import history, only_json, save, topology, wait_for
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the start time is read from /proc")

Make = Callable[..., FakeAgent]


def _row(perdure: Perdure, agent: FakeAgent) -> dict[str, Any]:
    rows = only_json(perdure.ok("ls", "--json"))["panes"]
    found: dict[str, Any] = next(row for row in rows if row["pane_id"] == agent.pane)
    return found


def test_a_registered_conversation_is_certain_and_described(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make
) -> None:
    agent = fake_agent(tmux, "work")
    agent.register()
    path = agent.write_transcript("fix the\nbuild")
    row = _row(perdure, agent)
    assert (row["agent"], row["conversation"]) == ("claude", CONVERSATION)
    assert (row["certain"], row["evidence"]) == (True, "registry")
    assert (row["model"], row["provider"]) == (MODEL, "anthropic")
    assert row["context_used"] == 10 + 200 + 3000 + 40
    assert row["task"] == "fix the build"
    assert row["branch"] == "trunk"
    assert row["transcript"] == path
    assert row["profile"] is None
    assert save(perdure)["agents"] == 1
    assert CONVERSATION in perdure.ok("ls").out
    assert "1 agent (1 known for certain)" in perdure.ok().out
    (pane,) = topology(perdure)["panes"]
    assert pane["identity"]["conversation"] == CONVERSATION
    assert pane["program"]["argv"][-1] == agent.script


def test_two_agents_in_one_directory_are_told_apart(perdure: Perdure, tmux: TmuxServer, fake_agent: Make) -> None:
    one, two = fake_agent(tmux, "one"), fake_agent(tmux, "two")
    one.register(CONVERSATION)
    two.register(ANOTHER)
    two.write_transcript("the second", ANOTHER)
    one.write_transcript("the first", CONVERSATION)
    assert [_row(perdure, each)["conversation"] for each in (one, two)] == [CONVERSATION, ANOTHER]
    assert [_row(perdure, each)["task"] for each in (one, two)] == ["the first", "the second"]


@pytest.mark.parametrize("wrong", ["start", "pid", "garbage"])
def test_a_registry_entry_that_does_not_fit_is_not_believed(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, wrong: str
) -> None:
    agent = fake_agent(tmux, "work")
    if wrong == "start":
        agent.register(started=agent.started - 1)
    elif wrong == "pid":
        agent.register(pid=1)
    else:
        agent.register()
        with open(os.path.join(agent.home, ".claude", "sessions", f"{agent.pid}.json"), "w") as file:
            file.write('{"pid":')
    row = _row(perdure, agent)
    assert (row["agent"], row["conversation"], row["certain"]) == ("claude", None, False)
    assert "unknown" in perdure.ok("ls").out


def test_a_conversation_is_claimed_by_one_pane_only(perdure: Perdure, tmux: TmuxServer, fake_agent: Make) -> None:
    sure = fake_agent(tmux, "sure")
    sure.register()
    sure.write_transcript("mine")
    unsure = fake_agent(tmux, "unsure", "--resume", CONVERSATION)
    assert (_row(perdure, sure)["conversation"], _row(perdure, sure)["certain"]) == (CONVERSATION, True)
    assert _row(perdure, unsure)["agent"] == "claude"
    assert _row(perdure, unsure)["conversation"] is None


@pytest.mark.parametrize("words", [["--resume", CONVERSATION], [f"--resume={CONVERSATION}"], ["-r", CONVERSATION]])
def test_the_command_line_tells_when_nothing_better_does(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make, words: list[str]
) -> None:
    FakeAgent.write_transcript(fake_agent(None, "before"), "earlier")
    agent = fake_agent(tmux, "work", *words)
    row = _row(perdure, agent)
    assert (row["conversation"], row["evidence"], row["certain"]) == (CONVERSATION, "argv", True)


def test_a_guess_is_shown_as_one(perdure: Perdure, tmux: TmuxServer, fake_agent: Make) -> None:
    agent = fake_agent(tmux, "work")
    agent.write_transcript("who knows")
    row = _row(perdure, agent)
    assert (row["conversation"], row["evidence"], row["certain"]) == (CONVERSATION, "guess", False)
    assert "guess ?" in perdure.ok("ls").out


def test_a_conversation_that_was_never_prompted_is_what_it_is(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make
) -> None:
    agent = fake_agent(tmux, "work")
    agent.register()
    row = _row(perdure, agent)
    assert (row["conversation"], row["certain"], row["prompted"]) == (CONVERSATION, True, False)


def test_what_was_certain_is_remembered_when_the_registry_is_gone(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make
) -> None:
    """An agent takes its registry entry away while it ends, and may do so just before a save."""
    agent = fake_agent(tmux, "work")
    agent.register()
    agent.write_transcript("keep me")
    good = save(perdure)["snapshot"]
    os.unlink(os.path.join(agent.home, ".claude", "sessions", f"{agent.pid}.json"))
    row = _row(perdure, agent)
    assert (row["conversation"], row["certain"]) == (CONVERSATION, True)
    save(perdure)
    for kept in history(perdure):
        (pane,) = topology(perdure, kept["id"])["panes"]
        assert pane["identity"]["conversation"] == CONVERSATION
    tmux.kill9()
    assert save(perdure)["reason"] == "no-server"
    (pane,) = topology(perdure, good)["panes"]
    assert pane["identity"]["conversation"] == CONVERSATION


def test_talking_on_makes_no_new_snapshot_but_another_conversation_does(
    perdure: Perdure, tmux: TmuxServer, fake_agent: Make
) -> None:
    agent = fake_agent(tmux, "work")
    agent.register()
    agent.write_transcript("first")
    first = save(perdure)
    agent.write_transcript("second")
    again = save(perdure)
    assert (again["result"], again["snapshot"]) == ("unchanged", first["snapshot"])
    agent.register(ANOTHER)
    agent.write_transcript("elsewhere", ANOTHER)
    assert save(perdure)["result"] == "saved"
    changes = only_json(perdure.ok("diff", first["snapshot"], "latest", "--json"))["changes"]
    assert [(each["before"], each["after"]) for each in changes if each["property"] == "conversation"] == [
        (CONVERSATION, ANOTHER)
    ]


def test_an_agent_that_ended_leaves_its_pane(perdure: Perdure, tmux: TmuxServer, fake_agent: Make) -> None:
    tmux.run("new-session", "-d", "-s", "base")
    tmux.run("set-option", "-g", "remain-on-exit", "on")
    agent = fake_agent(tmux, "work")
    agent.register()
    before = save(perdure)
    os.kill(agent.pid, signal.SIGKILL)
    wait_for(lambda: tmux.show("#{pane_dead}", agent.pane) == "1", "the agent's end")
    after = save(perdure)
    assert (before["agents"], after["agents"], after["panes"]) == (1, 0, 2)


def test_a_shell_with_an_agents_name_on_its_screen_is_no_agent(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome
) -> None:
    text = f"claude --resume {CONVERSATION} gpt-5 claude-opus"
    tmux.run("new-session", "-d", "-s", "words", "sh", "-c", f"echo {text}; exec sleep 1000")
    tmux.run("select-pane", "-t", "words", "-T", "claude")
    wait_for(lambda: b"opus" in tmux.run("capture-pane", "-p", "-t", "words"), "the words")
    (row,) = only_json(perdure.ok("ls", "--json"))["panes"]
    assert (row["agent"], row["conversation"]) == (None, None)
