"""What becomes of a store where its process forks: the one place for all that a child has to begin anew.

Of all threads only the one that forks is in the child, so that a lock another one held is held there for ever. SQLite's
own are among them, and it believes of the locks a parent has on a database that the child has them, too: one that wrote
relying on that would write to a log that others take away. So there is no fork while a thread is inside SQLite, or
inside a transaction; and the child lets go of the connections it has come by before it makes its own.

Where that is not to be had, because the very thread that forks is inside a transaction, or because another does not come
out, the child can use no SQLite database: it neither ends what is the parent's nor relies on locks that are not its own.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from threading import get_ident
from time import sleep
from typing import Protocol
from weakref import WeakSet

# What is registered later is asked earlier, and so ours: whoever is to come out of a transaction may have to learn a kind
# of data first.
import perdure.model.decoding  # noqa: F401  only for the order

#: How long, in seconds, a fork waits for others to come out of SQLite, and how often it looks.
_PATIENCE, _PAUSE = 15.0, 0.001


class BeginsAnew(Protocol):
    """What a child cannot use as it finds it."""

    def begin_anew(self) -> None:
        """Make it usable in a child, which has one thread, before anything else happens there."""


class Busy(BeginsAnew, Protocol):
    """What no other thread may be inside of when a child is begun."""

    #: The thread that is inside; 0 for none.
    busy: int


class _Gate:
    """Shut while a child is begun."""

    def __init__(self) -> None:
        self.is_shut = False
        #: Held by the thread that forks.
        self.lock = threading.Lock()
        self.holder = 0
        #: Whether nobody else is inside of anything, as far as is known since it was shut.
        self.is_still = True
        #: Whether SQLite cannot be used in this process.
        self.is_barred = False


_GATE = _Gate()
_ANEW: WeakSet[BeginsAnew] = WeakSet()
_BUSY: WeakSet[Busy] = WeakSet()
#: Open files that are of no use to a child, and with which it would keep the parent's locks.
_HANDLES: set[int] = set()


def begins_anew(thing: BeginsAnew) -> None:
    """Let something begin anew in every child, for as long as it is there."""
    _ANEW.add(thing)


def enter(thing: Busy) -> None:
    """Let this thread be inside something, as soon as no child is being begun: until it sets `busy` to 0."""
    thing.busy = get_ident()
    # Not the other way round: whoever forks shuts the gate, and looks who is busy then.
    if _GATE.is_shut:
        _wait(thing)


def lets_go(thing: Busy) -> None:
    """Let something that is entered begin anew in every child, which nobody may be inside of when that is begun."""
    _BUSY.add(thing)


def void_in_child(handle: int, *, is_over: bool = False) -> None:
    """Let children have nothing in place of an open file, from now on until it is over."""
    (_HANDLES.discard if is_over else _HANDLES.add)(handle)


def is_barred() -> bool:
    """Return whether SQLite cannot be used in this process, because of when it was forked off."""
    return _GATE.is_barred


def never_freed(*things: object) -> None:
    """See that some things outlive this process's Python: they would let go of what is the parent's when they went."""
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(things))
    _GATE.is_barred = True


def is_still() -> bool:
    """Return whether nobody was inside of anything when this child was begun, but for the thread that it has."""
    return _GATE.is_still


def _wait(thing: Busy) -> None:
    while _GATE.is_shut:
        thing.busy = 0
        with _GATE.lock:
            pass
        thing.busy = get_ident()


def _shut() -> None:
    if not _GATE.lock.acquire(timeout=_PATIENCE):
        # Another forks, and waits for us to come out.
        _GATE.is_still = False
        return
    _GATE.holder, _GATE.is_shut = get_ident(), True
    _GATE.is_still = _is_quiet()
    for _ in range(round(_PATIENCE / _PAUSE)):
        if _GATE.is_still:
            return
        sleep(_PAUSE)
        _GATE.is_still = _is_quiet()


def _is_quiet() -> bool:
    us = get_ident()
    try:
        return all(thing.busy in (0, us) for thing in list(_BUSY))
    except RuntimeError:
        # One was added meanwhile.
        return False


def _open() -> None:
    if _GATE.holder == get_ident():
        _GATE.holder, _GATE.is_shut = 0, False
        _GATE.lock.release()


def _begin_anew() -> None:
    _GATE.lock = threading.Lock()
    _GATE.holder, _GATE.is_shut = 0, False
    _void()
    for thing in [*_BUSY, *_ANEW]:
        thing.begin_anew()


def _void() -> None:
    handles = list(_HANDLES)
    _HANDLES.clear()
    with suppress(OSError):
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for handle in handles:
            # Not closed: whoever holds the number, in the thread that forked, will close it.
            os.dup2(nothing, handle, inheritable=False)
        os.close(nothing)


os.register_at_fork(before=_shut, after_in_parent=_open, after_in_child=_begin_anew)
