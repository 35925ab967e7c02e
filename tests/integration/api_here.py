"""The HTTP interface on a daemon in the test's own process, without a port: what a route answers to whom."""

from __future__ import annotations

import os
import pwd
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
from litestar.types import ASGIApp, Receive, Send
from litestar.types import Scope as AsgiScope

from perdure.api.app import build_app
from perdure.api.caller import Caller, Scope
from perdure.api.world import ApiWorld
from perdure.cli._setup import Setup
from perdure.cli.api_setup import ground_of
from perdure.daemon.answers import Answers
from tests.integration.watching_here import watching_here


def caller(scope: Scope = Scope.WRITE, *, uid: int | None = None) -> Caller:
    """Return somebody who asks: whoever runs the test, unless told otherwise."""
    mine = os.getuid() if uid is None else uid
    return Caller(
        uid=mine, user=pwd.getpwuid(mine).pw_name if uid is None else f"user{mine}", scope=scope, token="test"
    )


class Api:
    """The application of a daemon that watches; `client` gives somebody who asks it."""

    def __init__(self, world: ApiWorld) -> None:
        self.world = world
        self.app = build_app(world)

    def client(self, who: Caller | None = None) -> httpx.AsyncClient:
        """Return a client whose requests are this caller's. To be used by `async with`."""
        transport = httpx.ASGITransport(app=cast(Any, _as_if_from(self.app, who or caller())))
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:7717")


@asynccontextmanager
async def api_here() -> AsyncIterator[Api]:
    """The routes of a daemon that has seen everything; it ends with the block."""
    async with watching_here() as daemon:
        world = ApiWorld(daemon, Answers(daemon), ground_of(Setup()))
        try:
            yield Api(world)
        finally:
            world.close()


def _as_if_from(app: ASGIApp, who: Caller) -> ASGIApp:
    async def guarded(scope: AsgiScope, receive: Receive, send: Send) -> None:
        cast(dict[str, Any], scope)["user"] = who
        await app(scope, receive, send)

    return guarded
