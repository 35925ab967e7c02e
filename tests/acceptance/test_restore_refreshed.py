"""What an agent did after the last save counts too: saves are a minute apart, and crashes come in between."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from perdure.demo.agent import NAME
from tests.acceptance.kit import history, save, wait_for
from tests.acceptance.restoring import by_target, restored
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

ONE, TWO = "work:0.0", "work:1.0"


class Scene:
    """Two agents, each in a window of its own."""

    def __init__(self, tmux: TmuxServer, home: PrivateHome, perdure: Perdure) -> None:
        self.tmux = tmux
        self.agents = Simulants(home)
        self.perdure = perdure
        self._home = os.path.join(home.home, f".{NAME}")
        words = (self.agents.path, "--think", "0.01", "--lazy-death", "60")
        tmux.run("new-session", "-d", "-s", "work", *words)
        self.agents.await_running(1, 0)
        (self.one,) = self.agents.running()
        tmux.run("new-window", "-d", "-t", "=work:", *words)
        self.agents.await_running(2, 0)
        (self.two,) = set(self.agents.running()) - {self.one}

    def type(self, target: str, words: str) -> None:
        """Type a line into a pane."""
        self.tmux.run("send-keys", "-t", f"={target}", "-l", words)
        self.tmux.run("send-keys", "-t", f"={target}", "Enter")

    def say(self, target: str, words: str) -> None:
        """Say something to an agent, and wait for its answer."""
        turns = self.agents.turns()
        self.type(target, words)
        wait_for(lambda: self.agents.turns() == turns + 2, "the answer")

    def renew(self, target: str, old: str) -> str:
        """Begin a new conversation in a pane, and return its id."""
        others = set(self.agents.running())
        self.type(target, "/new")
        wait_for(lambda: len(set(self.agents.running()) - others) == 1, "the new conversation")
        (new,) = set(self.agents.running()) - others
        assert old not in self.agents.running()
        return new

    def transcript(self, conversation: str) -> str:
        return os.path.join(self._home, "conversations", f"{conversation}.jsonl")

    def registry(self, conversation: str) -> str:
        return os.path.join(self._home, "running", f"{self.agents.running()[conversation]}.json")

    def crash(self, *, tidily: bool = False) -> None:
        """End the server, and the agents too: either they leave their registry behind, or they have time to remove it."""
        self.tmux.kill9()
        for pid in self.agents.running().values() if tidily else ():
            os.kill(pid, signal.SIGTERM)
        if not tidily:
            self.agents.end_all()
        self.agents.await_gone()
        self.began = len(self.agents.records())

    def back(self, *args: str) -> dict[str, dict[str, Any]]:
        return by_target(restored(self.perdure, *args))

    def started(self) -> dict[str, int]:
        return starts(self.agents.records()[self.began :])


@pytest.fixture
def scene(tmux: TmuxServer, private_home: PrivateHome, perdure: Perdure) -> Iterator[Scene]:
    made = Scene(tmux, private_home, perdure)
    yield made
    made.agents.end_all()


def is_back(step: dict[str, Any], conversation: str, why: str = "") -> None:
    assert (step["action"], step["result"], step["conversation"]) == ("resume", "verified", conversation), step
    assert why in step["why"], step


@pytest.mark.parametrize("tidily", [True, False])
def test_the_first_prompt_after_the_last_save_is_not_forgotten(scene: Scene, tidily: bool) -> None:
    save(scene.perdure)
    scene.say(ONE, "The first words of all")
    scene.crash(tidily=tidily)

    steps = scene.back()

    is_back(steps[ONE], scene.one, "after the last save")
    assert (steps[TWO]["action"], steps[TWO]["conversation"]) == ("start", scene.two), steps[TWO]
    assert scene.started() == {scene.one: 1, scene.two: 1}


def test_a_conversation_begun_after_the_last_save_is_the_one_that_comes_back(scene: Scene) -> None:
    scene.say(ONE, "Old words")
    scene.say(TWO, "Others' words")
    save(scene.perdure)
    new = scene.renew(ONE, scene.one)
    scene.say(ONE, "New words")
    scene.crash()

    steps = scene.back()

    is_back(steps[ONE], new, f"it went on to {new} after the last save, from {scene.one}")
    is_back(steps[TWO], scene.two)
    assert "after the last save" not in steps[TWO]["why"]
    assert scene.started() == {new: 1, scene.two: 1}


def test_the_registry_of_another_process_of_that_number_says_nothing(scene: Scene) -> None:
    scene.say(ONE, "Old words")
    scene.say(TWO, "Others' words")
    save(scene.perdure)
    path = scene.registry(scene.one)
    with open(path) as file:
        entry = json.load(file)
    scene.crash()
    with open(path, "w") as file:
        json.dump({**entry, "id": "0" * 8 + "-0000-4000-8000-" + "0" * 12, "started": entry["started"] + 1}, file)

    steps = scene.back()

    is_back(steps[ONE], scene.one)
    is_back(steps[TWO], scene.two)


def test_who_took_up_a_conversation_after_the_save_is_the_one_to_get_it(scene: Scene) -> None:
    """What the other was in when it was last known is only offered: it may have gone on before."""
    scene.say(ONE, "Words that both will want")
    scene.say(TWO, "Others' words")
    save(scene.perdure)
    path, entry = scene.registry(scene.two), {}
    gone = scene.registry(scene.one)
    with open(path) as file:
        entry = json.load(file)
    scene.crash()
    os.unlink(gone)
    with open(path, "w") as file:
        json.dump({**entry, "id": scene.one}, file)

    steps = scene.back()

    is_back(steps[TWO], scene.one, "it went on to")
    assert (steps[ONE]["action"], steps[ONE]["result"]) == ("show", "skipped"), steps[ONE]
    assert scene.started() == {scene.one: 1}


def test_a_snapshot_that_is_asked_for_is_not_overtaken_by_what_came_after_it(scene: Scene) -> None:
    scene.say(ONE, "Old words")
    save(scene.perdure)
    old = history(scene.perdure)[0]["id"]
    new = scene.renew(ONE, scene.one)
    scene.say(ONE, "New words")
    save(scene.perdure)
    scene.crash()

    steps = scene.back("--from", old)

    is_back(steps[ONE], scene.one)
    assert new not in scene.started()


def test_what_an_agent_of_no_known_conversation_may_be_in_is_offered_and_no_more(scene: Scene) -> None:
    os.unlink(scene.registry(scene.one))
    scene.say(TWO, "Others' words")
    save(scene.perdure)
    scene.say(ONE, "Words nobody knows whose they are")
    scene.say(TWO, "Words of the other")
    scene.crash()

    steps = scene.back()

    step = steps[ONE]
    assert (step["action"], step["result"], step["conversation"]) == ("resume", "unverified", scene.one), step
    assert "is not certain" in step["why"]
    assert f"{scene.one} was written to after the last save" in step["why"]
    is_back(steps[TWO], scene.two)
    assert scene.started() == {scene.two: 1}


def test_what_may_be_of_either_of_two_agents_is_offered_to_neither(scene: Scene) -> None:
    os.unlink(scene.registry(scene.one))
    os.unlink(scene.registry(scene.two))
    save(scene.perdure)
    scene.say(ONE, "Words nobody knows whose they are")
    scene.crash()

    steps = scene.back()

    for target in (ONE, TWO):
        assert (steps[target]["action"], steps[target]["conversation"]) == ("show", None), steps[target]
    assert scene.started() == {}


def test_an_empty_transcript_is_a_lost_one(scene: Scene) -> None:
    scene.say(ONE, "Words that are lost")
    scene.say(TWO, "Words that are not")
    save(scene.perdure)
    scene.crash()
    with open(scene.transcript(scene.one), "w"):
        pass

    steps = scene.back()

    assert (steps[ONE]["action"], steps[ONE]["result"]) == ("show", "skipped"), steps[ONE]
    assert f"the transcript of {scene.one} is empty" in steps[ONE]["why"]
    is_back(steps[TWO], scene.two)
    assert scene.started() == {scene.two: 1}
