"""How often which pane is looked at: at once when it begins to change, and not more often than anybody needs.

Seconds are those of a clock that only ever grows, and handed in.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

#: A change is looked at after this long: a screen is written in several pieces.
SETTLE = 0.04
#: Those that go on changing are looked at this often, all of them at the same moments: together they cost hardly more
#: than one of them …
GAP = 0.2
#: … and their lines, while they are known to be at work, only this often, …
LINES_GAP = 1.0
#: … or this often where the title alone says so.
TITLED_GAP = 10.0
#: Whatever was looked at within this time goes on changing.
_LATELY = 1.0
_NEVER = float("inf")


class _Pane:
    """When a pane was last looked at, and what has changed since."""

    __slots__ = ("changed", "lines_due", "looked", "read", "rest")

    def __init__(self) -> None:
        self.changed: float | None = None
        self.lines_due = False
        self.looked = -_NEVER
        self.read = -_NEVER
        #: How long its lines were left alone when they were last wanted.
        self.rest = 0.0


class Pace(Generic[Key]):
    """Which panes are to be looked at now, and when the next ones are."""

    def __init__(self) -> None:
        self._panes: dict[Key, _Pane] = {}
        #: Those of them that will be looked at.
        self._waiting: dict[Key, _Pane] = {}

    def __len__(self) -> int:
        """Return how many panes are remembered."""
        return len(self._panes)

    def changed(self, key: Key, at: float) -> None:
        """Something was printed in a pane, or has to be looked at for another reason."""
        pane = self._panes.setdefault(key, _Pane())
        self._waiting[key] = pane
        pane.lines_due = True
        if pane.changed is None:
            pane.changed = at

    def read_again(self, key: Key) -> None:
        """The lines of a pane are wanted the next time it may be looked at."""
        pane = self._panes.setdefault(key, _Pane())
        self._waiting[key] = pane
        pane.lines_due, pane.read, pane.rest = True, -_NEVER, 0.0

    def forget(self, keep: Callable[[Key], bool]) -> None:
        """Forget the panes that are not kept."""
        self._panes = {key: pane for key, pane in self._panes.items() if keep(key)}
        self._waiting = {key: pane for key, pane in self._waiting.items() if key in self._panes}

    def take(self, now: float, rest: Callable[[Key], float]) -> dict[Key, bool]:
        """Return the panes to look at now, with whether their lines are wanted, and count them as looked at.

        `rest` says how long the lines of a pane are left for later after they were read, 0 when they never are.
        """
        taken = {}
        for key, pane in list(self._waiting.items()):
            if _at(pane) > now:
                continue
            pane.rest = rest(key)
            reads = pane.lines_due and now >= pane.read + pane.rest
            if pane.changed is None and not reads:
                continue
            taken[key] = reads
            pane.changed, pane.looked = None, now
            if reads:
                pane.lines_due, pane.read = False, now
                del self._waiting[key]
        return taken

    def next(self) -> float | None:
        """Return when `take` will have something, None when nothing has changed."""
        return min(map(_at, self._waiting.values()), default=None)


def _at(pane: _Pane) -> float:
    if pane.changed is None:
        return _tick(max(pane.read + pane.rest, pane.looked + GAP / 2))
    if pane.changed - pane.looked > _LATELY:
        return pane.changed + SETTLE
    return _tick(max(pane.changed + SETTLE, pane.looked + GAP / 2))


def _tick(at: float) -> float:
    """The next of the moments at which everything that goes on changing is looked at."""
    return math.ceil(at / GAP) * GAP if at > -_NEVER else at
