"""HTTP and WebSocket in the daemon's own loop, until the daemon ends."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, cast

import uvicorn

from perdure.api.admission import LARGEST_BODY
from perdure.api.app import build_app
from perdure.api.binding import Listening
from perdure.api.connection import AT_ONCE, Connection
from perdure.api.guard import Guard
from perdure.api.world import ApiWorld
from perdure.host.clock import ticking
from perdure.model.config import ApiConfig

#: How long those who are just being answered may take in the end, in seconds.
DRAIN = 2


class _Server(uvicorn.Server):
    """A server that leaves the signals to the daemon, and does nothing while nobody asks."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def main_loop(self) -> None:
        await self.ended.wait()


async def serve(listening: Listening, world: ApiWorld, config: ApiConfig) -> None:
    """Answer whoever asks until cancelled; those who are being answered then have a moment."""
    world.keys.serve_at(listening.base, listening.port, is_secure=listening.is_secure)
    guard = Guard(build_app(world), world.keys, world.logs, hosts=listening.hosts, ticking=ticking)
    server = _Server(_settings(guard, config))
    try:
        running = asyncio.get_running_loop().create_task(server.serve(sockets=[listening.socket]))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            server.should_exit = True
            server.ended.set()
            await running
            raise
    finally:
        listening.close()
        world.close()


def _settings(app: Guard, config: ApiConfig) -> uvicorn.Config:
    settings = uvicorn.Config(
        cast(Any, app),
        http=Connection,
        backlog=AT_ONCE,
        ws="websockets-sansio",
        ws_max_size=LARGEST_BODY,
        ws_per_message_deflate=False,
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
        # What a proxy says of who asks is not believed: everybody could say it.
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN,
        ssl_certfile=config.tls_cert or None,
        ssl_keyfile=config.tls_key or None,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_news)
    return settings


def _is_news(record: logging.LogRecord) -> bool:
    """Return whether it goes wrong here: what strangers get wrong is no news, nor is who was still being answered in the end."""
    error = record.exc_info[1] if record.exc_info else None
    # A text frame that is no text is closed with the code for that.
    return error is not None and not (isinstance(error, UnicodeDecodeError) and "UTF-8" in record.getMessage())
