"""The numbers of runs and events: none is given twice, whatever becomes of the database.

The counters stand in the database, and a copy of them in the state directory, where it outlives the database:

    <state_dir>/numbers.json           {"events":4097,"runs":12}

A number is given only when the copy is at least as high. The copy of the events' is ahead by a block, so that most
events cost no file; that of the runs' is exact, so that a database that is made anew goes on with the next one.
"""

from __future__ import annotations

import os

import msgspec

from perdure.model.decoding import decoder_of
from perdure.store.driver import Driver
from perdure.store.files import cannot, write_atomically
from perdure.store.queries import queries

RUNS, EVENTS = "runs", "events"
#: Whoever gives numbers runs alone under this name. No server's key is like it: those have a slash.
GIVING = "numbers"
#: By how much the copy is ahead.
_AHEAD = {RUNS: 0, EVENTS: 4096}
#: No counter gets there; a copy that says so is not ours.
_ABSURD = 10**17


class Numbers:
    """The counters of one database, with their copy. Whatever changes them is called inside a `GIVING` transaction."""

    def __init__(self, driver: Driver, state_dir: str) -> None:
        self._driver = driver
        self._sql = queries()
        self.path = numbers_file(state_dir)
        self._copied: dict[str, int] | None = None

    def take(self, name: str, count: int) -> range:
        """Return as many numbers as asked, above every one that was ever given."""
        numbers = self.take_for_rows(name, count)
        self._note(name, numbers[-1])
        return numbers

    def take_for_rows(self, name: str, count: int) -> range:
        """Return as many numbers as asked, for rows that are written in the same transaction: they tell what was given.

        Saves writing the counter. Before such rows are deleted, `raise_to` has to note their numbers.
        """
        given, copied = self.given(name), self._copy().get(name, 0)
        if given + _AHEAD[name] < copied:
            # The copy is never further ahead: this is an older database, put back, or what was given was not kept.
            given = copied
        self._put_copy(name, given + count)
        return range(given + 1, given + count + 1)

    def raise_to(self, name: str, number: int) -> None:
        """Let no number up to this one be given any more."""
        highest = max(number, self.given(name))
        self._put_copy(name, highest)
        self._note(name, highest)

    def raise_past(self, name: str, number: int) -> None:
        """Let no number up to this one be given any more, nor those that others can have given after it."""
        self.raise_to(name, number + _AHEAD[name])

    def see(self, name: str, number: int) -> None:
        """Let a number that something came with not be given any more. Costs nothing when we gave it."""
        if number > self._copy().get(name, 0):
            self.raise_to(name, number)

    def catch_up(self) -> None:
        """Let a database that was made anew go on behind whatever the one before it can have given."""
        for name, number in tuple(self._copy().items()):
            self.raise_to(name, number)

    def given(self, name: str) -> int:
        """Return the last number that was given, as far as the database knows. Needs no transaction."""
        # The rows tell too: those of events alone, as long as they are there; and should the counter be lost or spoilt.
        return max(filter(is_number, self._driver.fetch(self._sql[f"given_{name}"])[0]), default=0)

    def _put_copy(self, name: str, number: int) -> None:
        # Before anything else: killed in between, numbers are left out, and none is given again.
        if number > self._copy().get(name, 0):
            # Read anew: somebody else may have written it since.
            self._copied = _read(self.path)
            if number > self._copied.get(name, 0):
                self._copied[name] = number + _AHEAD[name]
                self._write(self._copied)

    def _note(self, name: str, number: int) -> None:
        self._driver.execute(self._sql["put_counter"], name=name, value=number)

    def _copy(self) -> dict[str, int]:
        if self._copied is None:
            self._copied = _read(self.path)
        return self._copied

    def _write(self, numbers: dict[str, int]) -> None:
        try:
            write_atomically(self.path, msgspec.json.encode(numbers, order="sorted"))
        except OSError as error:
            raise cannot("The file", self.path, "be written", error) from error


def numbers_file(state_dir: str) -> str:
    """Return where the copy is."""
    return os.path.join(state_dir, "numbers.json")


def _read(path: str) -> dict[str, int]:
    """Return what the copy says; nothing when there is none, or none that can be read: the next number writes it."""
    try:
        with open(path, "rb") as file:
            found = decoder_of(dict[str, int]).decode(file.read())
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return {}
    return {name: number for name, number in found.items() if name in _AHEAD and is_number(number)}


def is_number(value: object) -> bool:
    """Return whether something that was read may be the last number that was given."""
    return isinstance(value, int) and 0 < value < _ABSURD
