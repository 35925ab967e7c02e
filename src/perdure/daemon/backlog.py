"""What one viewer of a pane is still to be shown. Pure.

A viewer is shown a screen, and then everything that is printed after it. One that does not keep up is not waited for: what
waits for it is dropped, and it is shown the screen of the moment in which it is ready again.
"""

from __future__ import annotations

from collections import deque

from perdure.model.terminal import Closed, Frame, Printed, Resized, Screen, Sized

#: How many characters may wait for one viewer.
MOST = 1 << 18
#: How many are handed out at once, as long as what was printed came in smaller pieces.
PIECE = 1 << 15


class Backlog:
    """Frames in their order. Nothing that was printed before a screen comes after it, and nothing after it is left out."""

    def __init__(self, most: int = MOST) -> None:
        #: Whether nothing that is printed is of use before there is another screen.
        self.wants_screen = True
        self._most = most
        self._waiting: deque[Frame] = deque()
        self._size = 0
        #: Why nothing more comes, None as long as it does.
        self.why: str | None = None

    def show(self, screen: Screen) -> None:
        """Take in a screen, and let go of what it makes worthless."""
        if self.why is None:
            self.drop()
            self._waiting.append(screen)
            self.wants_screen = False

    def print(self, text: str) -> None:
        """Take in what was printed, or let go of everything when too much waits."""
        if self.wants_screen or self.why is not None or not text:
            return
        if self._size + len(text) > self._most:
            self.drop()
            return
        self._size += len(text)
        self._waiting.append(Printed(text=text))

    def resize(self, cols: int, rows: int) -> None:
        """Take in that the pane has another size."""
        if self.why is None:
            self.drop()
            self._waiting.append(Resized(cols=cols, rows=rows))

    def size(self, *, taken: bool) -> None:
        """Take in whether the pane has the size that its viewer has given it."""
        if self.why is None:
            self._waiting = deque(frame for frame in self._waiting if not isinstance(frame, Sized))
            self._waiting.append(Sized(taken=taken))

    def drop(self) -> None:
        """Let go of what waits, and want a screen."""
        if self.why is None:
            # Of each the last, which is all that still holds.
            kept = {type(frame): frame for frame in self._waiting if isinstance(frame, Resized | Sized)}
            self._waiting = deque(kept.values())
            self._size = 0
            self.wants_screen = True

    def close(self, why: str) -> None:
        """Take in that nothing more comes; what waits is still shown."""
        if self.why is None:
            self.why = why
            self.wants_screen = False
            self._waiting.append(Closed(why=why))

    def take(self) -> Frame | None:
        """Return what is to be shown next, None when nothing is there now."""
        if not self._waiting:
            return None
        frame = self._waiting.popleft()
        if not isinstance(frame, Printed):
            return frame
        pieces, size = [frame.text], len(frame.text)
        while self._waiting and size < PIECE and isinstance(more := self._waiting[0], Printed):
            self._waiting.popleft()
            pieces.append(more.text)
            size += len(more.text)
        self._size -= size
        return Printed(text="".join(pieces))
