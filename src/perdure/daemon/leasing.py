"""One daemon for a user's servers on a machine."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from perdure.errors import Refused
from perdure.host.processes import is_alive, read_entry
from perdure.ports import Leases

#: For how long the lease is taken; it is prolonged long before.
TERM = timedelta(seconds=90)


class Lease:
    """The right to watch, held by this process. One that was killed holds nothing any more."""

    def __init__(self, leases: Leases, host: str, uid: int) -> None:
        self._leases = leases
        self._host = host
        self._name = f"live:{host}/{uid}"
        entry = read_entry(os.getpid())
        self._holder = f"{host}:{os.getpid()}:{entry.start_ticks if entry else 0}"

    def take(self, now: datetime) -> None:
        """Take or prolong it. Raises `Refused` while another has it."""
        other = self._leases.take_lease(self._name, self._holder, now, until=now + TERM)
        if other is not None and self._is_gone(other):
            self._leases.drop_lease(self._name, other)
            other = self._leases.take_lease(self._name, self._holder, now, until=now + TERM)
        if other is not None:
            pid = other.rpartition(":")[0].rpartition(":")[2]
            raise Refused(f"Another perdure (process {pid}) already watches these servers.", pid=pid)

    def drop(self) -> None:
        """Give it back."""
        self._leases.drop_lease(self._name, self._holder)

    def _is_gone(self, holder: str) -> bool:
        place, pid, ticks = holder.rsplit(":", 2)
        return place == self._host and pid.isdecimal() and ticks.isdecimal() and not is_alive(int(pid), int(ticks))
