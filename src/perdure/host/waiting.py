"""Letting time pass."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic, sleep


def wait_until(condition: Callable[[], object], seconds: float, *, every: float = 0.05) -> bool:
    """Wait until something is so; return False when it is not after that many seconds."""
    deadline = monotonic() + seconds
    while not condition():
        if monotonic() >= deadline:
            return False
        sleep(every)
    return True


class Pace:
    """Spreads what is shown over a number of seconds; with 0 nothing waits."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return monotonic() - self._began

    def reach(self, share: float) -> None:
        """Wait until that share of the time is over; not at all when it is already."""
        left = share * self._seconds - self.elapsed
        if left > 0:
            sleep(left)
