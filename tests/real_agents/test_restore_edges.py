"""Real agents that come back from where it is easy to mix them up, and those that cannot come back at all."""

from __future__ import annotations

import glob
import os
import sqlite3
from contextlib import closing

import pytest

from perdure.model.screen import State
from tests.real_agents.coming_back import (
    Back,
    answers_to,
    crash,
    crash_and_restore,
    own_screen,
    prepare,
    restore,
    start_all,
    targets_of,
    wait_for_words,
)
from tests.real_agents.kit import Agent, Stage
from tests.real_agents.seeing import wait_until

pytestmark = pytest.mark.real_agent


def is_verified(back: Back, agent: Agent) -> None:
    assert (back.row(agent)["action"], back.row(agent)["result"]) == ("resume", "verified"), back.row(agent)


def has_a_shell(agent: Agent) -> None:
    """See that a person can type a command into the pane."""
    agent.wait_for(r"(?m)^\$ ?$")
    agent.type("echo still $((40 + 2))")
    agent.wait_for(r"(?m)^still 42$")


def test_two_in_one_directory_and_the_conversation_after_a_new_one(stage: Stage) -> None:
    names = prepare(stage, ("claude", "codex", "gemini", "copilot"))
    one, two = start_all(stage, names), start_all(stage, names)
    answers_to({agent: f"old words of {agent.program.name}" for agent in one})
    for agent in one:
        agent.new_conversation()
    for agent in one:
        agent.wait_for(lambda screen: "old words" not in screen)
        agent.wait_until_still()
    spoken = {agent: f"new words of {agent.program.name}" for agent in one}
    spoken |= {agent: f"other words of {agent.program.name}" for agent in two}
    answers_to(spoken)
    back = crash_and_restore(stage, [*one, *two])
    assert back.code == 0, back.said
    for agent, words in spoken.items():
        is_verified(back, agent)
        wait_for_words(agent, words)
        assert "old words" not in own_screen(agent), agent
    for agent, seen in answers_to({agent: f"more {words}" for agent, words in spoken.items()}).items():
        said = [each for each in ("old words", "new words", "other words") if f"{each} of" in seen.body]
        assert said == [spoken[agent].partition(" of")[0]], agent


def test_never_asked_anything_and_killed_in_the_middle_of_a_turn(stage: Stage) -> None:
    names = prepare(stage, ("claude", "codex", "gemini", "qwen"))
    flags = {
        "claude": ("--permission-mode", "plan"),
        "codex": ("--search",),
        "gemini": ("--approval-mode", "auto_edit"),
        "qwen": ("--approval-mode", "plan"),
    }
    fresh = start_all(stage, names, flags)
    busy = start_all(stage, names)
    for agent in fresh:
        wait_until(agent, State.IDLE)
    answers_to({agent: f"first words of {agent.program.name}" for agent in busy})
    for agent in busy:
        agent.type(f"[[delay=20]] slow words of {agent.program.name}")
        agent.wait_for_request(f"slow words of {agent.program.name}")
    back = crash_and_restore(stage, [*fresh, *busy])
    assert back.code == 0, back.said
    for agent in fresh:
        row = back.row(agent)
        assert (row["action"], row["result"] in ("done", "verified")) == ("start", True), row
        assert " ".join(flags[agent.program.name]) in " ".join(row["argv"]), row
    for agent in busy:
        is_verified(back, agent)
        wait_for_words(agent, f"first words of {agent.program.name}")
    last = {agent: f"at last to {agent.program.name}" for agent in fresh}
    last |= {agent: f"once more to {agent.program.name}" for agent in busy}
    for agent, seen in answers_to(last).items():
        assert (f"first words of {agent.program.name}" in seen.body) is (agent in busy), agent


def test_a_transcript_that_is_gone_is_told_and_leaves_a_shell(stage: Stage) -> None:
    names = prepare(stage, ("claude", "codex", "gemini", "copilot"))
    agents = start_all(stage, names)
    answers_to({agent: f"first words of {agent.program.name}" for agent in agents})
    targets = targets_of(agents)
    stage.save()
    saved = {agent: agent.row() for agent in agents}
    crash(stage, agents)
    for row in saved.values():
        os.unlink(row["transcript"])
    back = restore(stage, targets)
    for agent in agents:
        row = back.row(agent)
        # Of gemini there might have been a copy, so that is only known when it was about to start.
        copied = agent.program.name == "gemini"
        assert (row["action"], row["result"]) == (("resume", "failed") if copied else ("show", "skipped")), row
        assert row["conversation"] == saved[agent]["conversation"]
        assert ("no whole transcript of" if copied else "is gone") in row["why"]
        agent.wait_for(r"was not started: (?:the|no whole) transcript of")
        assert saved[agent]["conversation"] in own_screen(agent).replace("\n", "")
        has_a_shell(agent)


def test_what_gemini_deletes_is_put_back(stage: Stage) -> None:
    """It deletes conversations as it starts; a copy is made before every resume."""
    agents = start_all(stage, prepare(stage, ("gemini",)))
    answers_to(dict.fromkeys(agents, "first words of gemini"))
    assert crash_and_restore(stage, agents).code == 0
    stage.save()
    targets = targets_of(agents)
    crash(stage, agents)
    for path in glob.glob(stage.path(".gemini/tmp/*/chats/*.jsonl")):
        os.unlink(path)
    back = restore(stage, targets)
    for agent in agents:
        is_verified(back, agent)
        wait_for_words(agent, "first words of gemini")


def forget(path: str, *orders: str) -> None:
    """Take conversations out of an agent's own database."""
    with closing(sqlite3.connect(path)) as database, database:
        for order in orders:
            database.execute(order)


def test_an_unknown_conversation_fails_with_the_agents_own_words_and_leaves_a_shell(stage: Stage) -> None:
    names = prepare(stage, ("opencode", "goose"))
    agents = start_all(stage, names)
    answers_to({agent: f"first words of {agent.program.name}" for agent in agents})
    targets = targets_of(agents)
    stage.save()
    saved = {agent: agent.row()["conversation"] for agent in agents}
    crash(stage, agents)
    forget(stage.path(".local/share/opencode/opencode.db"), "DELETE FROM session")
    for path in glob.glob(stage.path(".local/share/goose/sessions/*.db")):
        forget(path, "DELETE FROM messages", "DELETE FROM sessions")
    back = restore(stage, targets)
    assert back.code == 4
    messages = {"opencode": "Session not found", "goose": "no such session exists"}
    for agent in agents:
        row = back.row(agent)
        assert (row["action"], row["result"], row["conversation"]) == ("resume", "failed", saved[agent]), row
        assert messages[agent.program.name] in " ".join(row["screen"]), row
        agent.wait_for(r"To try again: ")
        assert saved[agent] in own_screen(agent).replace("\n", "")
        has_a_shell(agent)
