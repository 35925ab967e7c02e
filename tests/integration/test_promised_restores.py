"""A server that is said to be brought back is, whoever comes in between; and nothing is tried for ever."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence

import pytest

from perdure.daemon import daemon as module
from perdure.daemon.daemon import Daemon
from perdure.host.child import run_aside
from perdure.host.lock import held
from perdure.host.run import Ran
from perdure.model.event import Event, EventKind
from perdure.model.run import Run
from tests.acceptance.kit import configure
from tests.acceptance.simulants import Simulants, starts
from tests.acceptance.watching import state_dir
from tests.conftest import PrivateHome
from tests.integration.watching_here import await_events, await_run, watching_here
from tests.tmux_server import TmuxServer

Restore = Callable[[], Awaitable[Ran]]


class _Restores:
    """Restores, the first of which are others than they should be: each is handed what would do it."""

    def __init__(self, *first: Callable[[Restore], Awaitable[Ran]]) -> None:
        self._first = list(first)
        #: How each of them ended.
        self.ended: list[int] = []

    async def __call__(self, words: Sequence[str], *, environ: Mapping[str, str], cwd: str) -> Ran:
        """Bring back."""

        def bring_back() -> Awaitable[Ran]:
            return run_aside(words, environ=environ, cwd=cwd)

        ran = await (self._first.pop(0)(bring_back) if self._first else bring_back())
        self.ended.append(ran.status)
        return ran


async def _killed(_: Restore) -> Ran:
    return Ran(-signal.SIGKILL, b"", "")


@pytest.fixture
def simulants(tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> Simulants:
    """The simulated agents of the test's home, one of them in a server that is brought back when it falls."""
    monkeypatch.setattr(module, "AGAIN", 0.05, raising=False)
    configure(private_home, "[live]\nrestore = true\n")
    simulants = Simulants(private_home)
    command = f"exec {simulants.path} --boot 0.2 hello"
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "-x", "100", "-y", "30", command)
    return simulants


async def _before(daemon: Daemon) -> Run:
    return await await_run(daemon, "work:0.0", lambda run: run.status.waits and run.program is not None)


async def _is_back(daemon: Daemon, before: Run, simulants: Simulants) -> None:
    after = await await_run(daemon, "work:0.0", lambda run: run.program is not None and run.identity is not None)
    assert before.identity is not None
    assert after.identity is not None
    assert (after.id, after.identity.conversation) == (before.id, before.identity.conversation)
    assert starts(simulants.records()) == {before.identity.conversation: 2}


def _codes(events: Sequence[Event]) -> list[object]:
    return [event.data["exit_code"] for event in events]


async def _falls_and_comes_back(tmux: TmuxServer, simulants: Simulants) -> None:
    """See a server fall while it is watched, and come back, however often that is tried; it is told once."""
    async with watching_here() as daemon:
        before = await _before(daemon)
        tmux.kill9()
        assert _codes(await await_events(daemon, EventKind.RESTORED, 1)) == [0]
        await _is_back(daemon, before, simulants)


def test_a_restore_that_a_signal_ended_is_gone_on_with(
    tmux: TmuxServer, simulants: Simulants, monkeypatch: pytest.MonkeyPatch
) -> None:
    restores = _Restores(_killed, _killed)
    monkeypatch.setattr(module, "run_aside", restores)
    asyncio.run(_falls_and_comes_back(tmux, simulants))
    assert restores.ended == [-9, -9, 0]


def test_but_not_for_ever(tmux: TmuxServer, simulants: Simulants, monkeypatch: pytest.MonkeyPatch) -> None:
    restores = _Restores(*[_killed] * 9)
    monkeypatch.setattr(module, "run_aside", restores)

    async def give_up() -> None:
        async with watching_here() as daemon:
            await _before(daemon)
            tmux.kill9()
            assert _codes(await await_events(daemon, EventKind.RESTORED, 1)) == [-9]
        assert restores.ended == [-9, -9, -9]
        # It was told what came of it: the next one does not begin anew.
        async with watching_here() as daemon:
            assert len(await await_events(daemon, EventKind.RESTORED, 1)) == 1
        assert len(restores.ended) == 3

    asyncio.run(give_up())


def test_a_restore_waits_for_another_that_is_at_work(
    tmux: TmuxServer, simulants: Simulants, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def while_another_is_at_work(restore: Restore) -> Ran:
        with held(os.path.join(state_dir(), f"restore-{os.getuid()}.lock"), "restore"):
            return await restore()

    restores = _Restores(while_another_is_at_work, while_another_is_at_work)
    monkeypatch.setattr(module, "run_aside", restores)
    asyncio.run(_falls_and_comes_back(tmux, simulants))
    assert restores.ended == [6, 6, 0]


def test_one_that_falls_while_it_is_brought_back_has_lost_what_was_to_be_in_it(
    tmux: TmuxServer, simulants: Simulants, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fall_again(_: Restore) -> Ran:
        # Seen, and no agent in it yet.
        tmux.run("new-session", "-d", "-s", "half", "-n", "one", "/bin/sh")
        await await_run(watching[0], "half:0.0")
        tmux.kill9()
        await await_events(watching[0], EventKind.SERVER_DIED, 2)
        return Ran(4, b"", "the server is gone")

    watching: list[Daemon] = []
    restores = _Restores(fall_again)
    monkeypatch.setattr(module, "run_aside", restores)

    async def fall() -> None:
        async with watching_here() as daemon:
            watching.append(daemon)
            before = await _before(daemon)
            tmux.kill9()
            # What came of the first is nothing yet.
            assert _codes(await await_events(daemon, EventKind.RESTORED, 1)) == [0]
            died = await await_events(daemon, EventKind.SERVER_DIED, 2)
            assert [(each.data["agents"], each.data["restoring"]) for each in died] == [(1, True), (1, True)]
            await _is_back(daemon, before, simulants)
        assert restores.ended == [4, 0]

    asyncio.run(fall())


def test_what_a_daemon_was_to_bring_back_when_it_ended_is_brought_back_by_the_next(
    tmux: TmuxServer, simulants: Simulants, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = asyncio.Event()

    async def never_end(_: Restore) -> Ran:
        begun.set()
        await asyncio.Event().wait()
        raise AssertionError

    restores = _Restores(never_end)
    monkeypatch.setattr(module, "run_aside", restores)

    async def go_on() -> None:
        async with watching_here() as daemon:
            before = await _before(daemon)
            tmux.kill9()
            await begun.wait()
        async with watching_here() as daemon:
            assert _codes(await await_events(daemon, EventKind.RESTORED, 1)) == [0]
            await _is_back(daemon, before, simulants)
        # Once is enough.
        async with watching_here() as daemon:
            assert len(await await_events(daemon, EventKind.RESTORED, 1)) == 1
        assert restores.ended == [0]

    asyncio.run(go_on())
