"""The WebSocket: what happens, and what terminals show, to one client; and what it types.

One task reads, one tells events, two are there for each terminal: one shows, one does what is asked, in that order. A
client that does not read is waited for by its own tasks alone: events are let go of with a mark, terminals are shown anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from litestar import WebSocket, websocket
from litestar.exceptions import WebSocketException

from perdure.api import socket_words as words
from perdure.api.asking import World
from perdure.api.caller import Caller
from perdure.api.errors import TooMany
from perdure.api.seats import Asked, Seat
from perdure.api.socket_words import Close, Input, Open, Ping, ReleaseSize, Subscribe, TakeSize
from perdure.api.world import ApiWorld
from perdure.daemon import protocol
from perdure.errors import PerdureError, UsageError
from perdure.live.whose import is_event_for
from perdure.model.event import StoredEvent

log = logging.getLogger(__name__)

_events = words.Events()

#: How many terminals one client may watch.
TERMINALS = 32
#: How long a client may take to read what it is told, in seconds.
PATIENCE = 30.0
#: Codes with which a connection is closed (RFC 6455, 7.4.1).
FINE, AGAINST_THE_RULES = 1000, 1008


@websocket("/api/socket")
async def socket(socket: WebSocket[Caller, Any, Any], world: World) -> None:
    """Be there for one client until it leaves."""
    await socket.accept()
    client = Client(socket, world)
    try:
        await client.attend()
    except Exception:
        log.exception("a WebSocket failed")
    finally:
        with suppress(Exception):  # whoever has gone needs no farewell
            await socket.close(code=client.farewell)


class Client:
    """One that has connected."""

    def __init__(self, socket: WebSocket[Caller, Any, Any], world: ApiWorld) -> None:
        self.world = world
        self.caller: Caller = socket.user
        self._socket = socket
        self._seats: dict[str, Seat] = {}
        self._following: asyncio.Task[None] | None = None
        self._gone = asyncio.Event()
        #: How the connection is closed: as if all were well, unless it was not.
        self.farewell = FINE

    async def attend(self) -> None:
        """Do what is asked until the client has gone, or does not read what it is told."""
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(self._listen(group))
            await self._gone.wait()
            reading.cancel()
            for task in (self._following, *(seat.task for seat in self._seats.values())):
                if task is not None:
                    task.cancel()

    async def say(self, message: str) -> None:
        """Tell the client something; one that does not take it in is let go of."""
        if self._gone.is_set():
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._socket.send_data(message)
        except (TimeoutError, WebSocketException, RuntimeError, OSError):
            self._gone.set()

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        while True:
            message = await self._socket.receive()
            if message["type"] != "websocket.receive":
                self._gone.set()
                return
            try:
                text = message.get("text")
                if text is None:
                    raise UsageError("Messages are text, not bytes.")
                await self._do(words.read(text), group)
            except PerdureError as error:
                await self.say(words.error(error))

    async def _do(self, asked: words.Asked, group: asyncio.TaskGroup) -> None:
        match asked:
            case Ping():
                await self.say(words.said("pong"))
            case Subscribe():
                if self._following is not None:
                    self._following.cancel()
                self._following = group.create_task(self._follow(asked.after))
            case Open() | Input() | TakeSize() | ReleaseSize() | Close():
                await self._pass_on(asked, group)

    async def _pass_on(self, asked: Asked, group: asyncio.TaskGroup) -> None:
        """Have something done about a terminal, behind all that was asked about it before."""
        seat = self._seats.get(asked.run)
        if seat is None:
            seat = Seat(self.world, self.caller, asked.run, self.say, group)
        refusal = None
        if (
            isinstance(asked, Open)
            and sum(each.is_wanted for each in self._seats.values() if each is not seat) >= TERMINALS
        ):
            refusal = TooMany(f"{TERMINALS} terminals are open already.")
        if not seat.take(asked, refusal):
            await self.say(words.error(TooMany("Far too much is asked for at once."), run=asked.run))
            self.farewell = AGAINST_THE_RULES
            self._gone.set()
        elif asked.run not in self._seats:
            self._seats[asked.run] = seat
            seat.task = group.create_task(self._sit(seat))

    async def _sit(self, seat: Seat) -> None:
        try:
            await seat.attend()
        finally:
            del self._seats[seat.id]

    async def _follow(self, after: int | None) -> None:
        """Tell what is stored behind a number, then what happens. Ends after `lagged`, and when the daemon does."""
        world, uid, owner = self.world, self.caller.uid, self.world.ground.me.uid

        def wants(stored: StoredEvent) -> bool:
            return is_event_for(stored.event, uid, owner=owner)

        async def read(behind: int) -> Sequence[StoredEvent]:
            # By the daemon: from then on it tells what others have written down, too.
            return await world.answers.read_events(protocol.Events(after=behind))

        try:
            last = await world.read(lambda store: store.last_event())
            # Behind a number that does not exist yet nothing would be told until it does: the store is another, or the number is wrong.
            behind = last if after is None else min(after, last)
            await self.say(words.said("subscribed", after=behind, last=last))
            with world.feed.subscribe(behind, read, wants) as events:
                async for each in events:
                    await self.say(_events.told(each))
        except PerdureError as error:
            await self.say(words.error(error))


ROUTES = (socket,)
