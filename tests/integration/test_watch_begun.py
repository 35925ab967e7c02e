"""What happens between a look at a pane and the watch over it is seen all the same, and nobody is busy for ever by mistake."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec import structs

from perdure.daemon import rounds as rounds_module
from perdure.daemon.daemon import Daemon
from perdure.daemon.stimuli import Key, Round, What
from perdure.daemon.world import World
from perdure.host import watch as watch_module
from perdure.host.watch import Watch, watch
from perdure.model.run import RunState
from tests.acceptance.kit import wait_for
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.integration.watching_here import await_run, watching_here
from tests.tmux_server import TmuxServer

#: How long the agent is at work, in seconds: as long as a look at a loaded machine may take.
THINKS = "4"


def is_at_its_prompt(tmux: TmuxServer) -> bool:
    shown = tmux.run("capture-pane", "-p", "-t", "a").decode().strip()
    return shown.endswith("you ▸")


@pytest.fixture
def agents(private_home: PrivateHome) -> Simulants:
    return Simulants(private_home)


def test_an_agent_that_is_done_before_it_is_watched_is_not_busy_for_ever(
    tmux: TmuxServer, agents: Simulants, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux.run("new-session", "-d", "-s", "keep", "-n", "w")
    take, is_late = Daemon._take, asyncio.Event()

    def take_late(self: Daemon, done: Round) -> None:
        """Watch what was found only when the agent was seen at work, and is done by now."""
        if not is_late.is_set():
            found = [run for run in self.current.runs if run.place.session == "a"]
            if not found or found[0].status.state is RunState.UNKNOWN:
                take(self, structs.replace(done, paths=self._paths))
                return
            wait_for(lambda: is_at_its_prompt(tmux), "the end of its turn")
            is_late.set()
        take(self, done)

    async def go() -> None:
        async with watching_here() as daemon:
            monkeypatch.setattr(Daemon, "_take", take_late)
            tmux.run("new-session", "-d", "-s", "a", "-n", "w", agents.path, "--think", THINKS, "heard")
            await await_run(daemon, "a:0.0", lambda run: run.agent is not None and run.status.waits)
            assert is_late.is_set()

    asyncio.run(go())
    agents.end_all()


def test_who_is_not_told_of_is_looked_at_again_all_the_same(
    tmux: TmuxServer, agents: Simulants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds_module, "EVERY", 2.0)

    def is_deaf(self: Watch[Key], path: str, key: Key) -> bool:
        return False

    async def go() -> None:
        monkeypatch.setattr(Watch, "add", is_deaf)
        async with watching_here() as daemon:
            tmux.run("new-session", "-d", "-s", "a", "-n", "w", agents.path, "--think", THINKS, "heard")
            await await_run(daemon, "a:0.0", lambda run: run.agent is not None and run.status.waits)

    tmux.run("new-session", "-d", "-s", "keep", "-n", "w")
    asyncio.run(go())
    agents.end_all()


def nothing() -> World:
    raise AssertionError("nobody looks at anything")


def begun(daemon: Daemon) -> Watch[Key]:
    daemon._watch = watch()
    assert daemon._watch is not None
    return daemon._watch


@pytest.mark.parametrize("is_heard", [False, True])
def test_another_terminal_of_the_same_name_is_watched_for_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_heard: bool
) -> None:
    # As for terminals: gone is gone, whatever is given the name later. Which name a terminal is given nobody can choose.
    monkeypatch.setattr(watch_module, "_is_device", lambda path: True)
    terminal, key = tmp_path / "7", Key(What.PANE, "r1")

    async def go() -> None:
        daemon = Daemon(nothing)
        watching = begun(daemon)
        terminal.touch()
        daemon._take(Round(paths={key: str(terminal)}))
        terminal.unlink()
        if is_heard:
            daemon._something_changed()
        terminal.touch()
        # The run has come back, with its conversation, in a terminal of the same name.
        daemon._take(Round(paths={key: str(terminal)}))
        daemon._something_changed()
        watching.read()
        terminal.write_text("printed", encoding="utf-8")
        assert watching.read() == {key}
        watching.close()
        daemon._watch = None

    asyncio.run(go())
