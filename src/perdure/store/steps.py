"""How much of a chat goes in one transaction, where nobody has to have it all at once: so that nobody waits for long. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

#: How many turns, and how many bytes of them.
AT_ONCE, BYTES = 200, 512 << 10


def step(sizes: Iterable[int], most: int = BYTES) -> int:
    """Return how many turns of these sizes go at once, one behind the other; the first in any case, where there is one."""
    totals = list(accumulate(sizes))
    return max(min(1, len(totals)), sum(total <= most for total in totals))
