"""Leases: who may do what only one may do, and until when."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from perdure.store.driver import Driver
from perdure.store.queries import queries
from perdure.store.rows import UNREADABLE, moment_of, stamp

#: Whoever changes leases runs alone under this name. No server's key is like it: those have a slash.
_CHANGING = "leases"


class LeaseBook:
    """The `Leases` of one database. One that cannot be read back has run out."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._sql = queries()

    def take_lease(self, name: str, holder: str, now: datetime, *, until: datetime) -> str | None:
        with self.driver.transaction(_CHANGING):
            other = self._holder(name, now)
            if other is not None and other != holder:
                return other
            self.driver.execute(self._sql["put_lease"], name=name, holder=holder, held_until=stamp(until))
            return None

    def drop_lease(self, name: str, holder: str) -> None:
        self.driver.execute(self._sql["drop_lease"], name=name, holder=holder)

    def _holder(self, name: str, now: datetime) -> str | None:
        """Who holds a lease that has not run out."""
        for holder, held_until in self.driver.fetch(self._sql["get_lease"], name=name):
            with suppress(*UNREADABLE):
                return str(holder) if moment_of(held_until) > now else None
        return None
