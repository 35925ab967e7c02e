"""Chats, while the daemon watches: those that were kept long enough go, whether or not a gateway is there to see to it.

So do, from their mirror, those that somebody let go of who was killed before its files were gone.
"""

from __future__ import annotations

import logging

from perdure.daemon.keeping import Keeping
from perdure.errors import PerdureError
from perdure.model.secrets import redact_text

#: How long the daemon is there before it looks for the first time, how often it looks, and how soon again when not all went
#: that could: in seconds. Between two lots everything else has its turn.
FIRST, EVERY, SOON = 5.0, 3600.0, 10.0

log = logging.getLogger(__name__)


class ChatUpkeep:
    """The chats of the store. Nothing is done as long as nothing says how long they are kept, and they have no mirror."""

    def __init__(self, keeping: Keeping) -> None:
        self._keeping = keeping
        self._at: float | None = None

    def next(self) -> float:
        """When there is something to do even if nothing happens."""
        chats = self._keeping.world.config.chats
        if not chats.keep_days and not chats.legacy_dir:
            return float("inf")
        return 0.0 if self._at is None else self._at

    def look(self, at: float) -> None:
        """Do what is due. Nothing that is wrong with a chat or the store gets any further."""
        if self._at is None:
            self._at = at + FIRST
        if at < self.next():
            return
        self._at = at + EVERY
        try:
            if self._keeping.world.tidy_chats():
                self._at = at + SOON
        except PerdureError as error:
            log.warning("chats are let go of later: %s", redact_text(error.message))
