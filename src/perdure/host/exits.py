"""Being told when processes end that are not our children, and how they did, as far as that can be known."""

from __future__ import annotations

import fcntl
import os
import re
import select
import struct
import sys
from collections.abc import Hashable
from contextlib import suppress
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from perdure.host.kernel import read_told
from perdure.host.processes import is_alive

K = TypeVar("K", bound=Hashable)

# PIDFD_GET_INFO of linux/pidfd.h, with the structure as it first was: 64 bytes, what is told in the first eight, the
# exit code in the last four.
_GET_INFO = (3 << 30) | (64 << 16) | (0xFF << 8) | 11
_INFO_SIZE = 64
_INFO_EXIT = 1 << 3
# Behind the name in /proc/PID/stat.
_STATE, _START_TICKS, _EXIT_CODE = 0, 19, 49
_SWITCHES = re.compile(rb"^(?:non)?voluntary_ctxt_switches:\s*(\d+)$", re.MULTILINE)


class Exit(Struct, frozen=True, kw_only=True):
    """How a process ended. Both None: nobody could tell."""

    status: int | None = None
    signal: int | None = None


class _Watched(NamedTuple):
    pid: int
    start_ticks: int
    #: None where the kernel gives no descriptor of a process: then it has to be asked for.
    handle: int | None


class Exits(Generic[K]):
    """Processes whose ends are waited for, each under a key of the caller's. Not for several threads at once."""

    def __init__(self) -> None:
        self._watched: dict[K, _Watched] = {}
        self._keys: dict[int, K] = {}
        self._gone: dict[K, Exit] = {}
        # Says that a process was gone before anybody could wait for it.
        self._bell, self._rope = os.pipe()
        for end in (self._bell, self._rope):
            os.set_blocking(end, False)
        self._epoll = select.epoll() if sys.platform == "linux" else None
        if self._epoll is not None:
            self._epoll.register(self._bell, select.EPOLLIN)

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when `read` has something to tell."""
        return self._bell if self._epoll is None else self._epoll.fileno()

    def add(self, pid: int, start_ticks: int, key: K) -> None:
        """Wait for the end of this very process, in place of what the key stood for before.

        One that has ended, or whose number is another's by now, is told by the next `read`.
        """
        known = self._watched.get(key)
        if known is not None and known[:2] == (pid, start_ticks):
            return
        self.remove(key)
        # First the descriptor, then the question whose it is: if the number goes to another in between, the descriptor
        # is still of the one before, and tells its end.
        handle = _open(pid)
        if not is_alive(pid, start_ticks):
            self._gone[key] = _how(pid, start_ticks, handle)
            if handle is not None:
                os.close(handle)
            self._ring()
            return
        self._watched[key] = _Watched(pid, start_ticks, handle)
        if handle is not None and self._epoll is not None:
            self._keys[handle] = key
            self._epoll.register(handle, select.EPOLLIN)

    def remove(self, key: K) -> None:
        """Wait for it no longer; nothing when nobody did."""
        self._gone.pop(key, None)
        watched = self._watched.pop(key, None)
        if watched is not None:
            self._close(watched)

    def read(self) -> dict[K, Exit]:
        """Return the keys of the processes that have ended since the last time, each once. Never waits."""
        with suppress(BlockingIOError):
            while os.read(self._bell, 4096):
                pass
        found, self._gone = self._gone, {}
        if self._epoll is not None and self._keys:
            for handle, _ in self._epoll.poll(0, len(self._keys) + 1):
                if handle in self._keys:
                    key = self._keys[handle]
                    found[key] = self._ended(key)
        return found

    @property
    def needs_polling(self) -> bool:
        """Whether there are processes whose end nobody will tell, but for `poll`."""
        return any(watched.handle is None for watched in self._watched.values())

    def poll(self) -> dict[K, Exit]:
        """Look for the processes whose end nobody tells, and return those that have ended, each once."""
        unseen = {key: watched for key, watched in self._watched.items() if watched.handle is None}
        over = [key for key, watched in unseen.items() if not is_alive(watched.pid, watched.start_ticks)]
        return {key: self._ended(key) for key in over}

    def close(self) -> None:
        """Wait for nothing any more."""
        for key in tuple(self._watched):
            self.remove(key)
        if self._epoll is not None:
            self._epoll.close()
        os.close(self._bell)
        os.close(self._rope)

    def _ended(self, key: K) -> Exit:
        watched = self._watched.pop(key)
        how = _how(*watched)
        self._close(watched)
        return how

    def _close(self, watched: _Watched) -> None:
        if watched.handle is not None:
            self._keys.pop(watched.handle, None)
            if self._epoll is not None:
                # Not by closing alone: a child that was forked meanwhile has the descriptor too, and the end would be
                # told under its number, which by then is another process's.
                self._epoll.unregister(watched.handle)
            os.close(watched.handle)

    def _ring(self) -> None:
        with suppress(BlockingIOError):
            os.write(self._rope, b"!")


def how_ended(pid: int, start_ticks: int) -> Exit:
    """Return how a process ended that has not been reaped; of others, nothing is left to be known."""
    return _how(pid, start_ticks, None)


def switches(pid: int) -> int | None:
    """Return how often a process's first thread was given the processor or taken off it; None when it is gone.

    The same number twice: it did nothing in between. For a program of one thread, as tmux is, that is all it can do.
    """
    counted = _SWITCHES.findall(read_told(f"/proc/{pid}/status"))
    return sum(map(int, counted)) if counted else None


def _open(pid: int) -> int | None:
    """Return a descriptor of a process; None when it is gone, or the kernel gives none."""
    if sys.platform != "linux":
        return None
    try:
        return os.pidfd_open(pid)
    except (OSError, AttributeError, OverflowError):
        return None


def _how(pid: int, start_ticks: int, handle: int | None) -> Exit:
    """Ask both who may know: until it is reaped the process table does, and then, since Linux 6.15, the descriptor."""
    for code in (_code_told(handle), _code_left(pid, start_ticks), _code_told(handle)):
        if code is not None:
            return Exit(signal=code & 0x7F) if code & 0x7F else Exit(status=code >> 8 & 0xFF)
    return Exit()


def _code_told(handle: int | None) -> int | None:
    if handle is None:
        return None
    info = bytearray(_INFO_SIZE)
    struct.pack_into("Q", info, 0, _INFO_EXIT)
    try:
        fcntl.ioctl(handle, _GET_INFO, info, True)
    except OSError:
        return None
    (told,), (code,) = struct.unpack_from("Q", info), struct.unpack_from("i", info, _INFO_SIZE - 4)
    return int(code) if told & _INFO_EXIT else None


def _code_left(pid: int, start_ticks: int) -> int | None:
    fields = read_told(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) <= _EXIT_CODE or fields[_STATE] != b"Z" or int(fields[_START_TICKS]) != start_ticks:
        return None
    code = int(fields[_EXIT_CODE])
    # Of somebody else's process the kernel says 0 whatever it was.
    return code if code or _is_ours(pid) else None


def _is_ours(pid: int) -> bool:
    try:
        return os.stat(f"/proc/{pid}").st_uid == os.geteuid()
    except OSError:
        return False
