"""Where those who write to one database wait for each other: about in the order in which they come, and woken at once.

SQLite has them look again every so often instead, in the end every tenth of a second. This is about waiting only: it is
still SQLite that lets one in at a time. So whoever waits too long here, or finds no way to wait, simply goes on to it.

    <database>-door                    empty; locked by the process whose turn it is
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from weakref import WeakValueDictionary

from perdure import errors
from perdure.store.files import private_file


class Door:
    """The door of one database in this process; `door_of` has the one that all its connections share.

    Among processes it is a lock of the kind that belongs to the process, so that it goes with the process, whatever
    ends that, and no child has it. Threads take turns before that.
    """

    def __init__(self, path: str) -> None:
        self._turn = threading.Lock()
        #: Whether somebody waits for the lock whom nobody waits for any more.
        self._is_given_up = False
        self._file = _opened(f"{path}-door")

    def __del__(self) -> None:
        if self._file is not None:
            os.close(self._file)

    @contextmanager
    def passed(self, patience: float) -> Iterator[None]:
        """Wait for one's turn, as long as that, and have it inside."""
        if self._file is None or not self._turn.acquire(timeout=patience):
            yield
            return
        try:
            self._lock(self._file, patience)
            yield
        finally:
            # Nothing happens where it was not got.
            fcntl.lockf(self._file, fcntl.LOCK_UN)
            self._turn.release()

    def _lock(self, file: int, patience: float) -> None:
        if self._is_given_up:
            return
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            self._wait(file, patience)
        except OSError:
            return

    def _wait(self, file: int, patience: float) -> None:
        """Let another thread wait for the lock: nothing else can stop waiting for it after a while."""
        guard, got = threading.Lock(), threading.Lock()
        got.acquire()
        over: list[bool] = []

        def wait() -> None:
            # Of two processes that wait for each other, at the doors of two databases, one gets an error.
            with suppress(OSError):
                fcntl.lockf(file, fcntl.LOCK_EX)
            with guard:
                over.append(True)
                got.release()
                if self._is_given_up:
                    fcntl.lockf(file, fcntl.LOCK_UN)
                    self._is_given_up = False

        _waiter().put(wait)
        try:
            got.acquire(timeout=patience)
        finally:
            with guard:
                self._is_given_up = not over


def _waiter() -> SimpleQueue[Callable[[], None]]:
    """Where a thread that has nothing to do takes what is to be waited for; a new one when all of them wait."""
    with _GUARD:
        if _IDLE:
            return _IDLE.pop()
    orders: SimpleQueue[Callable[[], None]] = SimpleQueue()
    threading.Thread(target=_wait_on, args=(orders,), name="perdure-door", daemon=True).start()
    return orders


def _wait_on(orders: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        orders.get()()
        with _GUARD:
            _IDLE.append(orders)


_IDLE: list[SimpleQueue[Callable[[], None]]] = []
_DOORS: WeakValueDictionary[str, Door] = WeakValueDictionary()
_GUARD = threading.Lock()


def door_of(path: str) -> Door:
    """Return the door of the database at `path`."""
    with _GUARD:
        door = _DOORS.get(path)
        if door is None:
            door = _DOORS[path] = Door(path)
        return door


def _opened(path: str) -> int | None:
    """The file to lock; None where there can be none."""
    try:
        private_file(path)
        return os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except (errors.StoreUnusable, OSError):
        return None


def _forget() -> None:
    """Let a child have doors of its own, and threads: whose turn it was in the parent it cannot know."""
    global _GUARD
    _GUARD = threading.Lock()
    _DOORS.clear()
    _IDLE.clear()


os.register_at_fork(after_in_child=_forget)
