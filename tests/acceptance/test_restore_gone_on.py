"""An interrupted restore that is gone on with: the very one it was, and then all that would have come behind it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.kit import only_json, save, wait_for
from tests.acceptance.restoring import by_target, restored
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer


@pytest.fixture
def simulants(private_home: PrivateHome) -> Iterator[Simulants]:
    found = Simulants(private_home)
    yield found
    found.end_all()


class Machine:
    """A server that is begun, saved and killed again and again."""

    def __init__(self, simulants: Simulants, tmux: TmuxServer, perdure: Perdure) -> None:
        self.simulants = simulants
        self._tmux = tmux
        self._perdure = perdure

    def agent(self, place: str, *flags: str) -> str:
        """Start an agent in a place, say something to it, and return its conversation."""
        before, turns = set(self.simulants.running()), self.simulants.turns()
        self._open(place, self.simulants.path, "--think", "0.1", *flags, f"words for {place}")
        self.simulants.await_running(len(before) + 1, turns + 2)
        return (set(self.simulants.running()) - before).pop()

    def shell(self, place: str) -> None:
        """Open a shell in a place."""
        self._open(place, "/bin/sh")

    def _open(self, place: str, *words: str) -> None:
        session, _, index = place.partition(":")
        if index in ("", "0"):
            self._tmux.run("new-session", "-d", "-s", session, "-n", "w", *words)
        else:
            self._tmux.run("new-window", "-d", "-t", f"={place}", "-n", "w", *words)

    def saved(self) -> str:
        """Save all there is; return the snapshot."""
        snapshot: str = save(self._perdure)["snapshot"]
        return snapshot

    def crash(self) -> None:
        """Kill the server, unless a killed restore took it along, and wait until its agents are gone."""
        self._tmux.kill9(missing_ok=True)
        self.simulants.await_gone()

    def restore_killed(self, is_far_enough: Callable[[], object], *words: str) -> None:
        """Begin a restore, and kill it when it has come so far."""
        process = subprocess.Popen(
            self._perdure.argv("restore", *words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        wait_for(lambda: process.poll() is not None or is_far_enough(), "the restore to come so far")
        process.kill()
        process.wait()


@pytest.fixture
def machine(simulants: Simulants, tmux: TmuxServer, perdure: Perdure) -> Machine:
    return Machine(simulants, tmux, perdure)


def test_it_means_by_its_panes_what_was_meant_when_it_began(
    machine: Machine, perdure: Perdure, tmux: TmuxServer
) -> None:
    first, third = machine.agent("work:0"), machine.agent("side")
    machine.shell("work:1")
    machine.shell("more")
    machine.saved()
    machine.crash()
    # Another has the place of the first, and so few are left that all there was before is taken.
    waits = machine.agent("work:0")
    slow = machine.agent("work:1", "--boot", "3")  # used last, so it is the first to come back
    machine.saved()
    machine.crash()
    simulants, since = machine.simulants, len(machine.simulants.records())
    machine.restore_killed(lambda: len(simulants.records()) > since, "--max-parallel", "1")
    # It waits for its turn in its pane; meanwhile somebody opens it elsewhere.
    tmux.run("new-session", "-d", "-s", "mine", simulants.path, "--resume", waits)
    wait_for(lambda: waits in simulants.running(), "the one a person opened")

    planned = only_json(perdure("restore", "--dry-run", "--json"))["steps"]
    answer = restored(perdure)

    known = by_target(answer)
    assert (known["work:0.0"]["conversation"], known["work:0.0"]["result"]) == (waits, "skipped")
    assert "is in use already" in known["work:0.0"]["why"]
    verified = {step["conversation"] for step in answer["steps"] if step["result"] == "verified"}
    assert verified == {first, third, slow}
    assert starts(simulants.records()[since:]) == dict.fromkeys((first, third, slow, waits), 1)
    # As it was planned, each once, and then it is whole.
    assert [each["target"] for each in planned] == [each["target"] for each in answer["steps"]]
    again = only_json(perdure("restore", "--json"))
    assert (again["summary"]["created"], again["left_out"]) == (0, [])


def test_what_came_after_comes_in_the_same_run(machine: Machine, perdure: Perdure) -> None:
    begun = {machine.agent(f"w{number}", "--boot", "1") for number in range(3)}
    machine.saved()
    machine.crash()
    later = machine.agent("later")
    machine.saved()
    machine.crash()
    simulants, since = machine.simulants, len(machine.simulants.records())
    machine.restore_killed(lambda: len(simulants.records()) > since, "--max-parallel", "1")
    answer = restored(perdure)
    assert simulants.running().keys() == begun | {later}
    assert starts(simulants.records()[since:]) == dict.fromkeys(begun | {later}, 1)
    assert answer["summary"] == {"panes": 4, "created": 4, "resumed": 4, "verified": 4, "skipped": 0, "failed": 0}


def test_only_what_was_asked_for_is_gone_on_with(machine: Machine, perdure: Perdure, tmux: TmuxServer) -> None:
    conversations = {name: machine.agent(name) for name in ("stays", "wanted", "closed")}
    old = machine.saved()
    for name in ("wanted", "closed"):
        tmux.run("kill-session", "-t", f"={name}")
    wait_for(lambda: len(machine.simulants.running()) == 1, "their end")
    machine.saved()
    machine.restore_killed(lambda: b"wanted" in tmux.run("list-sessions", "-F", "#S"), "--from", old, "wanted")
    restored(perdure)
    assert machine.simulants.running().keys() == {conversations["stays"], conversations["wanted"]}


def test_what_it_had_not_made_comes_beside_what_was_begun_since(
    machine: Machine, perdure: Perdure, tmux: TmuxServer
) -> None:
    first = machine.agent("work")
    machine.saved()
    machine.crash()
    machine.restore_killed(lambda: tmux.alive)
    machine.crash()
    second = machine.agent("work")
    machine.saved()
    machine.crash()
    planned = only_json(perdure("restore", "--dry-run", "--json"))["steps"]
    answer = restored(perdure)
    assert [each["target"] for each in planned] == [each["target"] for each in answer["steps"]]
    assert machine.simulants.running().keys() == {first, second}
    again = only_json(perdure("restore", "--json"))
    assert (again["summary"]["created"], again["left_out"]) == (0, [])


def test_of_a_fall_nothing_is_planned_twice_and_whose_place_is_taken_comes_behind(
    machine: Machine, perdure: Perdure
) -> None:
    first, second = machine.agent("work:0"), machine.agent("side")
    machine.shell("work:1")
    machine.shell("more")
    machine.saved()
    machine.crash()
    third, other = machine.agent("work:0"), machine.agent("other")
    machine.saved()
    machine.crash()
    planned = only_json(perdure("restore", "--dry-run", "--json"))["steps"]
    answer = restored(perdure)
    assert [each["target"] for each in planned] == [each["target"] for each in answer["steps"]]
    known = {step["conversation"]: step["target"] for step in answer["steps"] if step["result"] == "verified"}
    assert known == {first: "work:2.0", second: "side:0.0", third: "work:0.0", other: "other:0.0"}
    assert (answer["summary"]["skipped"], answer["left_out"]) == (0, [])
    again = only_json(perdure("restore", "--json"))
    assert (again["summary"]["created"], again["left_out"]) == (0, [])
