"""Strangers that connect and do not say what they want."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import connect

from perdure.api import connection
from perdure.api.binding import listen
from perdure.api.serve import serve
from perdure.model.config import ApiConfig
from tests.integration.api_here import api_here, caller
from tests.tmux_server import PATIENCE


@asynccontextmanager
async def served_here() -> AsyncIterator[tuple[str, int, str]]:
    """Where the routes of a daemon in this process are, and a ticket for a WebSocket."""
    async with api_here() as api:
        listening = listen(ApiConfig(port=0))
        serving = asyncio.get_running_loop().create_task(serve(listening, api.world, ApiConfig()))
        try:
            yield "127.0.0.1", listening.port, api.world.keys.ticket(caller())
        finally:
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"GET /health HT",
        b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ",
        # Refused at once, and the rest of it never comes.
        b"POST /api/runs HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\n{",
        # The second of two.
        b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\nGET /health HTTP/1.1\r\nho",
    ],
)
def test_whoever_does_not_come_to_the_point_is_let_go_of(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SAID_WITHIN", 0.2)

    async def go() -> None:
        async with served_here() as (host, port, _):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(said)
            async with asyncio.timeout(PATIENCE):
                await reader.read()
            writer.close()

    asyncio.run(go())


def test_who_has_said_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "SAID_WITHIN", 0.2)

    async def go() -> None:
        async with served_here() as (host, port, ticket):
            address, origin = f"ws://{host}:{port}/api/socket?ticket={ticket}", f"http://{host}:{port}"
            async with connect(address, additional_headers={"origin": origin}, proxy=None) as opened:
                await asyncio.sleep(0.5)
                await opened.send('{"op":"ping"}')
                assert "pong" in str(await opened.recv())

    asyncio.run(go())
