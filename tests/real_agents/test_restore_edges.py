"""Three of each real agent in one directory: where it is easy to mix them up, and what cannot come back at all."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from perdure.model.screen import State
from tests.real_agents.agents import PROGRAMS
from tests.real_agents.coming_back import (
    Back,
    answers_to,
    begin_anew,
    crash,
    own_screen,
    prepare,
    press_enter,
    restore,
    start_all,
    targets_of,
    wait_for_words,
)
from tests.real_agents.kit import Agent, Stage
from tests.real_agents.seeing import wait_until

pytestmark = pytest.mark.real_agent

#: How each tells by itself, before anybody has said a word in it, which conversation it is in. Goose does not.
OWN_WORD = {
    "claude": "registry",
    "codex": "registry",
    "gemini": "hook",
    "qwen": "hook",
    "opencode": "hook",
    "copilot": "registry",
    "cline": "registry",
    "hermes": "hook",
}
#: What else proves it. Which of them comes first depends on how busy the machine is.
SHOWN = ("known by argv, and what was last asked is on its screen", "known by argv, and its title has the same name")
#: Flags that have to come back with one in which nothing was ever said.
FLAGS: Mapping[str, tuple[str, ...]] = {
    "claude": ("--permission-mode", "plan"),
    "codex": ("--search",),
    "gemini": ("--approval-mode", "auto_edit"),
    "qwen": ("--approval-mode", "plan"),
    "opencode": ("--agent", "build"),
    "copilot": ("--allow-tool=shell(true)",),
    "hermes": ("--yolo",),
}
#: Those whose conversations are rows of a database: where it is, and which rows.
ROWS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "opencode": (".local/share/opencode/opencode.db", {"session": "id"}),
    "goose": (".local/share/goose/sessions/sessions.db", {"messages": "session_id", "sessions": "id"}),
    "hermes": (".hermes/state.db", {"messages": "session_id", "sessions": "id"}),
}
#: What each says itself of a conversation it does not find.
UNKNOWN = {
    "hermes": "Session not found",
    "claude": "No conversation found",
    "codex": "No saved session found",
    "qwen": "ended with status 1",
    "copilot": "could not be loaded",
    "opencode": "Session not found",
    "goose": "no such session exists",
}
#: Those that stay open all the same.
STAYING = ("hermes",)
#: Those that would as well, and not say a word: they are not started.
SILENT = ("cline",)
EVERYTHING = ("old", "first", "second", "other", "slow", "third", "more", "late")
#: What is said is so long that it is known on a screen wherever it stands.
TAIL = "words that were said"


class Trio(NamedTuple):
    """Three of an agent in one directory."""

    #: It has begun a new conversation, and was asked twice in that.
    anew: Agent
    #: The server dies while it works.
    busy: Agent
    #: Nothing was ever said in it.
    fresh: Agent


def start_three(stage: Stage, name: str) -> Trio:
    """Start them one after the other, and bring each to where it is to be when the server dies."""
    prepare(stage, (name,))
    agents = []
    for flags in (FLAGS.get(name, ()), (), ()):
        agents += start_all(stage, (name,), {name: flags})
        if name == "goose":
            # Two that start in the same second share a log, which then makes neither certain.
            time.sleep(1)
    # Last the one that works: as a gemini starts it takes the head off what others of its directory have not used yet.
    fresh, anew, busy = agents
    answers_to({anew: f"old {TAIL}", busy: f"other {TAIL}"})
    begin_anew(anew, f"old {TAIL}")
    for words in (f"first {TAIL}", f"second {TAIL}"):
        answers_to({anew: words})
    busy.type(f"[[hold]] slow {TAIL}")
    busy.wait_for_request(f"slow {TAIL}")
    return Trio(anew, busy, fresh)


def crash_and_come_back(stage: Stage, trio: Trio) -> Back:
    """Save, kill the server with -9 in the middle of a turn, and bring everything back at once."""
    targets = targets_of(trio)
    stage.save()
    stage.tmux.kill9()
    # What has no terminal goes on without one, and is to come to an end.
    stage.stub.let_go(1)
    return restore(stage, targets)


def all_are_back(back: Back, trio: Trio) -> None:
    """See that each is proved to be in its own conversation, and shows it."""
    name = trio.anew.program.name
    assert back.code == 0, back.said
    for agent in (trio.anew, trio.busy):
        row = back.row(agent)
        assert (row["action"], row["result"]) == ("resume", "verified"), row
        assert row["why"] in (f"known by {OWN_WORD.get(name)}", *SHOWN), row
    row = back.row(trio.fresh)
    assert (row["action"], row["result"] in ("done", "verified")) == ("start", True), row
    assert " ".join(FLAGS.get(name, ())) in " ".join(row["argv"]), row
    wait_for_words(trio.anew, f"first {TAIL}", f"second {TAIL}")
    assert f"old {TAIL}" not in own_screen(trio.anew), trio.anew
    wait_for_words(trio.busy, f"other {TAIL}")


def all_go_on(stage: Stage, trio: Trio) -> None:
    """See that what they are asked next goes to the model below what was said in their own conversation, and no other."""
    seen = answers_to({trio.anew: f"third {TAIL}", trio.busy: f"more {TAIL}", trio.fresh: f"late {TAIL}"})
    heard = {agent: [each for each in EVERYTHING if f"{each} {TAIL}" in seen[agent].body] for agent in trio}
    assert heard[trio.anew] == ["first", "second", "third"]
    # What was not answered when the server died is not always kept.
    assert [each for each in heard[trio.busy] if each != "slow"] == ["other", "more"]
    assert heard[trio.fresh] == ["late"]
    again = stage.perdure.ok("restore", "--json").json
    assert {(row["action"], row["result"]) for row in again["steps"]} == {("keep", "skipped")}


def has_a_shell(agent: Agent) -> None:
    """See that a person can type a command into the pane."""
    agent.wait_for(r"(?m)^\$ ?$")
    agent.type("echo still $((40 + 2))")
    agent.wait_for(r"(?m)^still 42$")


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "aider"])
def test_each_is_back_in_its_own_conversation_or_says_why_not(stage: Stage, name: str) -> None:
    trio = start_three(stage, name)
    if name == "gemini":
        # It names a transcript by the minute: one that is resumed in another minute gets a second file, as in life.
        time.sleep(60 - time.time() % 60)
    all_are_back(crash_and_come_back(stage, trio), trio)
    all_go_on(stage, trio)
    if name in ROWS:
        answer_at_length(trio.anew)
    targets = targets_of(trio)
    stage.save()
    rows = {agent: agent.row() for agent in trio}
    crash(stage, trio)
    if name in STAYING:
        wait_in_vain_no_longer_than(stage, 45)
    if name in ROWS:
        forget(stage, name, rows[trio.busy]["conversation"])
        back = restore(stage, targets, targets[trio.anew], targets[trio.busy])
        is_unknown(back, trio.busy, rows[trio.busy])
        row = back.row(trio.anew)
        assert (row["action"], row["result"]) == ("resume", "verified"), row
        wait_for_words(trio.anew, "line 40")
        return
    os.unlink(rows[trio.busy]["transcript"])
    if name == "gemini":
        # One that has been resumed has a copy, and one that began anew has none.
        os.unlink(rows[trio.fresh]["transcript"])
    else:
        with open(rows[trio.fresh]["transcript"], "w") as file:
            file.write("{}\n")
    back = restore(stage, targets, targets[trio.busy], targets[trio.fresh])
    if name == "gemini":
        is_put_back(back, trio.busy, rows[trio.busy])
        is_gone(back, trio.fresh, rows[trio.fresh])
        return
    is_gone(back, trio.busy, rows[trio.busy])
    if name in SILENT:
        is_gone(back, trio.fresh, rows[trio.fresh], "has nothing of what was said")
    else:
        is_unknown(back, trio.fresh, rows[trio.fresh])


def answer_at_length(agent: Agent) -> None:
    """Have one that has no word of its own for where it is say so much that what was last asked is out of sight."""
    agent.type("[[long=40]] tell me more")
    agent.wait_for(r"line 40\b")
    wait_until(agent, State.IDLE)


def forget(stage: Stage, name: str, conversation: str) -> None:
    """Take a conversation out of an agent's own database."""
    path, tables = ROWS[name]
    with closing(sqlite3.connect(stage.path(path))) as database, database:
        for table, column in tables.items():
            database.execute(f"DELETE FROM {table} WHERE {column} = ?", (conversation,))


def is_gone(back: Back, agent: Agent, saved: Mapping[str, Any], said: str = "is gone") -> None:
    """See that nothing was started because of what the transcript is, that it is said, and that a shell is left."""
    row = back.row(agent)
    # Of gemini there might have been a copy, so that is only known when it was about to start.
    copied = agent.program.name == "gemini"
    assert (row["action"], row["result"]) == (("resume", "failed") if copied else ("show", "skipped")), row
    assert row["conversation"] == saved["conversation"]
    assert ("no whole transcript of" if copied else said) in row["why"]
    agent.wait_for(r"was not started: (?:the|no whole) transcript of")
    assert saved["conversation"] in own_screen(agent).replace("\n", "")
    has_a_shell(agent)


def is_unknown(back: Back, agent: Agent, saved: Mapping[str, Any]) -> None:
    """See that an agent's own words for an id it does not know are told, and that a shell is left with the command."""
    row = back.row(agent)
    assert back.code == 4, row
    assert (row["action"], row["result"], row["conversation"]) == ("resume", "failed", saved["conversation"]), row
    if agent.program.name in STAYING:
        assert row["why"] == "it came up with nothing of what was said in this conversation"
        agent.wait_for(UNKNOWN[agent.program.name], where="history")
        return
    assert UNKNOWN[agent.program.name] in " ".join(row["screen"]), row
    agent.wait_for(r"To try again: ")
    assert saved["conversation"] in own_screen(agent).replace("\n", "")
    has_a_shell(agent)


def is_put_back(back: Back, agent: Agent, saved: Mapping[str, Any]) -> None:
    """See that a conversation whose transcript was deleted is back from the copy that was made when it was last resumed."""
    row = back.row(agent)
    assert (row["action"], row["conversation"]) == ("resume", saved["conversation"]), row
    assert row["result"] == "verified", row["why"]
    wait_for_words(agent, f"other {TAIL}")


def test_aiders_that_share_a_file_are_offered_and_none_is_claimed_to_be_another(stage: Stage) -> None:
    """It has no ids, and does not show what was said before: which file it reads is all that is known of it."""
    prepare(stage, ("aider",))
    wait_in_vain_no_longer_than(stage, 30)
    (own,) = start_all(stage, ("aider",), {"aider": ("--chat-history-file", "mine.md")})
    shared, fresh = start_all(stage, ("aider", "aider"))
    answers_to({own: f"first {TAIL}", shared: f"other {TAIL}"})
    shared.type(f"[[hold]] slow {TAIL}")
    shared.wait_for_request(f"slow {TAIL}")
    back = crash_and_come_back(stage, Trio(own, shared, fresh))
    outcomes = [(back.row(agent)["action"], back.row(agent)["result"]) for agent in (own, shared, fresh)]
    assert outcomes == [("resume", "unverified"), ("resume", "unverified"), ("show", "skipped")], back.said
    assert back.row(own)["why"] == "only its argv says that it is in this conversation"
    assert "not certain; Enter in the pane resumes it" in back.row(shared)["why"]
    assert "is not known" in back.row(fresh)["why"]
    has_a_shell(fresh)
    press_enter(shared)
    for agent in (own, shared):
        agent.wait_for(r"Restored previous conversation history")
    seen = answers_to({own: f"third {TAIL}", shared: f"more {TAIL}"})
    heard = [[each for each in EVERYTHING if f"{each} {TAIL}" in seen[agent].body] for agent in (own, shared)]
    assert heard == [["first", "third"], ["other", "slow", "more"]]
    targets = targets_of((own,))
    stage.save()
    saved = own.row()
    crash(stage, (own, shared))
    os.unlink(saved["transcript"])
    is_gone(restore(stage, targets, targets[own]), own, saved)


def wait_in_vain_no_longer_than(stage: Stage, seconds: int) -> None:
    """Let a restore give up sooner on what cannot be proved."""
    stage.write(".config/perdure/config.toml", f"[restore]\nverify_seconds = {seconds}\n")
