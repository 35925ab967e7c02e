"""Panes that are watched, through one attached client for each session they are in.

    %output -> the pane's decoder -> the backlog of each viewer -> whoever shows it

The client is told what every pane of its session prints. Those nobody watches, or whose viewers cannot take any more, are
paused: tmux then goes on reading from them without telling us. (Turned off they must never be: tmux stops reading from a pane
that all its clients have turned off, and whoever prints in it waits.) A pane that prints more than anybody could read is
paused for a moment as well, and what is shown of it then are screens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from perdure.daemon.backlog import Backlog
from perdure.daemon.sizes import Asks, Sizes, ignored
from perdure.errors import Refused, UsageError
from perdure.model.terminal import Frame, Screen
from perdure.tmux import strokes
from perdure.tmux.act import Spot
from perdure.tmux.attached import Command
from perdure.tmux.control import Reply
from perdure.tmux.heard import Decoder, Notice, Output
from perdure.tmux.screenful import captured, capturing
from perdure.tmux.sure import is_other_program, only_with

#: More bytes than this within `WHILE` seconds, and a pane is given a rest of `REST` seconds.
FLOOD = 1 << 17
WHILE = 0.1
REST = 0.15
#: How long after a change of layout it is seen what has become of the panes, in seconds: changes come in flocks.
SETTLE = 0.03
#: How often a pane is looked at in whose session nobody is attached, in seconds; and how long after something was typed.
POLL = 0.2
ECHO = (0.01, 0.04, 0.09)
#: A client that tmux has let go of sooner than this is not started again, in seconds.
TOO_SOON = 1.0
#: The most that is typed at once, in bytes.
LARGEST_INPUT = 1 << 16
#: After these panes may have come, gone or changed.
_MOVING = frozenset(
    "%layout-change %window-close %unlinked-window-close %window-pane-changed %session-changed %sessions-changed".split()
)


class Home(Protocol):
    """Whoever knows where panes are."""

    def find_again(self, pane: PaneWatch, *, is_unwanted: bool = False) -> None:
        """Have the viewers of a pane watch it wherever it is now, or tell them that it is gone.

        With `is_unwanted` they are told so where it is not: somebody sends away whoever comes.
        """

    def is_deserted(self, session: SessionWatch) -> None:
        """Take note that nobody watches anything in a session any more; its client has left."""


class Viewer:
    """Somebody who watches a pane. `next` gives what is to be shown; to be closed."""

    def __init__(self, pane: PaneWatch) -> None:
        self.backlog = Backlog()
        #: Whether a screen is on its way.
        self.is_asking = False
        self._pane = pane
        self._woken = asyncio.Event()
        pane.viewers[self] = None

    async def next(self) -> Frame:
        """Wait for what is to be shown next. Behind a `Closed` nothing comes."""
        while (frame := self.backlog.take()) is None:
            if self.backlog.wants_screen and not self.is_asking:
                self.is_asking = True
                self._pane.ask_for_screen()
            self._woken.clear()
            await self._woken.wait()
        return frame

    def wake(self) -> None:
        """Have it look at its backlog."""
        self._woken.set()

    def move(self, pane: PaneWatch) -> None:
        """Watch the pane through another client from now on."""
        self._pane.viewers.pop(self, None)
        self._pane = pane
        pane.viewers[self] = None
        self.is_asking = False
        self.backlog.drop()
        self.wake()

    async def type(self, data: bytes) -> None:
        """Give the pane these bytes, as if somebody had typed them. Raises Refused with the reason, and Unanswered."""
        await self._enter(lambda pane: strokes.typing(pane, data), len(data))

    async def press(self, keys: Sequence[str]) -> None:
        """Press keys, by tmux's names for them. Raises as `type` does, and UsageError."""
        await self._enter(lambda pane: strokes.pressing(pane, keys), len(keys))

    async def paste(self, text: str) -> None:
        """Give the pane a text, as one paste where its program knows pastes. Raises as `type` does."""
        await self._enter(lambda pane: strokes.pasting(pane, text), len(text.encode(errors="replace")))

    async def _enter(self, strokes_for: Callable[[str], list[Command]], size: int) -> None:
        self._refuse_when_over()
        await self._pane.enter(strokes_for, size)

    def _refuse_when_over(self) -> None:
        """Raise Refused when nothing more is shown: whoever is there by then was never looked at."""
        if self.backlog.why is not None:
            raise Refused(f"{self.backlog.why}.")

    async def take_size(self, cols: int, rows: int) -> None:
        """Give the pane this size, until it is released. Raises UsageError, Refused and Unanswered."""
        self._refuse_when_over()
        session = self._pane.session
        await session.sizes.take(self, session.client, self._pane.id, cols, rows)

    def has_size(self, taken: bool) -> None:
        """Show whether the size is still the one it was given here."""
        self.backlog.size(taken=taken)
        self.wake()

    def release_size(self) -> None:
        """Give the pane back the size it had, if it was taken by this viewer."""
        self._pane.session.sizes.release(self, self._pane.session.client)

    def close(self) -> None:
        """Watch no longer, and release what was taken."""
        self.release_size()
        if self._pane.viewers.pop(self, self) is None:
            self._pane.session.has_left(self._pane)


class PaneWatch:
    """One pane, and everybody who watches it through one client."""

    def __init__(self, session: SessionWatch, id: str) -> None:
        self.session = session
        self.id = id
        self.viewers: dict[Viewer, None] = {}
        self.size: tuple[int, int] | None = None
        self._decoder = Decoder()
        #: Whether everything that is printed was heard since the last screen.
        self._flows = False
        self._is_capturing = False
        self._is_resting = False
        self._polled: Screen | None = None
        #: What was started in it, when its screen was last seen.
        self._first: str | None = None
        self._since = 0.0
        self._heard = 0

    def ask_for_screen(self) -> None:
        """Have the screen captured for those who ask for it."""
        if self._is_capturing or self._is_resting:
            return
        self._is_capturing = True
        going_on = ("refresh-client", "-A", f"{self.id}:continue")
        self.session.client.tell((going_on, *capturing(self.id)), self._captured)

    def heard(self, data: bytes, now: float) -> None:
        """Take in what was printed."""
        if not any(viewer.is_asking or not viewer.backlog.wants_screen for viewer in self.viewers):
            self.pause()
            return
        if not self._flows:
            return
        if now > self._since + WHILE:
            self._since, self._heard = now, 0
        self._heard += len(data)
        if self._heard > FLOOD:
            self._rest()
            return
        text = self._decoder.feed(data)
        for viewer in self.viewers:
            viewer.backlog.print(text)
            viewer.wake()

    def pause(self) -> None:
        """Have tmux tell nothing of it, until somebody asks for its screen."""
        if self._flows and not self._is_capturing:
            self.session.silence(self.id)
        self.is_paused()

    def is_paused(self) -> None:
        """Take note that tmux tells nothing of it any more: what is printed now is missing."""
        self._flows = False
        for viewer in self.viewers:
            viewer.backlog.drop()
            viewer.wake()

    def resized(self, cols: int, rows: int) -> None:
        """Take note of its size."""
        if self.size not in (None, (cols, rows)):
            for viewer in self.viewers:
                viewer.backlog.resize(cols, rows)
                viewer.wake()
        self.size = (cols, rows)

    async def enter(self, strokes_for: Callable[[str], list[Command]], size: int) -> None:
        """Type something. Raises Refused with the reason, UsageError and Unanswered."""
        if not size:
            return
        if size > LARGEST_INPUT:
            raise UsageError(f"{size} bytes are too many to be typed at once; {LARGEST_INPUT} are not.")
        commands, client = strokes_for(self.id), self.session.client
        (state,) = await client.ask(strokes.asking_whether(self.id))
        if why := strokes.objection(self.id, state):
            raise Refused(why)
        first = strokes.first_in(state)
        if self._first not in (None, first):
            raise self._replaced()
        sure = only_with(self.id, first)
        replies = await client.ask([sure, *strokes.leaving_mode(self.id, state), *commands])
        if error := replies[-1].error if replies else None:
            raise self._replaced() if is_other_program(error) else Refused(f"tmux says: {error}")
        if self.session.is_polled:
            for wait in ECHO:
                asyncio.get_running_loop().call_later(wait, self.ask_for_screen)

    def _replaced(self) -> Refused:
        """Have everybody shown who is there now, and return why nothing was typed."""
        self.ask_for_screen()
        return Refused("another program was started there meanwhile; look again")

    def close(self, why: str) -> None:
        """Tell everybody that there is nothing more to be seen."""
        for viewer in self.viewers:
            viewer.backlog.close(why)
            viewer.wake()

    def _captured(self, replies: Sequence[Reply] | None) -> None:
        self._is_capturing = False
        if replies is None or self._is_resting:
            # Whoever hears that the client has ended finds the pane again; and after a rest it is captured anew.
            return
        found = captured(self.id, replies[1:])
        if found is None:
            self.session.look_around()
            return
        if not self._flows:
            # Where nothing was missed, half of a character may have been printed, which the screen does not show yet.
            self._decoder = Decoder()
            self._flows = True
            self._since, self._heard = 0.0, 0
        is_news = self.session.is_polled and found.screen != self._polled
        is_news = is_news or self._first not in (None, found.first)
        self._polled, self._first = found.screen, found.first
        self.resized(found.screen.cols, found.screen.rows)
        for viewer in self.viewers:
            if viewer.is_asking or is_news:
                viewer.is_asking = False
                viewer.backlog.show(found.screen)
                viewer.backlog.print(found.pending)
                viewer.wake()

    def _rest(self) -> None:
        self._is_resting = True
        self.session.silence(self.id)
        self.is_paused()
        asyncio.get_running_loop().call_later(REST, self._rested)

    def _rested(self) -> None:
        self._is_resting = False
        if any(viewer.is_asking for viewer in self.viewers):
            self.ask_for_screen()


class SessionWatch:
    """One attached client, and the panes that are watched through it."""

    def __init__(self, home: Home, spot: Spot, id: str) -> None:
        self.spot = spot
        self.id = id
        self.panes: dict[str, PaneWatch] = {}
        #: Whether nothing is told by itself.
        self.is_polled = False
        self._home = home
        self._client: Asks | None = None
        self._since = 0.0
        self._silenced: set[str] = set()
        self._is_looking = False
        #: What viewers have taken the sizes of.
        self.sizes = Sizes()

    @property
    def client(self) -> Asks:
        """The client, once it is attached."""
        assert self._client is not None
        return self._client

    def begin(self, client: Asks, *, is_polled: bool = False) -> None:
        """Watch through this client, which says what it hears to `hear`; `is_polled` where it hears nothing."""
        self._client = client
        self.is_polled = is_polled
        self._since = asyncio.get_running_loop().time()
        if is_polled:
            self._poll()

    def _poll(self) -> None:
        """Look at what is watched, again and again as long as anything is."""
        for pane in self.panes.values():
            pane.ask_for_screen()
        if self.panes or asyncio.get_running_loop().time() < self._since + TOO_SOON:
            asyncio.get_running_loop().call_later(POLL, self._poll)

    def pane(self, id: str) -> PaneWatch:
        """Return the watch over a pane, a new one when nobody watches it yet."""
        self._silenced.discard(id)
        return self.panes.setdefault(id, PaneWatch(self, id))

    def has_left(self, pane: PaneWatch) -> None:
        """Take note that somebody watches a pane no longer; the client leaves with the last."""
        if pane.viewers or self.panes.get(pane.id) is not pane:
            return
        del self.panes[pane.id]
        self.silence(pane.id)
        self.leave_if_deserted()

    def leave_if_deserted(self) -> None:
        """Have the client leave when nobody watches anything through it."""
        if not self.panes:
            self.client.leave()
            self._home.is_deserted(self)

    def silence(self, id: str) -> None:
        """Have tmux tell nothing of a pane."""
        self.client.tell([("refresh-client", "-A", f"{id}:pause")], ignored)

    def hear(self, said: Output | Notice) -> None:
        """Take in what the client is told. Before there is one to answer by, it can be nothing that is watched."""
        if self._client is None:
            return
        if isinstance(said, Output):
            if said.pane in self.panes:
                self.panes[said.pane].heard(said.data, asyncio.get_running_loop().time())
            elif said.pane not in self._silenced:
                self._silenced.add(said.pane)
                self.silence(said.pane)
        elif said.kind == "%pause" and said.rest in self.panes:
            self.panes[said.rest].is_paused()
        elif said.kind in _MOVING:
            self.look_around()

    def ended(self) -> None:
        """Take note that the client has ended: its session has, or somebody has detached it."""
        if self._client is None:
            return
        self._home.is_deserted(self)
        is_unwanted = asyncio.get_running_loop().time() < self._since + TOO_SOON
        for pane in list(self.panes.values()):
            self._home.find_again(pane, is_unwanted=is_unwanted)

    def look_around(self) -> None:
        """See, in a moment, what has become of the panes."""
        if not self._is_looking:
            self._is_looking = True
            asyncio.get_running_loop().call_later(SETTLE, self._look)

    def _look(self) -> None:
        self._is_looking = False
        words = ("list-panes", "-s", "-t", self.id, "-F", "#{pane_id} #{pane_width} #{pane_height}")
        self.client.tell([words], self._looked)

    def _looked(self, replies: Sequence[Reply] | None) -> None:
        if replies is None:
            return
        there = {}
        for line in replies[0].lines:
            id, cols, rows = line.split(" ")
            there[id] = (int(cols), int(rows))
        for id, pane in list(self.panes.items()):
            if id in there:
                pane.resized(*there[id])
            else:
                self._home.find_again(pane)
