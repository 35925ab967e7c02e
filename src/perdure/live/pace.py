"""How often which pane is looked at: at once when it begins to change, and not more often than anybody needs.

Seconds are those of a clock that only ever grows, and handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

#: A change is looked at after this long: a screen is written in several pieces.
SETTLE = 0.04
#: What goes on changing is looked at this often …
GAP = 0.2
#: … and its lines, while it is known to be at work, only this often.
LINES_GAP = 1.0


class _Pane:
    """When a pane was last looked at, and what has changed since."""

    __slots__ = ("changed", "lines_due", "looked", "read")

    def __init__(self) -> None:
        self.changed: float | None = None
        self.lines_due = False
        self.looked = float("-inf")
        self.read = float("-inf")


class Pace(Generic[Key]):
    """Which panes are to be looked at now, and when the next ones are."""

    def __init__(self) -> None:
        self._panes: dict[Key, _Pane] = {}

    def changed(self, key: Key, at: float) -> None:
        """Something was printed in a pane, or has to be looked at for another reason."""
        pane = self._panes.setdefault(key, _Pane())
        pane.lines_due = True
        if pane.changed is None:
            pane.changed = at

    def forget(self, keep: Callable[[Key], bool]) -> None:
        """Forget the panes that are not kept."""
        self._panes = {key: pane for key, pane in self._panes.items() if keep(key)}

    def take(self, now: float, is_busy: Callable[[Key], bool]) -> dict[Key, bool]:
        """Return the panes to look at now, with whether their lines are wanted, and count them as looked at.

        Of one that is busy the lines are left for later when they were read just now.
        """
        taken = {}
        for key, pane in self._panes.items():
            if self._at(pane) > now:
                continue
            reads = pane.lines_due and (not is_busy(key) or now >= pane.read + LINES_GAP)
            if pane.changed is None and not reads:
                continue
            taken[key] = reads
            pane.changed, pane.looked = None, now
            if reads:
                pane.lines_due, pane.read = False, now
        return taken

    def next(self) -> float | None:
        """Return when `take` will have something, None when nothing has changed."""
        return min((at for pane in self._panes.values() if (at := self._at(pane)) != float("inf")), default=None)

    @staticmethod
    def _at(pane: _Pane) -> float:
        if pane.changed is not None:
            return max(pane.changed + SETTLE, pane.looked + GAP)
        return max(pane.read + LINES_GAP, pane.looked + GAP) if pane.lines_due else float("inf")
