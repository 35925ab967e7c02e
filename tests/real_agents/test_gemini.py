"""The real Gemini CLI: its conversation by hooks and without, its screens as they come, and back again."""

# ruff: noqa: RUF001

from __future__ import annotations

import glob

import msgspec
import pytest

from perdure.model.screen import State
from tests.real_agents.kin import bring_back, show_every_state
from tests.real_agents.kit import Stage, once_written
from tests.real_agents.seeing import wait_until, wait_until_untold

pytestmark = pytest.mark.real_agent
GIVEN = "aaaaaaaa-1111-4222-8333-444444444444"


def conversations(stage: Stage) -> dict[str, str]:
    """Return the ids gemini itself wrote, by what was first said in each; one in which nothing was has no such words."""
    found = {}
    for path in glob.glob(stage.path(".gemini/tmp/alpha/chats/session-*.jsonl")):
        with open(path, "rb") as file:
            lines = [msgspec.json.decode(line) for line in file]
        typed = [line["content"][0].get("text", "") for line in lines if line.get("type") == "user"]
        found[next((text for text in typed if text and not text.startswith("<")), "")] = str(lines[0]["sessionId"])
    return found


def conversation(stage: Stage, words: str) -> str:
    """Return the one that began with these words, once it is written."""
    return once_written(lambda: conversations(stage)[words], words)


def test_with_hooks_it_is_certain_and_follows_every_change(stage: Stage) -> None:
    stage.configure("gemini")
    stage.perdure.ok("hooks", "install", "gemini")
    one = stage.start("gemini", "--session-id", GIVEN)
    one.ask("words of one")
    one.ask("more words")
    one.await_in(GIVEN, "hook")
    assert one.row()["task"] == "more words"
    two = stage.start("gemini", size=(80, 30))
    two.ask("words of two")
    theirs = conversation(stage, "words of two")
    two.await_in(theirs, "hook")
    # A hook record from before the last save says no more than what was saved.
    one.await_in(GIVEN, "remembered")

    one.new_conversation()
    one.wait_for(lambda screen: "words of one" not in screen)
    one.wait_until_still()
    one.ask("after clearing")
    cleared = conversation(stage, "after clearing")
    one.await_in(cleared, "hook")

    # No hook tells of this one: doubt is all there can be until the next prompt.
    one.type("/resume")
    wait_until_untold(one, r"Chat Sessions")
    # The other gemini has given it a title as it started; it is the one that was last spoken to longest ago.
    for row in (2, 3):
        one.keys("Down")
        one.wait_for(rf"❯ #{row} ")
    one.keys("Enter")
    one.wait_for(r"more words")
    wait_until(one, State.IDLE)
    assert not one.identity()["certain"]
    one.ask("taken up again")
    one.await_in(GIVEN, "hook")


def test_without_hooks_it_is_right_or_uncertain_and_its_screens_are_read(stage: Stage) -> None:
    agent = stage.start("gemini", "--session-id", GIVEN, "--approval-mode", "default", size=(90, 30))
    wait_until(agent, State.IDLE)
    agent.await_in(GIVEN, "argv", prompted=False)
    show_every_state(agent)
    agent.await_in(GIVEN, "argv")
    agent.quit()

    back = bring_back(stage, "gemini", GIVEN)
    back.await_in(GIVEN, "argv")
    back.ask("after coming back")
    assert back.row()["task"] == "after coming back"
    back.new_conversation()
    back.wait_for(lambda screen: "after coming back" not in screen)
    back.wait_until_still()
    back.ask("in a new one")
    found = back.identity()
    assert found["conversation"] == conversation(stage, "in a new one") or not found["certain"], found
