"""A database for several threads at once: each borrows a connection for as long as it needs one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from perdure import errors
from perdure.store import forking
from perdure.store.door import Door
from perdure.store.driver import Driver, Row, Value


class _Mine(threading.local):
    """The connection a thread has borrowed."""

    driver: Driver | None = None


class Pooled:
    """A `Driver` over as many connections as there are threads at work at once.

    A connection over which the database could not be used is not used again: the next one to ask makes another, so
    that a lock, a full disk or a server's restart costs only what met it. A process that was forked off makes its own.
    """

    def __init__(self, make: Callable[[], Driver]) -> None:
        self._make = make
        self._guard = threading.Lock()
        self._idle: list[Driver] = [make()]
        #: In a child: the parent's connection, which the thread that forked had borrowed by then.
        self._inherited: Driver | None = None
        self._is_closed = False
        self._mine = _Mine()
        self.dialect = self._idle[0].dialect
        self._door = self._idle[0].door
        forking.begins_anew(self)

    def begin_anew(self) -> None:
        """Have, in a child, none of the parent's connections, but for the one whose use the child is in the midst of."""
        self._guard = threading.Lock()
        self._idle = []
        self._inherited = self._mine.driver
        self._door = None

    @property
    def mine(self) -> Driver | None:
        """The connection this thread has borrowed."""
        return self._mine.driver

    @property
    def files(self) -> Sequence[str]:
        """The files the database lies in."""
        with self._borrowed() as driver:
            return driver.files

    @property
    def door(self) -> Door | None:
        """Where whoever writes waits for others who do."""
        if self._door is None:
            with self._borrowed() as driver:
                self._door = driver.door
        return self._door

    def execute(self, sql: str, **parameters: Value) -> int:
        """Run one statement and return how many rows it changed."""
        mine = self._mine.driver
        if mine is not None:
            return mine.execute(sql, **parameters)
        with self._borrowed() as driver:
            return driver.execute(sql, **parameters)

    def run(self, sql: str, *values: Value) -> int:
        """Run one statement whose parameters have numbers and return how many rows it changed."""
        mine = self._mine.driver
        if mine is not None:
            return mine.run(sql, *values)
        with self._borrowed() as driver:
            return driver.run(sql, *values)

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Run one statement for each of some rows, inside a transaction."""
        mine = self._mine.driver
        if mine is not None:
            return mine.execute_many(sql, rows)
        with self._borrowed() as driver:
            driver.execute_many(sql, rows)

    def fetch(self, sql: str, **parameters: Value) -> list[Row]:
        """Run one query and return all rows."""
        mine = self._mine.driver
        if mine is not None:
            return mine.fetch(sql, **parameters)
        with self._borrowed() as driver:
            return driver.fetch(sql, **parameters)

    def fetch_as_is(self, sql: str, **parameters: Value) -> list[Row]:
        """The same where text that is no UTF-8 is no error."""
        with self._borrowed() as driver:
            return driver.fetch_as_is(sql, **parameters)

    def transaction(self, server: str | None = None) -> _Transaction:
        """Make everything this thread does inside happen or not happen."""
        return _Transaction(self, server)

    def has_table(self, name: str) -> bool:
        """Return whether there is such a table."""
        with self._borrowed() as driver:
            return driver.has_table(name)

    def integrity(self) -> Sequence[str]:
        """Return what the database finds wrong with its own file."""
        with self._borrowed() as driver:
            return driver.integrity()

    def close(self) -> None:
        """Let go of the database; what is borrowed right now is closed when it comes back."""
        with self._guard:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for driver in idle:
            driver.close()

    @contextmanager
    def _borrowed(self) -> Iterator[Driver]:
        if self._mine.driver is not None:
            yield self._mine.driver
            return
        driver = self.borrow()
        error: BaseException | None = None
        try:
            yield driver
        except errors.StoreUnusable as unusable:
            error = unusable
            raise
        finally:
            self.give_back(driver, error)

    def borrow(self) -> Driver:
        """Take a connection for this thread, which has none."""
        with self._guard:
            if self._is_closed:
                raise errors.StoreUnusable("The store was closed.")
            # The one that was used last has the warmest cache.
            driver = self._idle.pop() if self._idle else None
        driver = self._mine.driver = driver or self._make()
        return driver

    def give_back(self, driver: Driver, error: BaseException | None) -> None:
        """Let others have the connection of this thread, unless the database could not be used over it."""
        self._mine.driver = None
        with self._guard:
            is_usable = error is None or not isinstance(error, errors.StoreUnusable)
            if is_usable and not self._is_closed and driver is not self._inherited:
                self._idle.append(driver)
                return
        driver.close()


class _Transaction:
    """What `Pooled.transaction` returns. Not a generator: every append goes through here."""

    __slots__ = ("_borrowed", "_inside", "_pool", "_server")

    def __init__(self, pool: Pooled, server: str | None) -> None:
        self._pool = pool
        self._server = server
        self._borrowed: Driver | None = None

    def __enter__(self) -> None:
        driver = self._pool.mine
        if driver is None:
            driver = self._borrowed = self._pool.borrow()
        try:
            self._inside = driver.transaction(self._server)
            self._inside.__enter__()
        except BaseException as error:
            self._leave(error)
            raise

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: Any) -> bool | None:
        try:
            is_over = self._inside.__exit__(kind, error, trace)
        except BaseException as other:
            self._leave(other)
            raise
        self._leave(error)
        return is_over

    def _leave(self, error: BaseException | None) -> None:
        if self._borrowed is not None:
            self._pool.give_back(self._borrowed, error)
