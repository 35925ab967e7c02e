"""One commit for the appends of several processes: whoever is at it takes along what the others have handed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Lock

from perdure import errors
from perdure.store import sqlite
from perdure.store.appends import Append
from perdure.store.desk import Desk, Handing, Order, desk_at, note, orders
from perdure.store.door import Door
from perdure.store.driver import Driver
from perdure.store.numbers import GIVING


class Together:
    """Commits appends to a database, those of other processes together with ours, or ours together with theirs.

    `write` writes appends inside a transaction, and notes in each its position, or the error that is its own; before
    that `top_up` adds to ours those that have come since. Whoever writes holds `writing`.
    """

    def __init__(
        self,
        driver: Driver,
        writing: Lock,
        top_up: Callable[[list[Append]], None],
        write: Callable[[Sequence[Append]], None],
    ) -> None:
        self._driver = driver
        self._writing = writing
        self._top_up = top_up
        self._write = write
        #: How many others were taken along the last time.
        self._usual = 0

    def commit(self, appends: list[Append]) -> None:
        """Commit appends, all or nothing, apart from those that have an error of their own afterwards."""
        door = self._driver.door
        desk = None if door is None else door.desk or desk_at(door)
        if door is None or desk is None:
            self._commit_alone(appends)
            return
        handing = Handing(desk, appends)
        self._commit_or_hand_over(appends, door, desk, handing)
        # What came to nothing elsewhere comes to nothing here, too, and learns why.
        rest = handing.rest()
        if rest:
            self._commit_alone(rest)

    def _commit_alone(self, appends: list[Append]) -> None:
        with self._writing, self._driver.transaction(GIVING):
            self._top_up(appends)
            self._write(appends)

    def _commit_or_hand_over(self, appends: list[Append], door: Door, desk: Desk, handing: Handing) -> None:
        served: Sequence[Order] = ()
        try:
            with self._writing, door.passed(sqlite.PATIENCE, handing):
                if handing.positions is None:
                    served = self._serve(appends, desk, handing)
        except BaseException as error:
            if handing.is_out:
                desk.take_off()
                if isinstance(error, errors.StoreUnusable):
                    raise _unknown(error) from error
            raise
        for order in served:
            desk.wake(order.name)

    def _serve(self, appends: list[Append], desk: Desk, handing: Handing) -> Sequence[Order]:
        """Write our appends and what others have handed over; return what they are to be woken for."""
        taken: list[Order] = []
        self._gather(desk)
        try:
            with self._driver.transaction(GIVING):
                handing.settle(self._driver)
                if handing.positions is not None:
                    return ()
                self._top_up(appends)
                taken, written = orders(desk, self._driver)
                self._write([*appends, *(append for order in taken for append in order.appends)])
                if taken:
                    note(self._driver, taken)
        except Exception:
            if not taken:
                raise
            # It may be somebody else's that is at fault: each for itself.
            with self._driver.transaction(GIVING):
                self._write(appends)
            return ()
        self._usual = len(taken)
        for order in (*taken, *written):
            desk.answer(order)
        return (*taken, *written)

    def _gather(self, desk: Desk) -> None:
        """Let those run who were taken along the last time, and are about to come again; nobody is waited for."""
        for _ in range(2 * self._usual):
            if desk.count() >= self._usual:
                return
            os.sched_yield()


def _unknown(error: errors.StoreUnusable) -> errors.StoreUnusable:
    return errors.StoreUnusable(
        f"{error.message} Another process may still write what was said: look what is there before writing it again.",
        **error.data,
    )
