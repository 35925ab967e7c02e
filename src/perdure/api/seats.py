"""A terminal of a client's: whatever is asked about it is done and answered in the order in which it was asked.

One task does what is asked, refusing in its turn what is not done: nothing overtakes what was asked before. While the
terminal is open, another shows it.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable

from msgspec import structs

from perdure.api import socket_words as words
from perdure.api.caller import Caller
from perdure.api.errors import ReadOnly, TooMany
from perdure.api.socket_words import Close, Input, Open, ReleaseSize, TakeSize
from perdure.api.world import ApiWorld
from perdure.daemon.viewing import Viewer
from perdure.errors import NotFound, PerdureError
from perdure.live.ending import why_over
from perdure.model.terminal import Closed

#: How much of what is asked may wait to be done …
WAITING = 256
#: … and how much more to be refused.
REFUSED = 1024
#: What is typed within so many seconds is one line of the audit log: a person types letter by letter.
TOGETHER = 5.0

Asked = Open | Close | Input | TakeSize | ReleaseSize


class Seat:
    """One terminal, for one client."""

    #: Whoever is at it.
    task: asyncio.Task[None]

    def __init__(
        self,
        world: ApiWorld,
        caller: Caller,
        id: str,
        say: Callable[[str], Awaitable[None]],
        group: asyncio.TaskGroup,
    ) -> None:
        self.id = id
        #: Whether it is open, or will be once everything that was asked is done.
        self.is_wanted = False
        self._world = world
        self._caller = caller
        self._say = say
        self._group = group
        #: What is to be done, or refused with the reason.
        self._waiting: deque[tuple[Asked, PerdureError | None]] = deque()
        self._more = asyncio.Event()
        self._viewer: Viewer | None = None
        self._showing: asyncio.Task[None] | None = None
        self._typed: Counter[str] = Counter()
        self._telling: asyncio.TimerHandle | None = None

    def take(self, asked: Asked, refusal: PerdureError | None = None) -> bool:
        """Have something done in its turn, or refused; False when there is no end of what waits."""
        if len(self._waiting) >= WAITING + REFUSED:
            return False
        if isinstance(asked, Open | Close):
            self.is_wanted = isinstance(asked, Open) and (refusal is None or self.is_wanted)
        elif len(self._waiting) >= WAITING:
            refusal = TooMany("Too much is asked for at once.")
        if refusal is not None and isinstance(asked, Input):
            # Nobody reads it any more, and it may be long.
            asked = structs.replace(asked, text="", keys=None, paste=None)
        self._waiting.append((asked, refusal))
        self._more.set()
        return True

    async def attend(self) -> None:
        """Do what is asked, until the terminal is closed and nothing waits any more."""
        try:
            while self._waiting or self._viewer is not None:
                if self._waiting:
                    await self._do(*self._waiting.popleft())
                else:
                    self._more.clear()
                    await self._more.wait()
        finally:
            self._close()

    async def _do(self, asked: Asked, refusal: PerdureError | None) -> None:
        if isinstance(asked, Open):
            await self._open(refusal)
        elif isinstance(asked, Close):
            self._close()
        else:
            refusal = refusal if self._caller.may_write else ReadOnly()
            await (self._type(asked, refusal) if isinstance(asked, Input) else self._size(asked, refusal))

    async def _open(self, refusal: PerdureError | None) -> None:
        """Show the terminal; where it is shown already, anew: whoever asks again has lost what was shown."""
        try:
            run = await self._world.run(self.id, self._caller)
            if refusal is not None:
                raise refusal
        except PerdureError as error:
            await self._say(words.error(error, run=self.id))
            self._is_not_open()
            return
        self._close()
        try:
            viewer = await self._world.terminals.open(run, self._world.ground.user_of(run.server))
            if self._world.current.get(run.id) is None and (now := await self._world.run(run.id, self._caller)).is_over:
                # While it was opened, so that nobody who watched it was told.
                viewer.close()
                raise NotFound(why_over(now))
        except PerdureError as error:
            await self._say(words.frame(self.id, Closed(why=error.message.rstrip("."))))
            self._is_not_open()
            return
        self._viewer = viewer
        self._showing = self._group.create_task(self._show(viewer))

    async def _show(self, viewer: Viewer) -> None:
        while True:
            frame = await viewer.next()
            await self._say(words.frame(self.id, frame))
            if isinstance(frame, Closed):
                break
        if self._viewer is viewer:
            self._showing = None
            self._close()
            self._is_not_open()

    def _close(self) -> None:
        if self._showing is not None:
            self._showing.cancel()
            self._showing = None
        if self._viewer is not None:
            self._viewer.close()
            self._viewer = None
        self._write_down()
        self._more.set()

    def _is_not_open(self) -> None:
        """Take note that it is not, until what still waits opens it."""
        if self._viewer is None:
            self.is_wanted = any(isinstance(asked, Open) and why is None for asked, why in self._waiting)

    async def _type(self, asked: Input, refusal: PerdureError | None) -> None:
        result, why = "sent", ""
        try:
            viewer = self._permitted(refusal)
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
        await self._say(words.said("ack", id=asked.id, run=self.id, result=result, why=why))

    async def _size(self, asked: TakeSize | ReleaseSize, refusal: PerdureError | None) -> None:
        try:
            viewer = self._permitted(refusal)
            if isinstance(asked, TakeSize):
                await viewer.take_size(asked.cols, asked.rows)
                self._world.logs.audit(self._caller, "take size", self.id, cols=asked.cols, rows=asked.rows)
            else:
                viewer.release_size()
        except PerdureError as error:
            await self._say(words.error(error, run=self.id))

    def _permitted(self, refusal: PerdureError | None) -> Viewer:
        """Return the viewer by which something may be done. Raises why it may not."""
        if refusal is not None or self._viewer is None:
            raise refusal or NotFound(f"The terminal of {self.id} is not open.")
        return self._viewer

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
            self._world.logs.audit(self._caller, "type", self.id, **self._typed)
            self._typed.clear()
