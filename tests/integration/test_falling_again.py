"""A server that falls again while it is brought back, before anybody has seen it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Mapping, Sequence

import pytest

from perdure.daemon import daemon as module
from perdure.daemon.daemon import Daemon
from perdure.host.child import run_aside
from perdure.host.run import Ran
from perdure.model.event import EventKind
from tests.acceptance.kit import configure
from tests.acceptance.simulants import Simulants, starts
from tests.conftest import PrivateHome
from tests.integration.watching_here import await_events, await_run, watching_here
from tests.tmux_server import PATIENCE, TmuxServer


class _Falls:
    """Restores, during some of which nobody looks and what they make is killed as soon as an agent is in it."""

    def __init__(self, tmux: TmuxServer, simulants: Simulants, times: int) -> None:
        self._simulants = simulants
        self._tmux = tmux
        self._left = times
        self.daemon: Daemon | None = None
        #: The servers that fell unseen.
        self.fallen: list[int] = []

    async def __call__(self, words: Sequence[str], *, environ: Mapping[str, str], cwd: str) -> Ran:
        """Bring back."""
        if self._left <= 0:
            return await run_aside(words, environ=environ, cwd=cwd)
        self._left -= 1
        assert self.daemon is not None
        over = threading.Event()
        looking = asyncio.ensure_future(self.daemon.in_order(lambda _: over.wait(PATIENCE)))
        try:
            restoring = asyncio.ensure_future(run_aside(words, environ=environ, cwd=cwd))
            begun = len(self.fallen) + 1
            while set(starts(self._simulants.records()).values()) != {begun + 1}:
                await asyncio.sleep(0.02)
            self.fallen.append(self._tmux.pid)
            os.kill(self.fallen[-1], signal.SIGKILL)
            return await restoring
        finally:
            over.set()
            await looking


def _falling(tmux: TmuxServer, home: PrivateHome, monkeypatch: pytest.MonkeyPatch, times: int) -> _Falls:
    configure(home, "[live]\nrestore = true\n")
    simulants = Simulants(home)
    falls = _Falls(tmux, simulants, times)
    monkeypatch.setattr(module, "run_aside", falls)
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", f"exec {simulants.path} --boot 0.5 hello")
    return falls


def test_a_server_that_falls_again_before_it_is_seen_is_brought_back_again(
    tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    falls = _falling(tmux, private_home, monkeypatch, 1)

    async def fall() -> None:
        async with watching_here() as falls.daemon:
            before = await await_run(falls.daemon, "work:0.0", lambda run: run.status.waits and run.program is not None)
            first = tmux.pid
            tmux.kill9()
            failed, done = await await_events(falls.daemon, EventKind.RESTORED, 2)
            died = await await_events(falls.daemon, EventKind.SERVER_DIED, 2)
            assert [each.data["pid"] for each in died] == [first, *falls.fallen]
            assert [(each.data["restoring"], each.data["agents"]) for each in died] == [(True, 1), (True, 1)]
            assert (failed.data["exit_code"], done.data["exit_code"]) == (4, 0)
            assert "work:0.0" in failed.data["message"]
            after = await await_run(falls.daemon, "work:0.0", lambda run: run.program is not None)
            assert (after.id, after.identity and after.identity.conversation) == (
                before.id,
                before.identity and before.identity.conversation,
            )

    asyncio.run(fall())


def test_one_that_falls_whenever_it_is_brought_back_is_left_at_last(
    tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("perdure.daemon.deaths.MOST_UNSEEN", 1)
    falls = _falling(tmux, private_home, monkeypatch, 10)

    async def fall() -> None:
        async with watching_here() as falls.daemon:
            await await_run(falls.daemon, "work:0.0", lambda run: run.status.waits and run.program is not None)
            tmux.kill9()
            died = await await_events(falls.daemon, EventKind.SERVER_DIED, 3)
            assert [each.data["restoring"] for each in died] == [True, True, False]

    asyncio.run(fall())
