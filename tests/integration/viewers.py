"""Somebody who watches panes of a real server, in the test's own process."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from perdure.daemon.terminals import Terminals
from perdure.daemon.viewing import Viewer
from perdure.host.users import current_user
from perdure.model.terminal import Closed, Frame, Printed, Screen
from perdure.tmux.act import Spot
from tests.tmux_server import PATIENCE, TmuxServer

_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|[=>])")


@asynccontextmanager
async def terminals_here(*, attaches: bool = True) -> AsyncIterator[Terminals]:
    """Terminals that are closed with the block."""
    terminals = Terminals(lambda version: attaches)
    try:
        yield terminals
    finally:
        await terminals.close()


def spot(tmux: TmuxServer, target: str) -> Spot:
    """The pane a target names."""
    return Spot(tmux.socket, current_user(), tmux.show("#{pane_id}", target), tmux.pid)


def shown(screen: Screen) -> list[str]:
    """The lines of a screen, without what only a terminal reads."""
    return _SEQUENCE.sub("", screen.text).split("\r\n")


def so_far(screen: Screen) -> str:
    """What a screen shows before its cursor."""
    x, y = screen.cursor
    lines = shown(screen)
    return "\r\n".join([*lines[:y], lines[y][:x]])


class Watcher:
    """A viewer, and everything it was shown. `text` is what a terminal would have been given since the last screen."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.frames: list[Frame] = []
        self.text = ""

    async def next(self) -> Frame:
        """Wait for one more frame."""
        async with asyncio.timeout(PATIENCE):
            frame = await self.viewer.next()
        self.frames.append(frame)
        if isinstance(frame, Screen):
            self.text = so_far(frame)
        elif isinstance(frame, Printed):
            self.text += frame.text
        return frame

    async def until(self, happened: Callable[[], bool]) -> None:
        """Watch until something is so."""
        async with asyncio.timeout(PATIENCE):
            while not happened():
                await self.next()

    async def reads(self, text: str) -> None:
        """Watch until a text was shown."""
        await self.until(lambda: text in self.text)

    async def has(self, count: int) -> None:
        """Watch until so many characters were shown since the last screen."""
        await self.until(lambda: len(self.text) > count)

    async def screen(self) -> Screen:
        """Watch until there is a screen."""
        while not isinstance(frame := await self.next(), Screen):
            pass
        return frame

    async def closes(self) -> str:
        """Watch until there is nothing more to be seen, and return why."""
        while not isinstance(frame := await self.next(), Closed):
            pass
        return frame.why


async def watch(terminals: Terminals, tmux: TmuxServer, target: str) -> Watcher:
    """Watch a pane."""
    return Watcher(await terminals.view(spot(tmux, target)))


async def eventually(happened: Callable[[], bool], what: str) -> None:
    """Wait for something a program does in its own time, while the loop goes on."""
    async with asyncio.timeout(PATIENCE):
        while not happened():
            await asyncio.sleep(0.02)
    assert happened(), what
