"""The WebSocket of a daemon in the test's own process, with a port, and clients that speak to it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from perdure.api.binding import listen
from perdure.api.caller import Caller
from perdure.api.serve import serve
from perdure.api.world import ApiWorld
from perdure.cli._setup import Setup
from perdure.cli.api_setup import ground_of
from perdure.daemon.answers import Answers
from perdure.daemon.daemon import Daemon
from perdure.model.config import ApiConfig
from tests.integration.api_here import caller
from tests.integration.watching_here import watching_here
from tests.tmux_server import PATIENCE

Message = dict[str, Any]


class Talk:
    """A client. `heard` is everything it was told, in order."""

    def __init__(self, connection: ClientConnection) -> None:
        self.connection = connection
        self.heard: list[Message] = []

    async def say(self, **message: object) -> None:
        """Ask for something."""
        await self.connection.send(json.dumps(message))

    async def hear(self) -> Message:
        """Wait for one message."""
        async with asyncio.timeout(PATIENCE):
            message = json.loads(await self.connection.recv())
        self.heard.append(message)
        return dict(message)

    async def until(self, is_it: Callable[[Message], bool]) -> Message:
        """Wait for a message that is the one."""
        async with asyncio.timeout(PATIENCE):
            while not is_it(message := await self.hear()):
                pass
        return message

    async def told(self, type: str, **facts: object) -> Message:
        """Wait for a message of this type, with these facts in it."""
        return await self.until(
            lambda message: message["type"] == type and all(message.get(name) == value for name, value in facts.items())
        )

    async def reads(self, run: str, text: str) -> None:
        """Wait until a terminal has shown a text, since it was last shown as a whole."""
        if text not in self.shown(run):
            await self.until(lambda _: text in self.shown(run))

    def shown(self, run: str) -> str:
        """What a terminal was told to show since its last screen."""
        text = ""
        for message in self.heard:
            if message.get("run") == run and message["type"] in ("screen", "output"):
                text = message["text"] if message["type"] == "screen" else text + message["text"]
        return text


class Here:
    """Where clients connect to."""

    def __init__(self, daemon: Daemon, world: ApiWorld, port: int) -> None:
        self.daemon = daemon
        self.world = world
        self.port = port

    def ticket(self, who: Caller | None = None) -> str:
        """A ticket of somebody's who has logged in."""
        keys = self.world.keys
        known = keys.who(keys.log_in(who or caller()))
        assert known is not None
        return keys.ticket(known[0])

    @asynccontextmanager
    async def talk(self, who: Caller | None = None, **options: Any) -> AsyncIterator[Talk]:
        """A client of somebody's."""
        address = f"ws://127.0.0.1:{self.port}/api/socket?ticket={self.ticket(who)}"
        origin: Any = f"http://127.0.0.1:{self.port}"
        options = {"proxy": None, "max_size": None, "open_timeout": PATIENCE, **options}
        async with connect(address, origin=origin, **options) as connection:
            yield Talk(connection)


@asynccontextmanager
async def socket_here() -> AsyncIterator[Here]:
    """A daemon that has seen everything, and listens; it ends with the block."""
    async with watching_here() as daemon:
        world = ApiWorld(daemon, Answers(daemon), ground_of(Setup()))
        config = ApiConfig(port=0)
        listening = listen(config)
        # Not much is on its way to a client that does not read; those who are let in have it from here.
        listening.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 16)
        serving = asyncio.get_running_loop().create_task(serve(listening, world, config))
        try:
            yield Here(daemon, world, listening.port)
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
