"""Strangers that connect and do not say what they want."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest
from websockets.asyncio.client import connect
from websockets.frames import Frame, Opcode

from perdure.api import connection
from perdure.api import serve as serving
from perdure.api.binding import listen
from perdure.api.serve import serve
from perdure.model.config import ApiConfig
from tests.acceptance.watching import state_dir
from tests.integration.api_here import api_here, caller
from tests.tmux_server import PATIENCE


class Held(connection.Connection):
    """A connection of which it is known whether it is held."""

    many = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        Held.many += 1
        super().connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        Held.many -= 1
        super().connection_lost(exc)


async def until_let_go() -> None:
    async with asyncio.timeout(PATIENCE):
        while Held.many:
            await asyncio.sleep(0.02)


@asynccontextmanager
async def asking(
    host: str, port: int, room: int = 0
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Somebody who is connected; with `room`, for so many bytes that are not read."""
    connection = socket.socket()
    if room:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    connection.setblocking(False)
    await asyncio.get_running_loop().sock_connect(connection, (host, port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=room or 65536)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def talk_on(writer: asyncio.StreamWriter, words: bytes) -> None:
    while True:
        writer.write(words)
        await writer.drain()


def question(path: str) -> bytes:
    """Return what the owner asks with."""
    with open(os.path.join(state_dir(), "api.token"), encoding="ascii") as file:
        return f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {file.read().strip()}\r\n\r\n".encode()


@asynccontextmanager
async def served_here() -> AsyncIterator[tuple[str, int, str]]:
    """Where the routes of a daemon in this process are, and a ticket for a WebSocket."""
    async with api_here() as api:
        api.world.keys.vault.main()
        listening = listen(ApiConfig(port=0))
        running = asyncio.get_running_loop().create_task(serve(listening, api.world, ApiConfig()))
        try:
            yield "127.0.0.1", listening.port, api.world.keys.ticket(caller())
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


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
    monkeypatch.setattr(connection, "HEAD_WITHIN", 0.2)
    monkeypatch.setattr(connection, "SAID_WITHIN", 0.2)

    async def go() -> None:
        async with served_here() as (host, port, _):
            reader, writer = await asyncio.open_connection(host, port)
            writer.write(said)
            # Where the machine was slow, what is said comes too late already.
            with suppress(ConnectionError):
                async with asyncio.timeout(PATIENCE):
                    await reader.read()
            writer.close()

    asyncio.run(go())


def test_whoever_does_not_read_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_WITHIN", 0.6)
    monkeypatch.setattr(serving, "Connection", Held)

    async def go() -> None:
        async with served_here() as (host, port, _), asking(host, port, room=4096) as (reader, writer):
            writer.write(question("/schema/openapi.json") * 60)
            await reader.readexactly(10)
            assert Held.many == 1
            await until_let_go()

    asyncio.run(go())


def test_a_websocket_that_is_not_read_is_let_go_of_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_WITHIN", 0.6)

    async def go() -> None:
        async with served_here() as (host, port, ticket), asking(host, port, room=4096) as (reader, writer):
            asked = (
                f"GET /api/socket?ticket={ticket} HTTP/1.1\r\nhost: {host}:{port}\r\norigin: http://{host}:{port}\r\n"
            )
            more = "upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
            key = "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            writer.write((asked + more + key).encode())
            assert (await reader.readline()).startswith(b"HTTP/1.1 101 ")
            # Each is answered by as many words, of which none is read.
            nonsense = Frame(Opcode.TEXT, b'{"op":"' + b"x" * 2000 + b'"}').serialize(mask=True)
            with pytest.raises(ConnectionError):
                await asyncio.wait_for(talk_on(writer, nonsense * 20), PATIENCE)

    asyncio.run(go())


def test_whoever_reads_slowly_gets_it_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_WITHIN", 0.3)

    async def go() -> None:
        async with served_here() as (host, port, _), asking(host, port, room=4096) as (reader, writer):
            writer.write(question("/schema/openapi.json")[:-2] + b"connection: close\r\n\r\n")
            got = b""
            while piece := await reader.read(4096):
                got += piece
                await asyncio.sleep(0.01)
            head, _, body = got.partition(b"\r\n\r\n")
            assert b"content-length: %d" % len(body) in head

    asyncio.run(go())


def test_strangers_keep_nobody_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS", 4)

    async def go() -> None:
        async with served_here() as (host, port, _), AsyncExitStack() as open_ones:

            async def some(many: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
                return [await open_ones.enter_async_context(asking(host, port)) for _ in range(many)]

            async def ask(many: int) -> None:
                for reader, writer in await some(many):
                    writer.write(question("/api/me"))
                    assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")

            await ask(2)
            await some(8)
            await ask(2)
            # All are our own now: there is no room, which is said as everything is.
            ((reader, writer),) = await some(1)
            writer.write(question("/api/me"))
            async with asyncio.timeout(PATIENCE):
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 503 ")
            assert (json.loads(body)["code"], set(json.loads(body))) == ("CROWDED", {"code", "message", "data"})

    asyncio.run(go())


async def crowd(host: str, port: int) -> None:
    """Connect as often as can be, and say nothing."""
    open_ones: deque[socket.socket] = deque()
    try:
        while True:
            open_ones.append(socket.socket())
            open_ones[-1].setblocking(False)
            with suppress(OSError):
                await asyncio.get_running_loop().sock_connect(open_ones[-1], (host, port))
            if len(open_ones) > 50:
                open_ones.popleft().close()
    finally:
        for each in open_ones:
            each.close()


def test_a_crowd_that_comes_all_at_once_keeps_nobody_out_and_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS", 4)
    monkeypatch.setattr(connection, "STRANGERS", 4)
    monkeypatch.setattr(connection, "CROWD", 16)
    monkeypatch.setattr(serving, "Connection", Held)

    async def go() -> None:
        async with served_here() as (host, port, _), AsyncExitStack() as open_ones:
            for _ in range(3):
                strangers = [open_ones.enter_async_context(asking(host, port)) for _ in range(40)]
                await asyncio.gather(*strangers, return_exceptions=True)
                async with asking(host, port) as (reader, writer):
                    writer.write(question("/api/me"))
                    async with asyncio.timeout(PATIENCE):
                        assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            async with asyncio.timeout(PATIENCE):
                while Held.many > 16:
                    await asyncio.sleep(0.02)
        await until_let_go()

    asyncio.run(go())


def test_whoever_has_a_token_gets_in_while_strangers_come_without_an_end() -> None:
    async def go() -> None:
        async with served_here() as (host, port, _):
            strangers = [asyncio.get_running_loop().create_task(crowd(host, port)) for _ in range(8)]
            try:
                for _ in range(20):
                    async with asking(host, port) as (reader, writer):
                        writer.write(question("/api/me"))
                        async with asyncio.timeout(PATIENCE):
                            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            finally:
                for each in strangers:
                    each.cancel()
                await asyncio.gather(*strangers, return_exceptions=True)

    asyncio.run(go())


def test_who_has_said_it_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "HEAD_WITHIN", 1.0)
    monkeypatch.setattr(connection, "SAID_WITHIN", 1.0)

    async def go() -> None:
        async with served_here() as (host, port, ticket):
            address, origin = f"ws://{host}:{port}/api/socket?ticket={ticket}", f"http://{host}:{port}"
            async with connect(address, additional_headers={"origin": origin}, proxy=None) as opened:
                await asyncio.sleep(1.3)
                await opened.send('{"op":"ping"}')
                assert "pong" in str(await opened.recv())

    asyncio.run(go())
