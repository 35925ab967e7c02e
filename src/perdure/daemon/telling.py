"""Telling those who follow of what was written down: by the daemon, and by others into the same store.

Gateways and jobs write without asking the daemon. Numbers are given in the order in which they can be seen: where they go
on right behind the last that was told, what was written here is all there is; else those who follow read the store.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from perdure.daemon.protocol import Events
from perdure.errors import StoreUnusable
from perdure.model.event import StoredEvent
from perdure.ports import EventLog

#: Is handed what was just stored here, and whether the store has more than that since it was last handed something.
Publish = Callable[[Sequence[StoredEvent], bool], None]

log = logging.getLogger(__name__)


class Telling:
    """How far was told. All of it belongs to the thread of the store."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        #: The last number that was told; None while nobody follows: whoever begins to reads the store first.
        self._told: int | None = None

    def read(self, store: EventLog, asked: Events) -> Sequence[StoredEvent]:
        """Return the first stored events a request is about; from here on it is told what others write."""
        if self._told is None:
            self._told = store.last_event()
        return store.read_events(after=asked.after, limit=asked.limit, run=asked.run, kinds=asked.kinds)

    def rest(self) -> None:
        """Nobody follows any more."""
        self._told = None

    def own(self, stored: Sequence[StoredEvent]) -> None:
        """Tell what was just written down here."""
        for each in stored:
            log.info("%d %s %s", each.seq, each.event.kind, each.event.run or each.event.server or "")
        has_more = self._told is not None and stored[0].seq != self._told + 1
        if self._told is not None:
            self._told = stored[-1].seq
        self._publish(stored, has_more)

    def unstored(self, events: Sequence[StoredEvent]) -> None:
        """Tell what could not be written down, to those who listen at this moment."""
        self._publish(events, False)

    def others(self, store: EventLog) -> None:
        """Tell that others have written something, when they have. A store that cannot be asked is asked the next time."""
        if self._told is None:
            return
        try:
            last = store.last_event()
        except StoreUnusable:
            return
        if last > self._told:
            self._told = last
            self._publish((), True)
