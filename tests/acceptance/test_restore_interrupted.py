"""A restore that was killed at any moment and is run again ends where one that was left alone does."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.acceptance.kit import configure, only_json, save, sentence, wait_for
from tests.acceptance.restoring import (
    all_contents,
    await_calm,
    await_same,
    contents,
    differences,
    picture,
    restored,
    user_configuration,
)
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import LETTING_GO, PATIENCE, TmuxServer

#: The kills are spread evenly over the time a restore takes: so many runs of the test, so many kills in each.
CHUNKS, KILLS = 5, 10
AGENTS = 4
#: Moments as panes show them: when they were restored, with the day or without, cut where a pane is narrow, or died.
_TIMES = re.compile(r"(?<=restored ).*|\w{3} \w{3} +\d+ \d+:\d\d.*|\d+(:\d\d)+")


class Scene:
    """Four sessions with a dozen panes, saved, and ended as often as the test likes."""

    def __init__(self, tmux: TmuxServer, home: PrivateHome, perdure: Perdure) -> None:
        self.tmux = tmux
        self.home = home
        self.perdure = perdure
        self.agents = Simulants(home)
        self.work = os.path.realpath(os.path.join(home.root, "work"))
        os.mkdir(self.work)
        with open(os.path.join(self.work, "log"), "w") as file:
            file.write("a line of the log\n")
        self._quad()
        self._zoomed()
        self._dead()
        self._shared()
        tmux.run("new-session", "-d", "-s", "solo", "-n", "only", "-x", "90", "-y", "30", "-c", self.work)
        self.agents.await_running(AGENTS, 6)
        tmux.run("set-option", "-g", "automatic-rename", "off")
        await_calm(tmux)
        save(perdure)
        # The server a restore starts is a user's, and theirs begins to count at one.
        user_configuration(home, "set -g base-index 1\nset -g pane-base-index 1\nset -g automatic-rename off\n")
        self.end()

    def _agent(self, *words: str) -> tuple[str, ...]:
        return (self.agents.path, "--boot", "0.15", "--think", "0.05", *words)

    def _quad(self) -> None:
        """Four panes in a window: two agents in one directory, a program that is started again, and a shell."""
        size = ("-x", "120", "-y", "40")
        self.tmux.run(
            "new-session", "-d", "-s", "api", "-n", "quad", *size, "-c", self.work, *self._agent("The parser")
        )
        for last, words in enumerate((self._agent("The empty file"), ("tail", "-f", "log"), ())):
            self.tmux.run("split-window", "-d", "-t", f"=api:0.{last}", "-c", self.work, *words)
        self.tmux.run("select-layout", "-t", "=api:0", "main-vertical")
        self.tmux.run("resize-pane", "-t", "=api:0.0", "-x", "70")
        self.tmux.run("resize-pane", "-t", "=api:0.2", "-y", "17")
        self.tmux.run("select-pane", "-t", "=api:0.3", "-T", "a title #{pid} 'of mine'")
        self.tmux.run("select-pane", "-t", "=api:0.1")
        self.tmux.run("set-environment", "-t", "=api:", "FLAVOUR", "a $HOME `id`")
        self.tmux.run("set-option", "-t", "=api:", "status-left", "#(id) mine")
        self._print("=api:0.3", "printed before")

    def _zoomed(self) -> None:
        self.tmux.run("new-window", "-d", "-t", "=api:3", "-n", "zoomed", "-c", self.work, *self._agent("The header"))
        self.tmux.run("split-window", "-d", "-h", "-t", "=api:3", "-c", self.work)
        self.tmux.run("set-option", "-w", "-t", "=api:3", "pane-border-status", "top")
        self.tmux.run("resize-pane", "-Z", "-t", "=api:3.0")

    def _dead(self) -> None:
        self.tmux.run("new-window", "-d", "-t", "=api:7", "-n", "dead", "-c", self.work)
        self.tmux.run("set-option", "-w", "-t", "=api:7", "remain-on-exit", "on")
        self.tmux.run("respawn-pane", "-k", "-t", "=api:7", "/bin/sh", "-c", f"echo last words; {LETTING_GO}exit 3")
        wait_for(lambda: self.tmux.show("#{pane_dead_status}", "=api:7") == "3", "a dead pane")
        self.tmux.run("select-window", "-t", "=api:7", ";", "select-window", "-t", "=api:3")

    def _shared(self) -> None:
        """Two sessions with the same windows: an agent nobody has spoken to, a shell, a program that is only shown."""
        self.tmux.run(
            "new-session", "-d", "-s", "web", "-n", "agent", "-x", "100", "-y", "30", "-c", self.work, *self._agent()
        )
        self.tmux.run("move-window", "-s", "=web:0", "-t", "=web:2")
        self.tmux.run("new-window", "-d", "-t", "=web:5", "-n", "sleeps", "-c", self.work, "sleep", "86400")
        self.tmux.run("new-window", "-d", "-t", "=web:6", "-n", "prints", "-c", self.work)
        self._print("=web:6", "printed in both")
        self.tmux.run("new-session", "-d", "-s", "twin", "-t", "=web")
        self.tmux.run("select-window", "-t", "=twin:6", ";", "select-window", "-t", "=twin:5")

    def _print(self, pane: str, text: str) -> None:
        wait_for(lambda: contents(self.tmux, pane), "a prompt")
        self.tmux.run("send-keys", "-t", pane, "-l", f"echo '{text}'")
        self.tmux.run("send-keys", "-t", pane, "Enter")
        wait_for(lambda: contents(self.tmux, pane).count(text), text)

    def end(self) -> None:
        """End the server as a crash does, and its agents before they have had their half second."""
        self.tmux.kill9(missing_ok=True)
        self.agents.end_all()
        self.began = len(self.agents.records())

    def clean_run(self) -> Clean:
        """Return what an undisturbed restore makes, and how long it takes."""
        fresh = Perdure(fresh=True)  # as those are that are killed: it is about how long they take
        began = time.monotonic()
        answer = restored(fresh)
        seconds = time.monotonic() - began
        assert answer["summary"]["verified"] == AGENTS, answer
        return Clean(self, seconds)

    def begin(self) -> subprocess.Popen[bytes]:
        """Begin a restore."""
        return subprocess.Popen(self.perdure.argv("restore"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def restore_and_kill_at_first_start(self) -> None:
        """Begin a restore, and kill it when it has made all panes and the first agent has started."""
        process = self.begin()
        wait_for(lambda: self.started(), "an agent")
        process.kill()
        process.communicate()

    def restore_and_kill(self, seconds: float) -> None:
        """Begin a restore, and kill it that many seconds later."""
        process = self.begin()
        try:
            process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def texts(self) -> dict[str, list[str]]:
        """Return what stands in every pane, without the times in it."""
        return {target: [_TIMES.sub("", line) for line in lines] for target, lines in all_contents(self.tmux).items()}

    def started(self) -> dict[str, int]:
        """Return how often each conversation was started since the last end."""
        return starts(self.agents.records()[self.began :])


class Clean:
    """The state after an undisturbed restore."""

    def __init__(self, scene: Scene, seconds: float) -> None:
        self._scene = scene
        self.seconds = seconds
        self.picture = await_calm(scene.tmux)
        wait_for(lambda: scene.texts() == scene.texts(), "panes that print nothing")
        self.texts = scene.texts()
        self.started = scene.started()
        assert set(self.started.values()) == {1}
        assert len(self.started) == AGENTS

    def check(self, but: str = "") -> None:
        """Fail the test unless the server is as it was then, `but` for one session, and nothing happened twice."""
        scene = self._scene
        await_same({name: each for name, each in self.picture.items() if name != but}, scene.tmux, leaving=(but,))
        texts = {target: lines for target, lines in self.texts.items() if not target.startswith(f"{but}:")}
        found: list[str] = []

        def is_same() -> bool:
            now = scene.texts()
            found[:] = differences(texts, {target: now[target] for target in now if not target.startswith(f"{but}:")})
            return not found

        try:
            wait_for(is_same, "the same text")
        except AssertionError:
            raise AssertionError("\n".join(found)) from None
        assert scene.started() == self.started
        assert scene.agents.running().keys() == self.started.keys()
        folder = os.path.join(scene.home.state, "restores")
        assert not os.path.isdir(folder) or os.listdir(folder) == []


@pytest.fixture
def scene(tmux: TmuxServer, private_home: PrivateHome, perdure: Perdure) -> Iterator[Scene]:
    """Saved, and gone."""
    made = Scene(tmux, private_home, perdure)
    yield made
    made.end()


def going_on(scene: Scene) -> dict[str, Any]:
    """Restore to the end, and return the answer: nothing may have failed."""
    ran = scene.perdure("restore", "--json")
    assert ran.code == 0, ran
    answer = only_json(ran)
    assert not [step for step in answer["steps"] if step["result"] == "unverified"], answer
    return answer


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_killed_at_any_moment_and_run_again(scene: Scene, chunk: int) -> None:
    clean = scene.clean_run()
    for kill in range(KILLS):
        scene.end()
        seconds = clean.seconds * (kill * CHUNKS + chunk + random.random()) / (KILLS * CHUNKS)
        print(f"killed after {seconds:.3f} s of {clean.seconds:.3f}")
        scene.restore_and_kill(seconds)
        going_on(scene)
        clean.check()


def test_killed_twice_in_a_row(scene: Scene) -> None:
    clean = scene.clean_run()
    for _ in range(3):
        scene.end()
        for kill in range(2):
            seconds = clean.seconds * random.uniform(0.2 + 0.3 * kill, 1)
            print(f"killed after {seconds:.3f} s of {clean.seconds:.3f}")
            scene.restore_and_kill(seconds)
        going_on(scene)
        clean.check()


def test_once_it_is_whole_there_is_nothing_to_do(scene: Scene) -> None:
    clean = scene.clean_run()

    again = restored(scene.perdure)

    assert {step["result"] for step in again["steps"]} == {"skipped"}
    assert again["summary"]["created"] == again["summary"]["resumed"] == 0
    clean.check()


def test_what_somebody_makes_in_between_is_theirs(scene: Scene) -> None:
    """Under a name that was saved, on the very server, in place of what the restore had made.

    As in any session that is there, what is missing of the saved one is added; nothing of theirs is touched.
    """
    clean = scene.clean_run()
    scene.end()
    scene.restore_and_kill_at_first_start()
    scene.tmux.run("kill-session", "-t", "=solo", check=False)
    scene.tmux.run("new-session", "-d", "-s", "solo", "-n", "mine", "-x", "77", "-y", "22")
    scene.tmux.run("set-option", "-t", "=solo:", "@mine", "yes")
    mine = await_calm(scene.tmux)["solo"]
    pid = scene.tmux.show("#{pane_pid}", "=solo:")

    going_on(scene)

    now = picture(scene.tmux)["solo"]
    added = [index for index in now["windows"] if index not in mine["windows"]]
    assert len(added) == 1
    wait_for(lambda: any("── restored" in line for line in contents(scene.tmux, f"=solo:{added[0]}")), "its text")
    del now["windows"][added[0]]
    assert differences(mine, now) == []
    assert scene.tmux.show("#{pane_pid}", "=solo:") == pid
    clean.check(but="solo")


def test_with_its_server_gone_too_it_begins_anew(scene: Scene) -> None:
    clean = scene.clean_run()
    scene.end()
    scene.restore_and_kill_at_first_start()
    scene.end()

    answer = going_on(scene)

    assert answer["summary"]["created"] == len(answer["steps"])
    clean.check()


def test_two_at_the_same_moment_make_nothing_twice(scene: Scene) -> None:
    clean = scene.clean_run()
    for _ in range(5):
        scene.end()
        both = [scene.begin() for _ in range(2)]
        ended = [(process.communicate(timeout=PATIENCE)[1].decode(), process.returncode) for process in both]
        assert 0 in [code for _, code in ended], ended
        # The other came too late to do anything, or too early to be let in.
        assert all(code == 0 or "is at work" in said for said, code in ended), ended
        clean.check()


def test_a_server_that_does_not_answer_is_not_taken_for_gone(scene: Scene) -> None:
    clean = scene.clean_run()
    configure(scene.home, "[tmux]\ntimeout_seconds = 1\n")
    os.kill(pid := scene.tmux.pid, signal.SIGSTOP)
    try:
        ran = scene.perdure("restore", "--json")
    finally:
        os.kill(pid, signal.SIGCONT)

    assert ran.code == 4, ran
    assert "did not answer" in sentence(ran)
    clean.check()
