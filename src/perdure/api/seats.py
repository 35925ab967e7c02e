"""A terminal of a client's: one task shows it, one types into it, in the order in which it was asked."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from perdure.api import socket_words as words
from perdure.api.caller import Caller
from perdure.api.socket_words import Input, ReleaseSize, TakeSize
from perdure.api.world import ApiWorld
from perdure.daemon.viewing import Viewer
from perdure.errors import PerdureError
from perdure.model.run import Run
from perdure.model.terminal import Closed

#: How much of what is to be typed may wait.
WAITING = 256
#: What is typed within so many seconds is one line of the audit log: a person types letter by letter.
TOGETHER = 5.0

Asked = Input | TakeSize | ReleaseSize


class Seat:
    """One terminal, shown to one client."""

    #: Whoever is at it.
    task: asyncio.Task[None]

    def __init__(self, world: ApiWorld, caller: Caller, run: Run, say: Callable[[str], Awaitable[None]]) -> None:
        self.run = run
        self._world = world
        self._caller = caller
        self._say = say
        self._waiting: deque[Asked] = deque()
        self._more = asyncio.Event()
        self._typed: Counter[str] = Counter()
        self._telling: asyncio.TimerHandle | None = None

    def take(self, asked: Asked) -> bool:
        """Have something done, in its turn; False when too much waits already."""
        if len(self._waiting) >= WAITING:
            return False
        self._waiting.append(asked)
        self._more.set()
        return True

    async def attend(self) -> None:
        """Show the terminal until it is closed."""
        try:
            viewer = await self._world.terminals.open(self.run, self._world.ground.user_of(self.run.server))
        except PerdureError as error:
            await self._say(words.frame(self.run.id, Closed(why=error.message.rstrip("."))))
            return
        try:
            async with asyncio.TaskGroup() as group:
                typing = group.create_task(self._work(viewer))
                await self._show(viewer)
                typing.cancel()
        finally:
            viewer.close()
            self._write_down()

    async def _show(self, viewer: Viewer) -> None:
        while True:
            frame = await viewer.next()
            await self._say(words.frame(self.run.id, frame))
            if isinstance(frame, Closed):
                return

    async def _work(self, viewer: Viewer) -> None:
        while True:
            while not self._waiting:
                self._more.clear()
                await self._more.wait()
            asked = self._waiting.popleft()
            if isinstance(asked, Input):
                await self._type(viewer, asked)
            else:
                await self._size(viewer, asked)

    async def _type(self, viewer: Viewer, asked: Input) -> None:
        result, why = "sent", ""
        try:
            if asked.keys is not None:
                await viewer.press(asked.keys)
                self._count("keys", len(asked.keys))
            elif asked.paste is not None:
                await viewer.paste(asked.paste)
                self._count("pasted", len(asked.paste))
            else:
                data = (asked.text or "").encode(errors="replace")
                await viewer.type(data)
                self._count("typed", len(data))
        except PerdureError as error:
            result, why = "refused", error.message
        await self._say(words.said("ack", id=asked.id, run=self.run.id, result=result, why=why))

    async def _size(self, viewer: Viewer, asked: TakeSize | ReleaseSize) -> None:
        try:
            if isinstance(asked, TakeSize):
                await viewer.take_size(asked.cols, asked.rows)
                self._world.logs.audit(self._caller, "take size", self.run.id, cols=asked.cols, rows=asked.rows)
            else:
                viewer.release_size()
        except PerdureError as error:
            await self._say(words.error(error, run=self.run.id))

    def _count(self, what: str, many: int) -> None:
        """Take note that something was typed: how much, never what, for nothing tells a password from a word."""
        self._typed[what] += many
        if self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(TOGETHER, self._write_down)

    def _write_down(self) -> None:
        if self._telling is not None:
            self._telling.cancel()
            self._telling = None
        if self._typed:
            self._world.logs.audit(self._caller, "type", self.run.id, **self._typed)
            self._typed.clear()
