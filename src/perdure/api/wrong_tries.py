"""How often somebody may get it wrong. Pure: seconds are handed in.

Whoever is right is let in all the same: everybody on a machine comes from the same address, and nobody is to lock out
anybody else. What is bounded is what guessing costs us; that it leads nowhere, the length of a token sees to.
"""

from __future__ import annotations

from collections import OrderedDict

#: So many failures of one peer in so many seconds are answered one by one.
ALLOWED, WITHIN = 20, 60.0
#: How many peers are remembered.
MOST_PEERS = 1024


class WrongTries:
    """Who failed how often lately."""

    def __init__(self, allowed: int = ALLOWED, within: float = WITHIN, most: int = MOST_PEERS) -> None:
        self._allowed = allowed
        self._within = within
        self._most = most
        #: By peer, how many failures in the span that began when.
        self._peers: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def failed(self, peer: str, at: float) -> float | None:
        """Take note of a failure; return for how many seconds the peer is sent away, None while it may still try."""
        began, count = self._peers.pop(peer, (at, 0))
        if at >= began + self._within:
            began, count = at, 0
        self._peers[peer] = began, count + 1
        while len(self._peers) > self._most:
            self._peers.popitem(last=False)
        return began + self._within - at if count >= self._allowed else None
