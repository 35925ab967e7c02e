"""Agents and servers that end at about the same time, in whichever order that is noticed."""

from __future__ import annotations

import asyncio
import os
import re
import signal
from collections.abc import Callable

import pytest

from perdure.cli.up import open_world
from perdure.daemon.daemon import Daemon
from perdure.daemon.deaths import ALONG
from perdure.daemon.rounds import Rounds
from perdure.daemon.stimuli import Gone, Key, Stimuli, What
from perdure.host.exits import Exit
from perdure.host.processes import is_alive, read_entry
from perdure.model.event import Event, EventKind
from perdure.model.run import Program, Run, RunState
from tests.acceptance.kit import configure, wait_for
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.integration.watching_here import await_run, watching_here
from tests.tmux_server import TmuxServer

#: Before Linux 6.15 the kernel tells nobody but the parent how a process ended.
is_told_how = pytest.mark.skipif(
    tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) < (6, 15), reason="the kernel does not tell how"
)


@pytest.fixture
def simulants(private_home: PrivateHome) -> Simulants:
    """The simulated agents of the test's home."""
    return Simulants(private_home)


def _agent(tmux: TmuxServer, simulants: Simulants, session: str = "work") -> None:
    """Start an agent that is all there is in its pane."""
    tmux.run("new-session", "-d", "-s", session, "-x", "100", "-y", "30", f"exec {simulants.path} hello")


def _look(rounds: Rounds) -> None:
    rounds.round(Stimuli(everything=True))


def _events(rounds: Rounds, *kinds: EventKind) -> list[Event]:
    return [each.event for each in rounds.world.store.read_events(limit=10_000, kinds=kinds)]


def _is_over(program: Program) -> bool:
    return not is_alive(program.pid, program.start_ticks)


# -- agents that a server takes along ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "counted"), [(0.0, 1), (ALONG / 2, 1), (60.0, 0)])
def test_an_agent_whose_end_is_heard_before_its_servers_counts_when_that_took_it_along(
    tmux: TmuxServer, simulants: Simulants, private_home: PrivateHome, before: float, counted: int
) -> None:
    configure(private_home, "[live]\nrestore = true\n")
    tmux.run("new-session", "-d", "-s", "base", "/bin/sh")
    _agent(tmux, simulants)
    wait_for(simulants.running, "the agent")
    world = open_world(False)
    try:
        rounds = Rounds(world, lambda *_: None)
        rounds.begin()
        (run,) = [run for run in rounds.supervisor.runs if run.program is not None]
        program, entry = run.program, read_entry(tmux.pid)
        assert program is not None
        assert entry is not None
        server = Program(pid=tmux.pid, start_ticks=entry.start_ticks)
        os.kill(program.pid, signal.SIGKILL)
        wait_for(lambda: _is_over(program), "the end of the agent")
        rounds.round(Stimuli(ended={Key(What.AGENT, run.id): Gone(program, Exit(signal=1), 1000.0)}))
        tmux.kill9()
        rounds.round(Stimuli(ended={Key(What.SERVER, run.server.key): Gone(server, Exit(signal=9), 1000.0 + before)}))
        (died,) = _events(rounds, EventKind.SERVER_DIED)
        assert (died.data["agents"], died.data["restoring"]) == (counted, bool(counted))
        assert [each.socket for each in rounds.to_restore] == [tmux.socket] * counted
    finally:
        world.close()


# -- agents whose exit a look is ahead of ------------------------------------------------------------------------------


def _ends_before_a_look(
    tmux: TmuxServer, simulants: Simulants, is_over: Callable[[], object], looks: Callable[[Rounds], None] = _look
) -> tuple[Run, list[Event]]:
    """Have an agent end while a round is at work, which then sees what is left; return its run and its last change."""

    async def end() -> tuple[Run, list[Event]]:
        async with watching_here() as daemon:
            run = await await_run(daemon, "work:0.0", lambda run: run.program is not None)

            def work(rounds: Rounds) -> tuple[Run, list[Event]]:
                assert run.program is not None
                tmux.run("send-keys", "-t", "work:", "/quit", "Enter")
                wait_for(lambda: run.program is not None and _is_over(run.program) and is_over(), "the end")
                found = _seen_to_be_over(rounds, run.id, looks)
                return found, [
                    each
                    for each in _events(rounds, EventKind.STATE_CHANGED, EventKind.RUN_DELETED)
                    if each.run == run.id
                ][-2:]

            return await _once_quiet(daemon, work)

    wait_for(simulants.running, "the agent")
    return asyncio.run(end())


def _seen_to_be_over(rounds: Rounds, id: str, looks: Callable[[Rounds], None]) -> Run:
    def over() -> Run | None:
        looks(rounds)
        run = rounds.supervisor.get(id)
        return run if run is not None and run.is_over else None

    wait_for(over, "its end to be seen")
    found = rounds.supervisor.get(id)
    assert found is not None
    return found


async def _once_quiet(daemon: Daemon, work: Callable[[Rounds], tuple[Run, list[Event]]]) -> tuple[Run, list[Event]]:
    await await_run(daemon, "work:0.0", lambda run: run.status.waits)
    return await daemon.in_order(work)


@is_told_how
def test_how_an_agent_ended_is_known_though_its_server_is_seen_to_be_gone_first(
    tmux: TmuxServer, simulants: Simulants
) -> None:
    _agent(tmux, simulants)
    run, (change, over) = _ends_before_a_look(tmux, simulants, lambda: not tmux.alive)
    assert (run.status.state, run.status.cause, run.exit_status) == (RunState.EXITED, "process:process_exit", 0)
    assert (change.data["exit_status"], over.data["reason"]) == (0, "server_died")


@is_told_how
def test_how_an_agent_ended_is_known_though_it_ends_a_moment_after_its_server(
    tmux: TmuxServer, simulants: Simulants
) -> None:
    """As it does when tmux is done with it: its terminal is closed before it has ended."""
    _agent(tmux, simulants)
    wait_for(simulants.running, "the agent")
    told: list[dict[Key, Gone]] = []
    world = open_world(False)
    try:
        # What was told last is told again.
        rounds = Rounds(world, lambda *_: None, lambda: told.pop(0) if len(told) > 1 else dict(*told))
        rounds.begin()
        (run,) = rounds.supervisor.runs
        program, entry = run.program, read_entry(tmux.pid)
        assert program is not None
        assert entry is not None
        server = Program(pid=tmux.pid, start_ticks=entry.start_ticks)
        tmux.run("send-keys", "-t", "work:", "/quit", "Enter")
        wait_for(lambda: _is_over(program) and _is_over(server), "the end")
        first = {Key(What.SERVER, run.server.key): Gone(server, Exit(status=0), world.ticking())}
        told += [first, first, {**first, Key(What.AGENT, run.id): Gone(program, Exit(status=7), world.ticking())}]
        _look(rounds)
        (change,) = [each for each in _events(rounds, EventKind.STATE_CHANGED) if each.data["state"] == RunState.EXITED]
        assert (change.data["cause"], change.data["exit_status"]) == ("process:process_exit", 7)
        assert len(_events(rounds, EventKind.SERVER_DIED)) == 1
    finally:
        world.close()


@is_told_how
def test_how_an_agent_ended_is_known_though_its_pane_is_seen_to_be_gone_first(
    tmux: TmuxServer, simulants: Simulants
) -> None:
    tmux.run("new-session", "-d", "-s", "base", "/bin/sh")
    _agent(tmux, simulants)
    run, (change, over) = _ends_before_a_look(tmux, simulants, lambda: tmux.run("list-sessions").count(b"\n") == 1)
    assert (run.status.state, run.status.cause, run.exit_status) == (RunState.EXITED, "process:process_exit", 0)
    assert (change.data["exit_status"], over.data["reason"]) == (0, "tmux_reconcile_missing")


@is_told_how
def test_how_an_agent_ended_is_known_though_a_save_finds_its_pane_gone_first(
    tmux: TmuxServer, simulants: Simulants
) -> None:
    tmux.run("new-session", "-d", "-s", "base", "/bin/sh")
    _agent(tmux, simulants)

    def save(rounds: Rounds) -> None:
        rounds.save()
        rounds.record()

    run, (change, _) = _ends_before_a_look(tmux, simulants, lambda: tmux.run("list-sessions").count(b"\n") == 1, save)
    assert (run.status.cause, run.exit_status, change.data["exit_status"]) == ("process:process_exit", 0, 0)


def test_agents_of_a_server_that_is_killed_end_with_it_though_their_ends_are_heard_first(
    tmux: TmuxServer, simulants: Simulants
) -> None:
    _agent(tmux, simulants)
    wait_for(simulants.running, "the agent")

    async def fall() -> tuple[Run, list[Event]]:
        async with watching_here() as daemon:
            run = await await_run(daemon, "work:0.0", lambda run: run.program is not None)
            program = run.program
            assert program is not None

            def work(rounds: Rounds) -> tuple[Run, list[Event]]:
                tmux.kill9()
                os.kill(program.pid, signal.SIGKILL)
                wait_for(lambda: _is_over(program), "the end of the agent")
                _look(rounds)
                found = rounds.supervisor.get(run.id)
                assert found is not None
                return found, _events(rounds, EventKind.SERVER_DIED)

            return await daemon.in_order(work)

    run, (died,) = asyncio.run(fall())
    assert (run.status.cause, died.data["agents"]) == ("process:server_died", 1)
