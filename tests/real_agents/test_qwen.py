"""The real Qwen Code: its conversation by hooks and without, its screens as they come, and back again."""

from __future__ import annotations

import glob
from os.path import basename

import msgspec
import pytest

from perdure.model.screen import State
from tests.real_agents.kin import bring_back, show_every_state
from tests.real_agents.kit import Stage, once_written
from tests.real_agents.seeing import wait_until, wait_until_untold

pytestmark = pytest.mark.real_agent
GIVEN = "bbbbbbbb-1111-4222-8333-444444444444"


def conversations(stage: Stage) -> dict[str, str]:
    """Return the ids qwen itself wrote, by what was first said in each."""
    found = {}
    for path in glob.glob(stage.path(".qwen/projects/*/chats/*.jsonl")):
        with open(path, "rb") as file:
            lines = [msgspec.json.decode(line) for line in file]
        typed = [line["message"]["parts"][0]["text"] for line in lines if line["type"] == "user"]
        found[typed[0] if typed else ""] = basename(path).removesuffix(".jsonl")
    return found


def conversation(stage: Stage, words: str) -> str:
    """Return the one that began with these words, once it is written."""
    return once_written(lambda: conversations(stage)[words], words)


def test_with_hooks_it_is_certain_and_follows_every_change(stage: Stage) -> None:
    stage.configure("qwen")
    stage.perdure.ok("hooks", "install", "qwen")
    alpha = stage.repository("alpha")
    one = stage.start("qwen", "--session-id", GIVEN, cwd=alpha)
    one.ask("words of one")
    one.ask("more words")
    one.await_in(GIVEN, "hook")
    row = one.row()
    assert (row["task"], row["model"], row["branch"]) == ("more words", "qwen-stub", "trunk")
    two = stage.start("qwen", cwd=alpha, size=(80, 30))
    two.ask("words of two")
    two.await_in(conversation(stage, "words of two"), "hook")
    # A hook record from before the last save says no more than what was saved.
    one.await_in(GIVEN, "remembered")

    one.new_conversation()
    one.wait_for(lambda screen: "words of one" not in screen)
    one.wait_until_still()
    one.ask("after clearing")
    cleared = conversation(stage, "after clearing")
    one.await_in(cleared, "hook")
    one.type(f"/resume {GIVEN}")
    one.wait_for(r"more words")
    wait_until(one, State.IDLE)
    one.await_in(GIVEN, "hook")
    one.type("/branch")
    one.wait_for(r"Branched conversation")
    branched = one.identity_once(lambda found: found["conversation"] not in (GIVEN, cleared))
    assert branched["certain"]
    assert one.row()["parent"] == GIVEN


def test_without_hooks_it_is_right_or_uncertain_and_its_screens_are_read(stage: Stage) -> None:
    agent = stage.start("qwen", "--session-id", GIVEN, "--approval-mode", "default", size=(90, 30))
    wait_until(agent, State.IDLE)
    agent.await_in(GIVEN, "argv", prompted=False)
    show_every_state(agent)
    agent.await_in(GIVEN, "argv")
    agent.type("/help")
    wait_until_untold(agent, r"custom-commands")
    agent.keys("Escape")
    agent.wait_for(r"Type your message")
    agent.quit()

    back = bring_back(stage, "qwen", GIVEN)
    back.await_in(GIVEN, "argv")
    back.new_conversation()
    back.wait_for(lambda screen: "STUB-DONE" not in screen)
    back.wait_until_still()
    wait_until(back, State.IDLE)
    # Nothing was said in the new one yet: only its log tells of it.
    assert not back.identity()["certain"]
    back.ask("in a new one")
    found = back.identity()
    assert found["conversation"] == conversation(stage, "in a new one") or not found["certain"], found
