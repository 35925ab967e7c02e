"""A conversation that could not be resumed is not forgotten: the saves that follow keep it for its pane."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance.kit import configure, only_json, save, topology, wait_for
from tests.acceptance.restoring import by_target, restored
from tests.acceptance.simulants import Simulants
from tests.at_rest import Rest
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


class Scene:
    """A server with one agent in a session called `work`."""

    def __init__(self, tmux: TmuxServer, perdure: Perdure, home: PrivateHome) -> None:
        self.tmux, self.perdure = tmux, perdure
        self.agents = Simulants(home)
        self._home = os.path.join(home.home, ".simulant")
        self.id = self.begin("work", "The task")

    def begin(self, session: str, *words: str) -> str:
        """Start an agent in a session of its own, and return its conversation once all is said."""
        before, turns = set(self.agents.running()), self.agents.turns()
        self.tmux.run("new-session", "-d", "-s", session, self.agents.path, "--think", "0.01", *words)
        self.agents.await_running(len(before) + 1, turns + 2 * bool(words and " " in words[-1]))
        return (set(self.agents.running()) - before).pop()

    def crash(self) -> None:
        """Kill the server, and wait until its agents are gone."""
        self.tmux.kill9()
        self.agents.await_gone()

    @property
    def transcript(self) -> str:
        return os.path.join(self._home, "conversations", f"{self.id}.jsonl")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Somebody who is no agent anybody knows is in the conversation: whoever resumes it is refused."""
        with open(os.path.join(self._home, "locks", self.id), "a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def restore_in_vain(self) -> dict[str, Any]:
        """Restore while the agent cannot be resumed, and return its step."""
        with self.locked():
            ran = self.perdure("restore", "--json")
        assert ran.code == 4, ran
        step: dict[str, Any] = by_target(only_json(ran))["work:0.0"]
        assert (step["action"], step["result"], step["conversation"]) == ("resume", "failed", self.id)
        assert "status 1" in step["why"]
        return step

    def saved(self, target: str = "work") -> tuple[str, str, bool] | None:
        """Save, and return what is known of the agent: conversation, evidence, and whether it is certain."""
        save(self.perdure)
        shown = topology(self.perdure)
        session = next(each["id"] for each in shown["sessions"] if each["name"] == target)
        window = next(link["window"] for link in shown["links"] if link["session"] == session)
        identity = next(pane["identity"] for pane in shown["panes"] if pane["window"] == window)
        return identity and (identity["conversation"], identity["evidence"], identity["certain"])

    def type(self, *keys: str) -> None:
        self.tmux.run("send-keys", "-t", "=work:", *keys)


@pytest.fixture
def scene(tmux: TmuxServer, perdure: Perdure, private_home: PrivateHome) -> Iterator[Scene]:
    found = Scene(tmux, perdure, private_home)
    yield found
    tmux.kill9(missing_ok=True)
    found.agents.end_all()


def test_a_transcript_that_was_away_for_a_while(scene: Scene, perdure: Perdure) -> None:
    assert scene.saved() == (scene.id, "registry", True)
    scene.crash()
    os.rename(scene.transcript, f"{scene.transcript}.away")
    (step,) = restored(perdure)["steps"]
    assert (step["action"], step["result"]) == ("show", "skipped")
    assert scene.saved() == (scene.id, "kept", True)
    os.rename(f"{scene.transcript}.away", scene.transcript)
    scene.crash()

    (step,) = restored(perdure)["steps"]

    assert (step["action"], step["result"], step["conversation"]) == ("resume", "verified", scene.id)
    # The mark was the old pane's.
    assert scene.tmux.run("show-options", "-p", "-t", "=work:") == b""
    assert scene.saved() == (scene.id, "registry", True)


def test_a_transcript_in_which_nothing_is_left_of_what_was_said_verifies_nothing(
    scene: Scene, perdure: Perdure, private_home: PrivateHome
) -> None:
    configure(private_home, "[restore]\nverify_seconds = 3\n")
    save(perdure)
    scene.crash()
    with open(scene.transcript) as file:
        head = file.readline()
    with open(scene.transcript, "w") as file:
        file.write(head)
    (step,) = restored(perdure)["steps"]
    assert (step["action"], step["result"], step["conversation"]) == ("resume", "unverified", scene.id)
    assert "nothing of what was said" in step["why"]


def test_one_that_failed_is_tried_again_after_every_crash(scene: Scene, perdure: Perdure) -> None:
    save(perdure)
    scene.crash()
    scene.restore_in_vain()
    assert scene.saved() == (scene.id, "kept", True)
    assert save(perdure)["result"] == "unchanged"
    scene.crash()
    scene.restore_in_vain()
    assert scene.saved() == (scene.id, "kept", True)
    scene.crash()

    (step,) = restored(perdure)["steps"]

    assert (step["result"], step["conversation"]) == ("verified", scene.id)


def test_one_that_is_kept_does_not_run(scene: Scene, perdure: Perdure) -> None:
    save(perdure)
    scene.crash()
    scene.restore_in_vain()
    assert save(perdure)["agents"] == 1
    live = only_json(perdure.ok("--json"))["live"]
    assert (live["panes"], live["agents"], live["certain"]) == (1, 0, 0)
    (row,) = only_json(perdure.ok("ls", "--json"))["panes"]
    assert (row["agent"], row["conversation"], row["evidence"]) == ("simulant", scene.id, "kept")
    explained = only_json(perdure.ok("explain", "--json", "work"))
    assert explained["resume"][-2:] == ["--resume", scene.id]
    assert "a restore did not resume it here" in explained["because"][0]
    (step,) = restored(perdure)["steps"]
    assert (step["action"], step["result"]) == ("keep", "skipped")
    assert f"{scene.id} is not running in it" in step["why"]


def test_it_is_up_to_whoever_resumed_it_by_hand(scene: Scene, perdure: Perdure) -> None:
    save(perdure)
    scene.crash()
    scene.restore_in_vain()
    assert scene.saved() == (scene.id, "kept", True)
    scene.type(f"{scene.agents.path} --think 0.01 --resume {scene.id}", "Enter")
    wait_for(lambda: scene.id in scene.agents.running(), "the agent")
    scene.type("By hand", "Enter")
    wait_for(lambda: scene.agents.turns() == 4, "its answer")
    assert scene.saved() == (scene.id, "registry", True)
    scene.type("/quit", "Enter")
    scene.agents.await_gone()
    assert scene.saved() is None
    assert scene.saved() is None
    scene.crash()

    (step,) = restored(perdure)["steps"]

    assert (step["action"], step["agent"]) == ("shell", None)
    assert scene.saved() is None


def test_one_that_was_taken_up_elsewhere_lives_there(scene: Scene, perdure: Perdure) -> None:
    save(perdure)
    scene.crash()
    scene.restore_in_vain()
    assert scene.saved() == (scene.id, "kept", True)
    scene.begin("other", "--resume", scene.id)
    assert scene.saved("other") == (scene.id, "registry", True)
    assert scene.saved("work") is None
    scene.crash()

    steps = by_target(restored(perdure))

    assert steps["work:0.0"]["action"] == "shell"
    assert (steps["other:0.0"]["result"], steps["other:0.0"]["conversation"]) == ("verified", scene.id)


def test_what_was_said_after_the_last_save_is_kept_too(scene: Scene, perdure: Perdure) -> None:
    """A restore may know more than its snapshot: what it took the conversation for is what is kept."""
    scene.type("/new", "Enter")
    wait_for(lambda: scene.id not in scene.agents.running(), "another conversation")
    (scene.id,) = scene.agents.running()
    save(perdure)
    assert topology(perdure)["panes"][0]["identity"]["prompted"] is False
    scene.type("The first words", "Enter")
    wait_for(lambda: scene.agents.turns() == 4, "the answer")
    scene.crash()
    scene.restore_in_vain()
    assert scene.saved() == (scene.id, "kept", True)
    assert topology(perdure)["panes"][0]["identity"]["prompted"] is True
    scene.crash()

    (step,) = restored(perdure)["steps"]

    assert (step["action"], step["result"], step["conversation"]) == ("resume", "verified", scene.id)


def test_one_that_somebody_did_not_want_is_not_kept(scene: Scene, perdure: Perdure) -> None:
    slow = scene.begin("slow", "--boot", "3", "used last, so it is the first to come back")
    save(perdure)
    scene.crash()
    since = len(scene.agents.records())
    command = perdure.argv("restore", "--max-parallel", "1", "--json")
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    wait_for(lambda: len(scene.agents.records()) > since, "the first start")
    # Its pane is made by now; whoever interrupts before it waits only ends it.
    pid = int(scene.tmux.show("#{pane_pid}", "=work:"))
    wait_for(Rest(lambda: [pid]), "a pane that waits for its turn")
    scene.type("C-c")
    wait_for(lambda: b"was not started" in scene.tmux.run("capture-pane", "-p", "-t", "=work:"), "a shell")
    assert running.wait() == 4
    assert list(scene.agents.running()) == [slow]
    assert scene.saved() is None
