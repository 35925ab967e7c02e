"""One daemon for a user's servers on a machine."""

from __future__ import annotations

import os
import re
from datetime import datetime, timedelta

from perdure.errors import Refused
from perdure.host.processes import is_alive, read_entry
from perdure.ports import Leases

#: For how long the lease is taken; it is prolonged long before.
TERM = timedelta(seconds=90)

_HOLDER = re.compile(r"(?P<host>.*):(?P<pid>[0-9]{1,10}):(?P<start_ticks>[0-9]{1,20})", re.DOTALL)


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
            found = _HOLDER.fullmatch(other)
            where = f"process {found['pid']}" if found and found["host"] == self._host else other
            raise Refused(f"Another perdure ({where}) already watches these servers.", holder=other)

    def drop(self) -> None:
        """Give it back."""
        self._leases.drop_lease(self._name, self._holder)

    def _is_gone(self, holder: str) -> bool:
        found = _HOLDER.fullmatch(holder)
        # Of a process on another machine nothing is known.
        return (
            found is not None
            and found["host"] == self._host
            and not is_alive(int(found["pid"]), int(found["start_ticks"]))
        )
