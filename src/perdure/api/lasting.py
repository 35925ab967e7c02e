"""What ends when that which let its client in would not any more: a WebSocket may be open for days, a request wait for minutes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Self, cast

from litestar.types import Message, Receive, ReceiveMessage, Send

#: How often that is looked at, in seconds.
EVERY = 3.0
#: A request that takes no longer is not looked at again, in seconds.
BRIEF = 1.0
#: What a client is told then: a policy stands against it.
_REVOKED = 1008


class Lasting:
    """What a client says, as long as it may. Belongs to one task of one loop; to be closed."""

    def __init__(self, receive: Receive, send: Send, may_stay: Callable[[], bool]) -> None:
        self._receive = receive
        self._send = send
        self._may_stay = may_stay
        self._coming: asyncio.Task[ReceiveMessage] | None = None
        self._looked_at = asyncio.get_running_loop().time()

    async def receive(self) -> ReceiveMessage:
        """Return what the client says next; that it has gone, once it may stay no longer."""
        loop = asyncio.get_running_loop()
        if self._coming is None:
            self._coming = loop.create_task(cast(Coroutine[None, None, ReceiveMessage], self._receive()))
        while True:
            # Also of one that never stops talking.
            if loop.time() >= self._looked_at + EVERY:
                self._looked_at = loop.time()
                if not self._may_stay():
                    return await self._show_out()
            done, _ = await asyncio.wait({self._coming}, timeout=EVERY)
            if done:
                coming, self._coming = self._coming, None
                return coming.result()

    def close(self) -> None:
        """Listen no longer."""
        if self._coming is not None:
            self._coming.cancel()

    async def _show_out(self) -> ReceiveMessage:
        close = {"type": "websocket.close", "code": _REVOKED, "reason": "what let you in was revoked"}
        await self._send(cast(Message, close))
        return cast(ReceiveMessage, {"type": "websocket.disconnect", "code": _REVOKED})


class Waiting:
    """A request that is being answered, within the block, by the task that enters it."""

    def __init__(self, may_stay: Callable[[], bool], *, may_end: bool) -> None:
        """Watch a request, to be ended (`may_end`) where nothing is left half done by that."""
        self._may_stay = may_stay
        self._may_end = may_end
        self._loop = asyncio.get_running_loop()
        self._began_at = self._loop.time()
        self._task = asyncio.current_task()
        self._timer: asyncio.TimerHandle | None = None
        #: Whether its task was cancelled for this.
        self.is_ended = False

    def __enter__(self) -> Self:
        """Begin to look."""
        if self._may_end:
            self._timer = self._loop.call_later(EVERY, self._look)
        return self

    def __exit__(self, *_: object) -> None:
        """Look no longer."""
        if self._timer is not None:
            self._timer.cancel()

    def is_over(self) -> bool:
        """Return whether it has waited, and may not be answered any more."""
        return self._loop.time() >= self._began_at + BRIEF and not self._may_stay()

    def _look(self) -> None:
        self._timer = None
        if self._may_stay():
            self._timer = self._loop.call_later(EVERY, self._look)
        elif self._task is not None:
            self.is_ended = True
            self._task.cancel()
