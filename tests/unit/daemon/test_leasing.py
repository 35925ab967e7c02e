"""One daemon for a user's servers on a machine."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from perdure.daemon.leasing import TERM, Lease
from perdure.errors import Refused
from perdure.host.processes import read_entry
from tests.builders import NOON, at


class Book:
    """Leases as a store keeps them."""

    def __init__(self) -> None:
        self.held: dict[str, tuple[str, datetime]] = {}

    def take_lease(self, name: str, holder: str, now: datetime, *, until: datetime) -> str | None:
        """Take or prolong a lease, or say who has it."""
        other, held_until = self.held.get(name, (holder, now))
        if other != holder and held_until > now:
            return other
        self.held[name] = holder, until
        return None

    def drop_lease(self, name: str, holder: str) -> None:
        """Give a lease back."""
        if self.held.get(name, ("", NOON))[0] == holder:
            del self.held[name]


def _living() -> str:
    """A holder that is not us and lives: whoever started us."""
    entry = read_entry(os.getppid())
    assert entry is not None
    return f"laptop:{entry.pid}:{entry.start_ticks}"


def test_it_is_taken_prolonged_and_given_back() -> None:
    book = Book()
    lease = Lease(book, "laptop", 1000)
    lease.take(NOON)
    lease.take(at(30))
    ((name, (holder, until)),) = book.held.items()
    assert (name, until) == ("live:laptop/1000", at(30) + TERM)
    assert f":{os.getpid()}:" in holder
    lease.drop()
    assert book.held == {}


def test_another_that_lives_is_not_disturbed() -> None:
    book = Book()
    book.held["live:laptop/1000"] = _living(), at(60)
    with pytest.raises(Refused, match=f"process {os.getppid()}"):
        Lease(book, "laptop", 1000).take(NOON)
    assert book.held["live:laptop/1000"][0] == _living()


def test_another_that_lives_and_did_not_prolong_it_has_lost_it() -> None:
    book = Book()
    book.held["live:laptop/1000"] = _living(), at(60)
    Lease(book, "laptop", 1000).take(at(61))
    assert book.held["live:laptop/1000"][0] != _living()


def test_one_that_was_killed_holds_nothing() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    book = Book()
    for holder in (f"laptop:{process.pid}:12345", f"laptop:{os.getppid()}:1"):
        # The second: its number is another's by now.
        book.held["live:laptop/1000"] = holder, at(60)
        Lease(book, "laptop", 1000).take(NOON)


@pytest.mark.parametrize("holder", ["elsewhere:1:1", "laptop:", "nonsense", "laptop:1:x", "laptop:-1:1"])
def test_of_one_that_cannot_be_asked_after_nobody_knows_that_it_is_gone(holder: str) -> None:
    book = Book()
    book.held["live:laptop/1000"] = holder, at(60)
    with pytest.raises(Refused):
        Lease(book, "laptop", 1000).take(NOON)
    Lease(book, "laptop", 1000).take(NOON + timedelta(minutes=5))


def test_users_and_machines_do_not_get_into_each_others_way() -> None:
    book = Book()
    for host, uid in (("laptop", 1000), ("laptop", 1001), ("tower", 1000)):
        Lease(book, host, uid).take(NOON)
    assert len(book.held) == 3
