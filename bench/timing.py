"""Taking turns: every measurement once a round, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping

from msgspec import Struct

#: Does one thing once and returns the seconds it took.
Step = Callable[[], float]


class Timing(Struct, frozen=True, kw_only=True):
    """What a measurement came to, in seconds, in the order of the rounds."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        """The usual time."""
        return statistics.median(self.samples)

    @property
    def minimum(self) -> float:
        """The time on the quietest moment of the machine."""
        return min(self.samples)

    @property
    def p95(self) -> float:
        """The time that 95 of 100 do not exceed: one that was really taken."""
        return sorted(self.samples)[math.ceil(0.95 * len(self.samples)) - 1]


def timed(work: Callable[[], object]) -> float:
    """Return the seconds `work` takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def interleave(steps: Mapping[str, Step], rounds: int, *, uncounted: int = 1) -> dict[str, Timing]:
    """Return a timing for every step: A B C, A B C, … after one round that does not count, or as many as that."""
    for _ in range(uncounted):
        for step in steps.values():
            step()
    samples: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            samples[name].append(step())
    return {name: Timing(samples=tuple(taken)) for name, taken in samples.items()}
