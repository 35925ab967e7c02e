"""One commit for the appends of several processes: whoever is at it takes along what the others have handed over."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from threading import Lock
from typing import cast

from perdure import errors
from perdure.store import sqlite
from perdure.store.appends import Append
from perdure.store.desk import Desk, Handing, Order, desk_at, note, orders
from perdure.store.door import Door
from perdure.store.driver import Driver
from perdure.store.numbers import GIVING
from perdure.store.pooled import Pooled
from perdure.store.sqlite import SQLite


class Together:
    """Commits appends to a database, those of other processes together with ours, or ours together with theirs.

    `write` writes appends inside a transaction of the connection it is given, and notes in each its position, or the
    error that is its own; before that `top_up` adds to ours those that have come since. Whoever writes holds `writing`.
    `known` says where chats go on, as far as is known here; it is kept up with what others write for us.
    """

    def __init__(
        self,
        driver: Driver,
        writing: Lock,
        top_up: Callable[[list[Append]], None],
        write: Callable[[Sequence[Append], Driver], None],
        known: dict[str, tuple[int, int]],
    ) -> None:
        self._driver = driver
        self._borrow = cast("Callable[[], SQLite]", driver.borrow if isinstance(driver, Pooled) else lambda: driver)
        self._give_back = driver.give_back if isinstance(driver, Pooled) else lambda driver, error: None
        #: Another in a child, where nobody would let go of the parent's.
        self.writing = writing
        self._top_up = top_up
        self._write = write
        self._known = known
        #: How many others were taken along the last time.
        self._usual = 0
        #: Whether another has written ours the last time: then nobody expects to be the first now, either.
        self._is_crowded = False

    def commit(self, appends: list[Append]) -> None:
        """Commit appends, all or nothing, apart from those that have an error of their own afterwards."""
        door = self._driver.door
        desk = None if door is None else door.desk or desk_at(door)
        if door is None or desk is None:
            self._commit_alone(appends)
            return
        served: Sequence[Order] = ()
        with self.writing:
            try:
                if is_ours := not self._is_crowded and door.is_entered():
                    served = self._serve(appends, desk)
                    door.leave()
            except BaseException:
                door.let_go()
                raise
        if not is_ours:
            served = self._hand_over(appends, door, desk)
        for order in served:
            desk.wake(order.name)

    def attend(self) -> None:
        """Have those who wait at the desk woken by whoever leaves the door here, also where nothing is ever appended."""
        door = self._driver.door
        if door is not None and door.desk is None:
            desk_at(door)

    def _commit_alone(self, appends: list[Append]) -> None:
        with self.writing, self._driver.transaction(GIVING):
            self._top_up(appends)
            self._write(appends, self._driver)

    def _hand_over(self, appends: list[Append], door: Door, desk: Desk) -> Sequence[Order]:
        """Let whoever is inside write our appends, or write them here when it is our turn."""
        served: Sequence[Order] = ()
        handing = Handing(desk, appends, self._known)
        try:
            with self.writing, door.passed(sqlite.PATIENCE, handing):
                if handing.positions is None:
                    served = self._serve(appends, desk, handing)
        except BaseException as error:
            if handing.is_out:
                desk.take_off()
                if isinstance(error, errors.StoreUnusable):
                    raise _unknown(error) from error
            raise
        self._is_crowded = handing.is_served
        # What came to nothing elsewhere comes to nothing here, too, and learns why.
        rest = handing.rest()
        if rest:
            self._commit_alone(rest)
        return served

    def _serve(self, appends: list[Append], desk: Desk, handing: Handing | None = None) -> Sequence[Order]:
        """Write our appends and what others have handed over; return what they are to be woken for."""
        taken: list[Order] = []
        written: list[Order] = []
        self._gather(desk)
        driver, failure = self._borrow(), None
        try:
            driver.begin()
            if handing is not None:
                handing.settle(driver)
                if handing.positions is not None:
                    driver.roll_back()
                    return ()
            self._top_up(appends)
            if not desk.is_empty():
                taken, written = orders(desk, driver)
            if taken:
                self._write([*appends, *(append for order in taken for append in order.appends)], driver)
                note(driver, taken)
            else:
                # Nearly always.
                self._write(appends, driver)
            driver.commit()
        except BaseException as error:
            failure = error
            driver.roll_back()
            if not taken or not isinstance(error, Exception):
                raise
        finally:
            self._give_back(driver, failure)
        if failure is not None:
            # It may be somebody else's that is at fault: each for itself.
            with self._driver.transaction(GIVING):
                self._write(appends, self._driver)
            return ()
        self._usual = len(taken)
        told = taken + written
        for order in told:
            desk.answer(order)
        return told

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
