"""The HTTP interface: how soon runs are listed, events told and letters echoed, and what a flood in a watched pane does to it."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from datetime import UTC, datetime
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.measures import painting
from bench.processes import cpu, held
from bench.results import Api, Flood
from bench.sandbox import PATIENCE, BenchFailed, Sandbox
from bench.servers import SHAPES, Server, serve
from bench.timing import Timing, timed
from bench.watching import Watcher, watching
from perdure.daemon.call import call
from perdure.daemon.protocol import MarkTold
from perdure.model.run import Run

PANES = 200
SUBSCRIBERS = 50
LIST = f"GET /api/runs, {PANES} runs"
FANNED = f"an event, to all of {SUBSCRIBERS} subscribers"
ECHO = "a letter typed over the WebSocket, to its echo"
LIST_FLOODED = f"{LIST}, while a watched pane floods"
PAINTED = f"the dashboard, until all {PANES} runs are on the screen"
ECHO_FLOODED = "the same echo, while another watched pane floods"
#: How often the dashboard is opened.
_PAINTINGS = 8
#: How much is printed, in bytes.
FLOOD = 50 << 20
#: After a start, a daemon looks a few more times at what may still be starting, in seconds.
_SETTLE = 8.0


def measure(sandbox: Sandbox, *, samples: int, width: int) -> Api:
    """Measure everything there is about the HTTP interface, each delay so many times."""
    print(f"{PANES} panes over HTTP …", file=sys.stderr, flush=True)
    with serve(sandbox, SHAPES["Nx4"], PANES, width) as server, watching(server, sandbox) as watcher:
        runs = watcher.await_runs(lambda runs: len(runs) == PANES, "the daemon does not know all panes")
        time.sleep(_SETTLE)
        client = _Client(watcher)
        listed = Timing(samples=tuple(client.list_runs() for _ in range(samples)))
        painted = {}
        if painting.can_paint():
            painted[PAINTED] = painting.measure(watcher, sandbox, panes=PANES, samples=_PAINTINGS)
        timings, flood = asyncio.run(_over_sockets(client, server, sandbox, runs, samples))
        return Api(panes=PANES, timings={LIST: listed, **timings, **painted}, flood=flood)


class _Client:
    """Somebody with the owner's token."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self._address = watcher.url.removeprefix("http://")
        self._bearer = {"Authorization": f"Bearer {watcher.token}"}
        self._connection = http.client.HTTPConnection(self._address, timeout=PATIENCE)

    def list_runs(self) -> float:
        """Return the seconds until all runs have come."""
        return timed(self._list_runs)

    def _list_runs(self) -> None:
        self._connection.request("GET", f"/api/runs?limit={PANES}", headers=self._bearer)
        answer = self._connection.getresponse()
        body = answer.read()
        if answer.status != http.client.OK or body.count(b'"pane_id"') != PANES:
            raise BenchFailed(f"the list of runs is wrong: {answer.status}, {len(body)} bytes")

    async def talk(self, stack: AsyncExitStack) -> _Talk:
        """Return a WebSocket, closed with the stack."""
        address = f"ws://{self._address}/api/socket"
        opened = connect(address, additional_headers=self._bearer, proxy=None, max_size=None)
        return _Talk(await stack.enter_async_context(opened))


class _Talk:
    """One WebSocket."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self._echoed = 0
        self.frames = 0

    async def say(self, **message: object) -> None:
        await self._connection.send(json.dumps(message))

    async def until(self, is_it: Callable[[dict[str, Any]], bool]) -> float:
        """Return when a message came that is the one."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = json.loads(await self._connection.recv())
                at = time.perf_counter()
                self.frames += 1
                if is_it(message):
                    return at

    async def open(self, run: Run) -> None:
        await self.say(op="open", run=run.id)
        await self.until(lambda message: message["type"] == "screen" and (self._is_echo(message) or True))

    async def echo(self, run: Run) -> float:
        """Return the seconds from a letter that is typed to its echo."""
        begin = time.perf_counter()
        await self.say(op="input", run=run.id, text="x")
        return await self.until(self._is_echo) - begin

    def _is_echo(self, message: dict[str, Any]) -> bool:
        """By what is printed, or where nobody is attached, by a whole screen that has one more."""
        if message["type"] == "output":
            return "x" in message["text"]
        if message["type"] != "screen":
            return False
        before, self._echoed = self._echoed, message["text"].count("x")
        return self._echoed > before


async def _over_sockets(
    client: _Client, server: Server, sandbox: Sandbox, runs: Sequence[Run], samples: int
) -> tuple[dict[str, Timing], Flood]:
    typed, flooded = runs[0], runs[-1]
    async with AsyncExitStack() as stack:
        talks = [await client.talk(stack) for _ in range(SUBSCRIBERS)]
        fanned = await _fan_out(client.watcher, talks, runs[1], samples)
    async with AsyncExitStack() as stack:
        talk = await client.talk(stack)
        await talk.open(typed)
        echo = await _echoes(talk, typed, samples)
    # Anew: a connection that was silent for a while is closed.
    client = _Client(client.watcher)
    found, listed, echoed = await _flood(client, server, sandbox, typed, flooded)
    timings = {FANNED: fanned, ECHO: echo, LIST_FLOODED: listed, ECHO_FLOODED: echoed}
    return timings, found


async def _fan_out(watcher: Watcher, talks: Sequence[_Talk], run: Run, samples: int) -> Timing:
    """Return how long it took each subscriber to hear of each of some events, from before it was made to happen."""
    for talk in talks:
        await talk.say(op="subscribe")
        await talk.until(lambda message: message["type"] == "subscribed")

    def is_it(message: dict[str, Any]) -> bool:
        return bool(message["type"] == "event" and message["event"]["kind"] == "sent")

    def happen() -> None:
        request = MarkTold(socket=run.server.socket, pane=run.pane, result="delivered", at=datetime.now(UTC))
        call(watcher.state, request, PATIENCE)

    delays: list[float] = []
    for _ in range(samples):
        await asyncio.sleep(0.05)
        begin = time.perf_counter()
        heard = asyncio.gather(*(talk.until(is_it) for talk in talks))
        await asyncio.get_running_loop().run_in_executor(None, happen)
        delays += [at - begin for at in await heard]
    return Timing(samples=tuple(delays))


async def _echoes(talk: _Talk, run: Run, samples: int) -> Timing:
    taken = []
    for _ in range(samples):
        taken.append(await talk.echo(run))
        await asyncio.sleep(0.01)
    return Timing(samples=tuple(taken))


async def _flood(
    client: _Client, server: Server, sandbox: Sandbox, typed: Run, flooded: Run
) -> tuple[Flood, Timing, Timing]:
    """Print much in a pane: watched by nobody, then by one who reads and one who does not."""
    path = os.path.join(sandbox.directory("flood"), "text")
    with open(path, "wb") as file:
        file.writelines(b"%07d %s\n" % (number, b"0123456789abcdef" * 4) for number in range(FLOOD // 73))
    with _printing(server, flooded, path) as begin:
        alone = await begin(_nothing)
    async with AsyncExitStack() as stack:
        typing, reading, idle = [await client.talk(stack) for _ in range(3)]
        await typing.open(typed)
        await reading.open(flooded)
        await idle.open(flooded)
        watching = asyncio.get_running_loop().create_task(reading.until(lambda message: False))
        pid = client.watcher.pid
        before, used, most = held(pid), cpu(pid), 0
        listed: list[float] = []
        echoed: list[float] = []

        async def meanwhile() -> None:
            nonlocal most
            echoed.append(await typing.echo(typed))
            listed.append(await asyncio.get_running_loop().run_in_executor(None, client.list_runs))
            most = max(most, held(pid))

        with _printing(server, flooded, path) as begin:
            watched = await begin(meanwhile)
        watching.cancel()
        found = Flood(
            printed=FLOOD,
            alone=alone,
            watched=watched,
            grown=max(most, held(pid)) - before,
            used=cpu(pid) - used,
            frames=reading.frames,
        )
    return found, Timing(samples=tuple(listed)), Timing(samples=tuple(echoed))


async def _nothing() -> None:
    await asyncio.sleep(0.01)


@contextmanager
def _printing(
    server: Server, run: Run, path: str
) -> Iterator[Callable[[Callable[[], Awaitable[None]]], Awaitable[float]]]:
    """Gives what prints a file in a pane, does something again and again meanwhile, and returns the seconds it took."""
    done = f"{path}.done"

    async def begin(meanwhile: Callable[[], Awaitable[None]]) -> float:
        start = time.perf_counter()
        server.tmux("send-keys", "-t", run.pane, "-l", f"cat {path}; : >{done}")
        server.tmux("send-keys", "-t", run.pane, "Enter")
        while not os.path.exists(done):
            if time.perf_counter() - start > PATIENCE:
                raise BenchFailed("a pane did not print all it should")
            await meanwhile()
        return time.perf_counter() - start

    try:
        yield begin
    finally:
        if os.path.exists(done):
            os.unlink(done)
