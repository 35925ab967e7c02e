"""Secrets that are good once, and only for a moment: links to log in by, tickets for a WebSocket. Kept in memory alone."""

from __future__ import annotations

from typing import Generic, TypeVar

from perdure.api.tokens import digest_of_secret
from perdure.api.vault import fresh_secret

T = TypeVar("T")

#: How many may be waiting to be used; beyond, the oldest is let go of.
MOST = 1000


class OneUse(Generic[T]):
    """What each secret stands for, until it is used or its time is up. Belongs to one loop; `at` are seconds that only grow."""

    def __init__(self, lasts: float, most: int = MOST) -> None:
        self._lasts = lasts
        self._most = most
        #: By digest: a secret is found by what cannot be guessed a piece at a time.
        self._waiting: dict[str, tuple[float, T]] = {}

    def issue(self, what: T, at: float) -> str:
        """Return a secret that stands for `what` once."""
        self._forget(at)
        while len(self._waiting) >= self._most:
            del self._waiting[next(iter(self._waiting))]
        secret = fresh_secret()
        self._waiting[digest_of_secret(secret)] = at + self._lasts, what
        return secret

    def use(self, secret: str, at: float) -> T | None:
        """Return what a secret stands for, and never again; None when it stands for nothing, or not any more."""
        self._forget(at)
        found = self._waiting.pop(digest_of_secret(secret), None)
        return None if found is None else found[1]

    def _forget(self, at: float) -> None:
        # In the order of their ends, since all last as long.
        for digest in [digest for digest, (until, _) in self._waiting.items() if at >= until]:
            del self._waiting[digest]
