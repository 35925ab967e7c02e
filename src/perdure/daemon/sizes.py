"""Windows whose size somebody has taken, and how they get back what they had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from perdure.errors import Refused, UsageError
from perdure.tmux.attached import Command, Then
from perdure.tmux.control import Reply

#: Sizes a pane may be given.
COLS, ROWS = range(10, 1001), range(3, 501)
_SIZES = "#{window_id} #{window_width} #{window_height} #{pane_width} #{pane_height}"


class Asks(Protocol):
    """Whoever speaks to the server for us: attached (`tmux.attached`), or not (`tmux.occasional`)."""

    def tell(self, commands: Sequence[Command], then: Then) -> None:
        """Have commands done together."""

    async def ask(self, commands: Sequence[Command]) -> Sequence[Reply]:
        """Have commands done together and return their replies. Raises Unanswered."""

    def leave(self) -> None:
        """Ask nothing more."""

    async def gone(self) -> None:
        """Wait until nobody of ours is there any more."""


class Holder(Protocol):
    """Somebody who takes sizes, and is told whether they still have them."""

    def has_size(self, taken: bool) -> None:
        """Take note that the size is theirs, or not any more."""


class _Taken(NamedTuple):
    """A window whose size was taken, and what it was before."""

    by: Holder
    size: tuple[int, int]
    #: The window's own option `window-size`, which a size of its own sets; None where it had none.
    option: str | None


class Sizes:
    """What was taken through one client, by whom."""

    def __init__(self) -> None:
        self._taken: dict[str, _Taken] = {}

    async def take(self, by: Holder, client: Asks, pane: str, cols: int, rows: int) -> None:
        """Give a window the size with which a pane of it has this one. Raises UsageError, Refused and Unanswered.

        Whoever comes later takes it from who was before; what it was at first is what it gets back.
        """
        if cols not in COLS or rows not in ROWS:
            raise UsageError(f"No pane can be {cols}x{rows}: from {COLS[0]}x{ROWS[0]} to {COLS[-1]}x{ROWS[-1]}.")
        asking = ("display-message", "-p", "-t", pane, _SIZES), ("show-options", "-wqv", "-t", pane, "window-size")
        replies = await client.ask(asking)
        if replies[-1].error or len(words := replies[0].lines[0].split(" ")) != 5 or not words[0]:
            raise Refused("it is not there any more")
        window, (width, height, pane_width, pane_height) = words[0], map(int, words[1:])
        before = self._taken.get(window)
        option = next(iter(replies[1].lines), "") or None
        # Before it is done: whoever leaves meanwhile gives it back all the same.
        self._taken[window] = before._replace(by=by) if before else _Taken(by, (width, height), option)
        if before is not None and before.by is not by:
            before.by.has_size(False)
        by.has_size(True)
        (reply,) = await client.ask([_resize(window, cols + width - pane_width, rows + height - pane_height)])
        if reply.error:
            raise Refused(f"tmux says: {reply.error}")

    def release(self, by: Holder, client: Asks) -> None:
        """Give everything somebody has taken back to whoever else has a say in it."""
        for window, taken in list(self._taken.items()):
            if taken.by is by:
                del self._taken[window]
                by.has_size(False)
                setting = ("-u",) if taken.option is None else ()
                value = () if taken.option is None else (taken.option,)
                option = ("set-option", "-w", *setting, "-t", window, "window-size", *value)
                client.tell([_resize(window, *taken.size), option], ignored)

    def inherit(self, other: Sizes) -> None:
        """Take over what was taken through another client: it may be gone, or will be."""
        self._taken.update(other._taken)
        other._taken = {}


def ignored(_: Sequence[Reply] | None) -> None:
    """Take no interest in a reply: what it is about may be gone, which is heard otherwise."""


def _resize(window: str, width: int, height: int) -> Command:
    return ("resize-window", "-t", window, "-x", str(width), "-y", str(height))
