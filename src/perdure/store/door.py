"""Where those who write to one database wait for each other: about in the order in which they come, and woken at once.

SQLite has them look again every so often instead, in the end every tenth of a second. This is about waiting only: it is
still SQLite that lets one in at a time. So whoever waits too long here, or finds no way to wait, simply goes on to it.

    <database>-door                    empty; its first byte is locked by the process whose turn it is, and its second
                                       is shared by all processes that have the database open: so the first one knows
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, LOCK_SH, LOCK_UN, lockf
from queue import SimpleQueue
from threading import get_ident
from time import sleep
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from perdure import errors
from perdure.store import forking
from perdure.store.files import private_file

if TYPE_CHECKING:
    from perdure.store.desk import Desk, Handing

_AT_ONCE = LOCK_EX | LOCK_NB
#: Which bytes are locked: how many, and from where on.
_TURN, _PRESENCE = (1, 0), (1, 1)
#: How long whoever comes second waits for the first one to have looked: so often, with as many seconds in between.
_TRIES, _PAUSE = 500, 0.02


class Door:
    """The door of one database in this process; `door_of` has the one that all its connections share.

    Among processes it is a lock of the kind that belongs to the process, so that it goes with the process, whatever
    ends that, and no child has it. Threads take turns before that.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        #: Where others wait for what they have handed over, once anybody asked for it.
        self.desk: Desk | None = None
        self.has_no_desk = False
        # One that knows whose it is: whoever is interrupted has to find out how far it came.
        self._turn = threading.RLock()
        #: The thread that is inside.
        self._inside: int | None = None
        #: Whether somebody waits for the lock whom nobody waits for any more.
        self._is_given_up = False
        self._file = _opened(f"{path}-door")
        #: Whether nobody else has the database open, and nobody has yet said `look_is_over` here.
        self.is_first = self._file is not None and _is_first(self._file)

    def look_is_over(self) -> None:
        """Let others open the database, too: the first one has seen what it had to see before anybody does."""
        if self.is_first and self._file is not None:
            self.is_first = False
            with suppress(OSError):
                lockf(self._file, LOCK_SH | LOCK_NB, *_PRESENCE)

    def __del__(self) -> None:
        self.begin_anew()

    def begin_anew(self) -> None:
        """Be, in a child, a door at which nobody waits: whose turn it was in the parent it cannot know."""
        file, self._file = self._file, None
        if file is not None:
            # At once: later it would take with it the lock of the door that the child has made.
            os.close(file)

    def is_inside(self) -> bool:
        """Return whether this thread has passed, and is not out again."""
        return self._inside == get_ident()

    def passed(self, patience: float, handing: Handing | None = None) -> Passage:
        """Wait for one's turn, as long as that, and have it inside; or, with `handing`, for what was handed over.

        Whoever is inside may pass again.
        """
        return Passage(self, patience, handing)

    def enter(self, patience: float, handing: Handing | None) -> bool:
        """Wait for one's turn; False where there is none to give back. Whoever is interrupted here has to `let_go`."""
        if self._file is None or self.is_inside() or not self._turn.acquire(timeout=patience):
            return False
        self._inside = get_ident()
        self._lock(self._file, patience, handing)
        return True

    def is_entered(self) -> bool:
        """Be inside where nobody is, and return whether that is so; nobody is waited for. As interrupted as `enter`."""
        if self._file is None or self.is_inside() or not self._turn.acquire(False):
            return False
        if self._is_given_up or not _is_got(self._file):
            self._turn.release()
            return False
        self._inside = get_ident()
        return True

    def let_go(self) -> None:
        """Be outside, wherever on the way in or out this thread was interrupted."""
        if self._turn.acquire(False):
            # Else it is another thread's. It may have been ours already: then it is twice now.
            self.leave()
            with suppress(RuntimeError):
                self._turn.release()

    def leave(self, handing: Handing | None = None) -> None:
        """Let somebody else in."""
        self._inside = None
        if self._file is None:
            return
        if handing is not None and handing.is_served:
            self._turn.release()
            return
        # Nothing happens where it was not got.
        lockf(self._file, LOCK_UN, *_TURN)
        self._turn.release()
        desk = self.desk
        if desk is not None and not desk.is_empty():
            desk.wake_next()

    def _lock(self, file: int, patience: float, handing: Handing | None) -> None:
        if self._is_given_up or (handing is not None and handing.wait(lambda: _is_got(file), patience)):
            return
        if not _is_got(file):
            self._wait(file, patience)

    def _wait(self, file: int, patience: float) -> None:
        """Let another thread wait for the lock: nothing else can stop waiting for it after a while."""
        guard, got = threading.Lock(), threading.Lock()
        got.acquire()
        over: list[bool] = []

        def wait() -> None:
            # Of two processes that wait for each other, at the doors of two databases, one gets an error.
            with suppress(OSError):
                lockf(file, LOCK_EX, *_TURN)
            with guard:
                over.append(True)
                got.release()
                if self._is_given_up:
                    lockf(file, LOCK_UN, *_TURN)
                    self._is_given_up = False

        _waiter().put(wait)
        try:
            got.acquire(timeout=patience)
        finally:
            with guard:
                self._is_given_up = not over


class Passage:
    """One's turn at a door. Not a generator: every append goes through here."""

    __slots__ = ("_door", "_handing", "_is_in", "_patience")

    def __init__(self, door: Door, patience: float, handing: Handing | None) -> None:
        self._door = door
        self._patience = patience
        self._handing = handing
        self._is_in = False

    def __enter__(self) -> None:
        door = self._door
        if door.is_inside():
            return
        try:
            self._is_in = door.enter(self._patience, self._handing)
        except BaseException:
            door.let_go()
            raise

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._is_in:
            try:
                self._door.leave(self._handing)
            except BaseException:
                self._door.let_go()
                raise


def _is_got(file: int) -> bool:
    """Get the lock, if nobody has it; where there can be none, that is as good."""
    try:
        lockf(file, _AT_ONCE, *_TURN)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return True
    return True


def _is_first(file: int) -> bool:
    """Be among those who have the database open, and return whether there was nobody; False where nobody can tell."""
    try:
        lockf(file, _AT_ONCE, *_PRESENCE)
    except (BlockingIOError, PermissionError):
        for _ in range(_TRIES):
            try:
                lockf(file, LOCK_SH | LOCK_NB, *_PRESENCE)
            except OSError:
                sleep(_PAUSE)
            else:
                break
        return False
    except OSError:
        return False
    return True


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


class _Doors:
    """All doors of a process."""

    def begin_anew(self) -> None:
        """Let a child have doors of its own, and threads."""
        global _GUARD
        _GUARD = threading.Lock()
        doors = list(_DOORS.values())
        _DOORS.clear()
        _IDLE.clear()
        for door in doors:
            door.begin_anew()


_ALL = _Doors()
forking.begins_anew(_ALL)
