"""Many agents at once, which is how machines died: a few at a time, none while memory is short, and no snapshot that is
taken meanwhile forgets one of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from perdure.cli.main import main
from perdure.demo.agent import NAME
from tests.acceptance.kit import history, only_json, save, snapshot, topology, wait_for
from tests.acceptance.restoring import restored
from tests.acceptance.simulants import Simulants, most_at_once, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

CROWD = 60
CAP = 4
#: How often is looked before memory suffices again.
PRESSED = 10


class Crowd:
    """Agents in as many windows, each with a conversation; saved, and ended as often as the test likes."""

    def __init__(self, tmux: TmuxServer, home: PrivateHome, perdure: Perdure, count: int) -> None:
        self.tmux = tmux
        self.agents = Simulants(home)
        words = (self.agents.path, "--boot", "0.2", "--think", "0.01")
        tmux.run("new-session", "-d", "-s", "crowd", "-n", "first", *words, "Task 0")
        for number in range(1, count):
            tmux.run("new-window", "-d", "-t", "=crowd:", "-n", f"agent {number}", *words, f"Task {number}")
        self.agents.await_running(count, 2 * count)
        #: The conversations, those with the newest activity first.
        self.newest = sorted(self.agents.running())
        folder = os.path.join(home.home, f".{NAME}", "conversations")
        for rank, conversation in enumerate(self.newest):
            os.utime(os.path.join(folder, f"{conversation}.jsonl"), (1_800_000_000 - rank, 1_800_000_000 - rank))
        save(perdure)
        self.end()

    def end(self) -> None:
        """End the server as a crash does, and all agents with it."""
        self.tmux.kill9()
        self.agents.end_all()
        self.began = len(self.agents.records())

    def started(self) -> list[str]:
        """Return the conversations that were started since, in that order."""
        return [each["id"] for each in self.agents.records()[self.began :] if each["event"] == "start"]


@pytest.fixture
def crowd(
    tmux: TmuxServer, private_home: PrivateHome, perdure: Perdure, request: pytest.FixtureRequest
) -> Iterator[Crowd]:
    """As many agents as the test wants, saved and gone."""
    made = Crowd(tmux, private_home, perdure, request.param)
    yield made
    if tmux.alive:
        made.end()


@pytest.mark.parametrize("crowd", [CROWD], indirect=True)
def test_a_crowd_comes_back_a_few_at_a_time(crowd: Crowd, perdure: Perdure) -> None:
    answer = restored(perdure, "--max-parallel", str(CAP))

    assert answer["summary"]["verified"] == CROWD, answer["summary"]
    records = crowd.agents.records()[crowd.began :]
    assert starts(records) == dict.fromkeys(crowd.newest, 1)
    assert most_at_once(records) <= CAP
    # Which of those that may be starting at the same time is the faster one is nobody's order; one may be overtaken by
    # those that come after them, too, before it has said that it starts.
    ranks = [crowd.newest.index(conversation) for conversation in crowd.started()]
    assert [(place, rank) for place, rank in enumerate(ranks) if abs(place - rank) >= 3 * CAP] == []


@pytest.mark.parametrize("crowd", [20], indirect=True)
def test_a_crowd_waits_for_memory(
    crowd: Crowd, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[int] = []

    def pressure() -> float:
        """High from the eighth start on, for a number of looks."""
        if len(crowd.started()) >= 8 and len(seen) < PRESSED:
            seen.append(len(crowd.started()))
            return 99.0
        return 0.0

    monkeypatch.setattr("perdure.restore.stage.memory_pressure", pressure)
    assert main(["restore", "--max-parallel", str(CAP), "--json"]) == 0, capsys.readouterr()

    assert len(seen) == PRESSED
    # Those that had been let go before still come.
    assert seen[-1] <= seen[0] + CAP
    assert starts(crowd.agents.records()[crowd.began :]) == dict.fromkeys(crowd.newest, 1)


def conversations(perdure: Perdure, id: str) -> set[str]:
    """Return the conversations in a snapshot."""
    identities = [pane["identity"] for pane in topology(perdure, id)["panes"]]
    return {identity["conversation"] for identity in identities if identity is not None}


@pytest.mark.parametrize("crowd", [8], indirect=True)
def test_no_snapshot_taken_during_a_restore_forgets_anybody(crowd: Crowd, perdure: Perdure) -> None:
    """Nor does any remember what the restore itself put there."""
    before = {line["id"] for line in history(perdure)}
    process = subprocess.Popen(perdure.argv("restore", "--max-parallel", "1"), stdout=subprocess.DEVNULL)
    saved = 0
    while process.poll() is None:
        saved += any(line["panes"] == 8 for line in only_json(perdure("save", "--json"))["servers"])
    assert process.returncode == 0
    assert saved > 1, "the restore was over before anything could be saved"

    taken = [line["id"] for line in history(perdure) if line["id"] not in before]
    assert taken
    for id in taken:
        found = snapshot(perdure, id)["topology"]
        panes = [pane for pane in found["panes"] if pane["identity"] is None]
        print(id, len(found["panes"]), "panes", len(panes), "without an agent", found["sessions"])
        assert {session["name"] for session in found["sessions"]} == {"crowd"}
        # Panes are made in the first moment; from then on each holds its conversation, started or not.
        assert panes == []
        assert conversations(perdure, id) <= set(crowd.newest)
    assert conversations(perdure, taken[0]) == set(crowd.newest)


@pytest.mark.parametrize("crowd", [4], indirect=True)
def test_panes_that_wait_for_enter_keep_their_conversations(crowd: Crowd, perdure: Perdure) -> None:
    answer = restored(perdure, "--lazy")
    assert answer["summary"]["verified"] == 0
    assert crowd.started() == []

    save(perdure)
    assert conversations(perdure, "latest") == set(crowd.newest)

    crowd.end()
    answer = restored(perdure)
    assert answer["summary"]["verified"] == 4, answer
    wait_for(lambda: set(crowd.agents.running()) == set(crowd.newest), "the agents")
