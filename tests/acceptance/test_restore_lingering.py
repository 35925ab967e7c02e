"""An agent that outlives its server, and longer than anybody waits: nobody else is ever started in its conversation, and
neither is the conversation forgotten."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import json

from perdure.cli.main import main
from perdure.model.process import Process
from perdure.restore.stage import RealStage
from tests.acceptance.kit import save, snapshot, topology, wait_for
from tests.acceptance.restoring import restored
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: A word of the agent that means something to everybody on its way to a pane.
HOSTILE = "x & touch PWNED; #{pid} $(touch PWNED) '\"\\\n%endif\n"


class Lingering:
    """An agent, saved, that lives on though its server is gone."""

    def __init__(self, tmux: TmuxServer, home: PrivateHome, perdure: Perdure) -> None:
        self.tmux, self._perdure = tmux, perdure
        self.agents = Simulants(home)
        words = (self.agents.path, "--model", HOSTILE, "--boot", "0.1", "--think", "0.01", "--lazy-death", "600")
        tmux.run("new-session", "-d", "-x", "100", "-y", "30", "-s", "work", *words, "The task")
        self.agents.await_running(1, 2)
        ((self.conversation, self.pid),) = self.agents.running().items()
        self.crash()

    def crash(self) -> None:
        """Save, and end the server."""
        save(self._perdure)
        assert self.saved() == [self.conversation]
        self.tmux.kill9()
        assert self.agents.running() == {self.conversation: self.pid}

    def saved(self) -> list[str | None]:
        """Return the conversations of the newest snapshot."""
        identities = [pane["identity"] for pane in topology(self._perdure, "latest")["panes"]]
        return [identity and identity["conversation"] for identity in identities]

    def transcript(self) -> str:
        """Return the file with what was said."""
        (pane,) = snapshot(self._perdure)["details"]["panes"].values()
        return str(pane["agent"]["transcript"])

    def shown(self) -> str:
        """Return what the pane shows."""
        return self.tmux.run("capture-pane", "-pJ", "-t", "=work:").decode()

    def press_enter_and_see(self, text: str) -> None:
        self.tmux.run("send-keys", "-t", "=work:", "Enter")
        wait_for(lambda: text in self.shown(), text)

    def comes_back_when_it_has_ended(self) -> None:
        """Enter starts nothing before the old process has ended, and the one new one after that."""
        self.press_enter_and_see(f"still runs as process {self.pid}; Enter tries again.")
        save(self._perdure)
        assert self.saved() == [self.conversation]
        assert starts(self.agents.records()) == {self.conversation: 1}

        os.kill(self.pid, signal.SIGKILL)
        wait_for(lambda: not self.agents.running(), "the end of the old process")
        self.tmux.run("send-keys", "-t", "=work:", "Enter")
        wait_for(lambda: list(self.agents.running()) == [self.conversation], "the agent")
        assert starts(self.agents.records()) == {self.conversation: 2}
        with open(f"/proc/{self.agents.running()[self.conversation]}/cmdline") as file:
            assert HOSTILE in file.read().split("\0")


@pytest.fixture
def lingering(tmux: TmuxServer, private_home: PrivateHome, perdure: Perdure) -> Iterator[Lingering]:
    """One such agent."""
    made = Lingering(tmux, private_home, perdure)
    yield made
    tmux.kill9(missing_ok=True)
    made.agents.end_all()


def test_enter_in_a_lazy_pane_starts_no_second_agent(lingering: Lingering, perdure: Perdure) -> None:
    restored(perdure, "--lazy")

    lingering.comes_back_when_it_has_ended()


def test_even_after_another_crash(lingering: Lingering, perdure: Perdure) -> None:
    """The newest snapshot knows only the pane that waited then."""
    restored(perdure, "--lazy")
    lingering.crash()
    restored(perdure, "--lazy")

    lingering.comes_back_when_it_has_ended()


def test_after_all_patience_the_pane_waits_for_enter(
    lingering: Lingering, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("perdure.restore.starting.PATIENCE", 0.5)

    assert main(["restore", "--json"]) == 0
    answer: dict[str, Any] = json.decode(capsys.readouterr().out)
    (step,) = answer["steps"]
    why = f"still runs as process {lingering.pid}, outside tmux; Enter in the pane resumes it when it has ended"
    assert step["result"] == "skipped"
    assert why in step["why"]

    lingering.comes_back_when_it_has_ended()


def test_deleted_while_it_waits_for_its_turn_it_is_not_started(
    lingering: Lingering, perdure: Perdure, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transcript = lingering.transcript()
    is_alive = RealStage.is_alive

    def ends_without_its_transcript(stage: RealStage, process: Process) -> bool:
        # The plan stands by now, and what is about to be started waits for this process.
        if os.path.exists(transcript):
            os.unlink(transcript)
            lingering.agents.end_all()
        return is_alive(stage, process)

    monkeypatch.setattr(RealStage, "is_alive", ends_without_its_transcript)
    assert main(["restore", "--json"]) == 4
    (step,) = json.decode(capsys.readouterr().out)["steps"]
    said = f"the transcript of {lingering.conversation} is gone ({transcript})"
    assert (step["action"], step["result"], step["why"]) == ("resume", "failed", said)
    assert starts(lingering.agents.records()) == {lingering.conversation: 1}
    wait_for(lambda: "was not started: the transcript of" in lingering.shown(), "what the pane says")
    save(perdure)
    assert lingering.saved() == [lingering.conversation]
