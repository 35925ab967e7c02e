"""The daemon where the machine tells less, where agents' adapters break, and where nobody waits for an answer any more."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from perdure.agents.simulant import Simulant
from perdure.daemon import daemon as module
from perdure.daemon import deaths
from perdure.daemon.daemon import Daemon
from perdure.daemon.rounds import Rounds
from perdure.host.demise import Demise, DemiseKind
from perdure.host.run import Ran
from perdure.host.watch import Watch, watch
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.run import Health, Run
from tests.acceptance.kit import configure
from tests.acceptance.simulants import Simulants
from tests.builders import NOON
from tests.conftest import PrivateHome
from tests.integration.watching_here import await_run, events_of, runs_of, watching_here
from tests.tmux_server import PATIENCE, TmuxServer

_SHELL = "/bin/sh"


def _session(tmux: TmuxServer, name: str) -> None:
    tmux.run("new-session", "-d", "-s", name, "-n", "one", "-x", "100", "-y", "30", _SHELL)


def _type(tmux: TmuxServer, session: str, *words: str) -> None:
    tmux.run("send-keys", "-t", f"{session}:0", *words, "Enter")


def _is(*words: str) -> Callable[[Run], bool]:
    return lambda run: run.status.word in words


async def _goes_through_a_day(daemon: Daemon, tmux: TmuxServer, simulants: Simulants) -> None:
    await await_run(daemon, "base:0.0", _is("idle"))
    _type(tmux, "base", "sleep 1000")
    await await_run(daemon, "base:0.0", _is("busy"))
    _session(tmux, "work")
    _type(tmux, "work", f"{simulants.path} --think 3")
    await await_run(daemon, "work:0.0", lambda run: run.agent == "simulant" and run.status.word == "idle")
    _type(tmux, "work", "hello")
    await await_run(daemon, "work:0.0", _is("busy"))
    await await_run(daemon, "work:0.0", _is("attention(done)"))
    _type(tmux, "work", "run tests")
    await await_run(daemon, "work:0.0", _is("attention(permission)"))
    _type(tmux, "work", "n")
    await await_run(daemon, "work:0.0", _is("attention(done)"))
    before = await await_run(daemon, "work:0.0", lambda run: bool(run.identity and run.identity.conversation))
    _type(tmux, "work", "/new")
    await await_run(
        daemon, "work:0.0", lambda run: bool(run.identity and before.identity) and run.identity != before.identity
    )
    _type(tmux, "work", "/quit")
    await await_run(daemon, "work:0.0", _is("exited"))
    tmux.run("kill-session", "-t", "work")
    while any(run.place.session == "work" for run in await runs_of(daemon)):
        await asyncio.sleep(0.02)


def test_where_the_kernel_tells_nothing(
    tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No inotify at all: everything is looked at once a second."""
    monkeypatch.setattr(module, "watch", lambda: None)
    simulants = Simulants(private_home)
    _session(tmux, "base")

    async def day() -> None:
        async with watching_here() as daemon:
            await _goes_through_a_day(daemon, tmux, simulants)

    asyncio.run(day())


class Limited(Watch[Any]):
    """A kernel that allows no more watches for terminals and agents' files."""

    def add(self, path: str, key: Any) -> bool:
        """Watch a path, unless it is one of those."""
        if path.startswith("/dev/pts/") or "simulant" in path:
            self._spots.setdefault(key, {})[os.fsencode(path)] = frozenset()
            return False
        return super().add(path, key)


def test_where_the_kernel_allows_no_more_watches(
    tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    def limited() -> Watch[Any]:
        found: Watch[Any] | None = watch()
        assert found is not None
        return Limited(found._inotify)

    monkeypatch.setattr(module, "watch", limited)
    simulants = Simulants(private_home)
    _session(tmux, "base")

    async def day() -> None:
        async with watching_here() as daemon:
            await _goes_through_a_day(daemon, tmux, simulants)

    asyncio.run(day())


@pytest.mark.parametrize("method", ["score", "identify", "describe", "read_screen", "transcripts", "turns"])
def test_an_adapter_that_breaks_costs_only_itself(
    tmux: TmuxServer,
    private_home: PrivateHome,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
) -> None:
    calls: list[str] = []

    def broken(*args: Any, **kwargs: Any) -> Any:
        calls.append(method)
        raise RuntimeError(f"{method} is broken")

    monkeypatch.setattr(Simulant, method, broken)
    simulants = Simulants(private_home)
    _session(tmux, "base")
    _session(tmux, "work")

    async def goes_on() -> None:
        async with watching_here() as daemon:
            _type(tmux, "work", f"{simulants.path} --think 0.2 hello")
            await await_run(daemon, "base:0.0", _is("idle"))
            _type(tmux, "base", "sleep 1000")
            await await_run(daemon, "base:0.0", _is("busy"))
            async with asyncio.timeout(PATIENCE):
                while not simulants.running() or simulants.turns() < 2 or not calls:
                    await asyncio.sleep(0.02)
            _session(tmux, "more")
            await await_run(daemon, "more:0.0", _is("idle"))
            await await_run(daemon, "work:0.0", lambda run: run.health is Health.HEALTHY)

    asyncio.run(goes_on())
    failed = [
        record
        for record in caplog.records
        if record.name.startswith("perdure.daemon") and record.levelno >= logging.ERROR
    ]
    assert [record for record in failed if record.name != "perdure.daemon.thinking"] == []


def test_what_came_of_a_question_is_published_also_when_nobody_waits_for_the_answer(tmux: TmuxServer) -> None:
    _session(tmux, "base")

    async def ask_and_leave() -> None:
        async with watching_here() as daemon:
            await await_run(daemon, "base:0.0", _is("idle"))
            published: list[StoredEvent] = []
            real = daemon.feed.publish
            daemon.feed.publish = lambda event: (published.append(event), real(event))[1]  # type: ignore[method-assign, func-returns-value]
            held = asyncio.Event()
            loop = asyncio.get_running_loop()

            def note(rounds: Rounds) -> None:
                loop.call_soon_threadsafe(held.set)
                rounds.supervisor.note(Event(kind=EventKind.SENT, at=NOON, data={"result": "delivered"}))

            for _ in range(20):
                held.clear()
                question = loop.create_task(daemon.in_order(note))
                await held.wait()
                question.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await question
            await daemon.in_order(lambda rounds: None)
            await asyncio.sleep(0)
            stored = [each for each in await events_of(daemon) if each.event.kind is EventKind.SENT]
            assert len(stored) == 20
            assert [each for each in published if each.event.kind is EventKind.SENT] == stored

    asyncio.run(ask_and_leave())


def test_a_round_that_breaks_is_said_once_and_everything_is_looked_at_again(
    tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    _session(tmux, "base")
    real, failures = Rounds.round, [0]

    def breaking(rounds: Rounds, noticed: Any) -> Any:
        if 0 < failures[0] <= 2:
            failures[0] += 1
            raise RuntimeError("something nobody has thought of")
        return real(rounds, noticed)

    monkeypatch.setattr(Rounds, "round", breaking)

    async def goes_on() -> None:
        async with watching_here() as daemon:
            await await_run(daemon, "base:0.0", _is("idle"))
            failures[0] = 1
            # What happens just then is not forgotten.
            _type(tmux, "base", "sleep 1000")
            tmux.run("new-window", "-d", "-t", "base", "-n", "two", _SHELL)
            await await_run(daemon, "base:0.0", _is("busy"))
            await await_run(daemon, "base:1.0", _is("idle"))

    asyncio.run(goes_on())
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert said == ["a round failed: something nobody has thought of"]


def test_where_the_kernel_does_not_tell_how_a_server_ended(
    tmux: TmuxServer, private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What may have been an accident is brought back: that can be ended again."""
    unknown = Demise(kind=DemiseKind.UNKNOWN, sentence="Nobody knows.", detail={})
    monkeypatch.setattr(deaths, "cause", lambda vigil, how: unknown)
    configure(private_home, "[live]\nrestore = true\n")
    simulants = Simulants(private_home)
    brought_back: list[Sequence[str]] = []

    async def bring_back(words: Sequence[str], **_: object) -> Ran:
        brought_back.append(words)
        return Ran(0, b"", "")

    monkeypatch.setattr(module, "run_aside", bring_back)

    async def die() -> None:
        async with watching_here() as daemon:
            _session(tmux, "work")
            _type(tmux, "work", f"{simulants.path} hello")
            await await_run(daemon, "work:0.0", _is("attention(done)", "idle"))
            await await_run(daemon, "work:0.0", lambda run: run.program is not None)
            tmux.kill9()
            await _await_event(daemon, EventKind.SERVER_DIED, 1)
            await _await_event(daemon, EventKind.RESTORED, 1)
            assert len(brought_back) == 1

    asyncio.run(die())
    simulants.end_all()


async def _await_event(daemon: Daemon, kind: EventKind, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while [each.event.kind for each in await events_of(daemon)].count(kind) < count:
            await asyncio.sleep(0.05)


def test_nothing_is_watched_any_more_for_runs_that_are_gone(tmux: TmuxServer, private_home: PrivateHome) -> None:
    _session(tmux, "base")
    simulants = Simulants(private_home)

    def watches(daemon: Daemon) -> int:
        assert daemon._watch is not None
        with open(f"/proc/self/fdinfo/{daemon._watch.fileno()}") as file:
            return sum(line.startswith("inotify wd:") for line in file)

    async def come_and_go() -> None:
        async with watching_here() as daemon:
            await await_run(daemon, "base:0.0", _is("idle"))
            first = 0
            for turn in range(3):
                _session(tmux, "work")
                _type(tmux, "work", f"{simulants.path} hello")
                await await_run(daemon, "work:0.0", _is("attention(done)", "idle"))
                tmux.run("kill-session", "-t", "work")
                while len(await runs_of(daemon)) > 1:
                    await asyncio.sleep(0.02)
                if turn == 0:
                    await asyncio.sleep(0.3)
                    first = watches(daemon)
            async with asyncio.timeout(PATIENCE):
                while watches(daemon) > first:
                    await asyncio.sleep(0.02)

    asyncio.run(come_and_go())


def test_one_that_hung_up_and_is_gone_is_not_waited_for(tmux: TmuxServer, private_home: PrivateHome) -> None:
    """As long as it may be there nothing is said of its end, and nothing that fell there is brought back."""
    os.makedirs(os.path.dirname(tmux.socket), mode=0o700)

    async def failures(daemon: Daemon) -> int:
        return await daemon.in_order(lambda rounds: sum(known.failures for known in rounds._servers.values()))

    async def hang_up() -> None:
        async with watching_here() as daemon:
            fallen = await asyncio.start_unix_server(lambda _, writer: writer.close(), tmux.socket)
            await _until(lambda: failures(daemon))
            fallen.close()
            await fallen.wait_closed()
            await _until(lambda: _is_none(failures(daemon)))

    asyncio.run(hang_up())


async def _is_none(count: Awaitable[int]) -> bool:
    return not await count


async def _until(is_so: Callable[[], Awaitable[object]]) -> None:
    until = time.monotonic() + PATIENCE
    while not await is_so():
        assert time.monotonic() < until
        await asyncio.sleep(0.02)
