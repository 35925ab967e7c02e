"""Asking a server by a client for each question, with nobody attached.

To whoever asks it is the same as an attached client (tmux/attached.py), but that nothing is heard between two answers.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from functools import partial

from perdure.errors import PerdureError, Unanswered
from perdure.model.text import decode
from perdure.tmux import run
from perdure.tmux.act import Spot
from perdure.tmux.attached import Command, Then
from perdure.tmux.control import Reply
from perdure.tmux.quote import line
from perdure.tmux.sure import only_on

#: What only somebody who is attached can be told.
_OF_CLIENTS = "refresh-client"


class Occasional:
    """Asks when there is something to ask, this one process of the server and no other. All of it belongs to one event loop."""

    def __init__(self, spot: Spot, ended: Callable[[], None]) -> None:
        self._spot = spot
        self._ended = ended
        self._is_over = False
        self._loop = asyncio.get_running_loop()

    def tell(self, commands: Sequence[Command], then: Then) -> None:
        """Have commands done together; see `Attached.tell`."""
        if self._is_over:
            then(None)
            return
        asking = self._loop.run_in_executor(None, _ask, self._spot, commands)
        asking.add_done_callback(partial(self._answered, then))

    async def ask(self, commands: Sequence[Command], *, timeout: float = run.TIMEOUT) -> Sequence[Reply]:
        """Have commands done together and return their replies. Raises Unanswered."""
        replies = await self._loop.run_in_executor(None, _ask, self._spot._replace(timeout=timeout), commands)
        if replies is None:
            raise Unanswered(f"The tmux server on {self._spot.socket} is not there any more.")
        return replies

    def leave(self) -> None:
        """Ask nothing more."""
        self._is_over = True

    async def gone(self) -> None:
        """Return at once: nobody is there between two questions."""

    def _answered(self, then: Then, asking: asyncio.Future[Sequence[Reply] | None]) -> None:
        if asking.cancelled():
            return
        error = asking.exception()
        if error is not None and not isinstance(error, PerdureError):
            raise error
        replies = None if error is not None else asking.result()
        then(replies)
        if replies is None and not self._is_over:
            self._is_over = True
            self._ended()


def _ask(spot: Spot, commands: Sequence[Command]) -> Sequence[Reply] | None:
    """Return a reply for each command, None when nobody answers, or another server does. Blocks.

    A refused command is the last that is done, and that is the reply to all.
    """
    mark = os.urandom(8).hex()
    behind = ("display-message", "-p", mark)
    done = [command for command in commands if command[0] != _OF_CLIENTS]
    if not done:
        return [Reply((), None) for _ in commands]
    # On one line: what is refused ends it.
    sure = (only_on(spot.server, spot.since),) if spot.server is not None else ()
    words = (*sure, behind, *(each for command in done for each in (command, behind)))
    script = b" ; ".join(line(each).rstrip(b"\n") for each in words) + b"\n"
    client = run.start(spot.socket, ["source-file", "-"], owner=spot.owner, script=script, timeout=spot.timeout)
    run.gather([client])
    _, *parts = decode(client.answer).split(f"{mark}\n")
    if client.status is None or (client.status and not parts):
        return None
    if client.status:
        return [Reply((), client.complaint or "tmux refused without a word") for _ in commands]
    answers = iter(parts)
    return [Reply(() if command not in done else _lines(next(answers)), None) for command in commands]


def _lines(text: str) -> tuple[str, ...]:
    return tuple(text.removesuffix("\n").split("\n")) if text else ()
