"""Unix sockets of our own: bound for us alone, one listener at a time, and who is at the other end."""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from perdure.errors import PerdureError, Refused
from perdure.host.directories import make_private
from perdure.host.lock import held
from perdure.model.text import encode

#: What fits into a socket's address everywhere, with the byte that ends it.
_LONGEST = 103
#: How many may wait to be let in.
_BACKLOG = 128


class Listener:
    """A socket that listens at `path`, for the owner alone, and does not block; and the lock beside it.

    The lock, which ends with its process, tells whether another process listens there, never an answer that does not
    come. What one that was killed left behind is replaced.
    """

    def __init__(self, path: str, work: str) -> None:
        """Raises `Refused` when another process listens there ("Another `work` is at work")."""
        self.path = path
        self._work = work
        self._holding = ExitStack()
        self.take_lock()
        try:
            self.socket = bound(path)
        except BaseException:
            self._holding.close()
            raise
        self._is_named = True

    def has_lock(self) -> bool:
        """Return whether others find the lock. Without it another process may listen there by now, or may begin to."""
        return self._hold.is_found()

    def has_name(self) -> bool:
        """Return whether there is a socket where this one was put: with the lock, nobody else's."""
        try:
            return self._is_named and stat.S_ISSOCK(os.stat(encode(self.path)).st_mode)
        except OSError:
            return False

    def take_lock(self) -> None:
        """Hold the lock, again where others find none of ours. Raises `Refused` when another process has it."""
        try:
            make_private(os.path.dirname(encode(self.path)))
        except OSError as error:
            where = os.path.dirname(self.path)
            raise PerdureError(f"{where} cannot be made: {error.strerror or error}.") from error
        with ExitStack() as stack:
            self._hold = stack.enter_context(held(f"{self.path}.lock", self._work))
            self._holding.close()
            self._holding = stack.pop_all()
        # As long as nobody had the lock anything can have been put there, also a copy of this one that leads nowhere.
        self._is_named = False

    def take_name(self) -> None:
        """Listen there again, in the place of whatever is there; only with the lock."""
        fresh = bound(self.path)
        # Nobody stands before the old one: it had no name for them to find.
        self.socket.close()
        self.socket = fresh
        self._is_named = True

    def close(self) -> None:
        """Listen no longer, and let others begin. What another process has put there stays."""
        self.socket.close()
        if self.has_lock():
            with suppress(OSError):
                os.unlink(encode(self.path))
        self._holding.close()


@contextmanager
def listening(path: str, work: str) -> Iterator[Listener]:
    """Listen at `path` until the block ends; the socket is removed then. Raises as `Listener` does."""
    listener = Listener(path, work)
    try:
        yield listener
    finally:
        listener.close()


def bound(path: str) -> socket.socket:
    """Return a socket that listens at `path`, for the owner alone, in the place of whatever is there; it does not block."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    # Under another name first: whoever connects meanwhile finds the old one or the new one, never one that is half made.
    fresh = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.{os.getpid()}")
    try:
        with suppress(FileNotFoundError):
            os.unlink(encode(fresh))
        # Before it has a name where that is enough, so that no moment of it is open to others.
        with suppress(OSError):
            os.fchmod(listener.fileno(), 0o600)
        with _address(fresh) as address:
            listener.bind(address)
        os.chmod(encode(fresh), 0o600)
        listener.listen(_BACKLOG)
        listener.setblocking(False)
        os.rename(encode(fresh), encode(path))
    except OSError as error:
        listener.close()
        with suppress(OSError):
            os.unlink(encode(fresh))
        raise PerdureError(f"Nobody can listen at {path}: {error.strerror or error}.") from error
    except BaseException:
        listener.close()
        raise
    return listener


def connected(path: str, *, timeout: float | None) -> socket.socket:
    """Connect to whoever listens at `path`. Raises OSError: ConnectionRefusedError or FileNotFoundError for nobody."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout)
    try:
        with _address(path) as address:
            connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def peer_uid(connection: socket.socket) -> int | None:
    """Return whose process is at the other end, as the kernel knows it; None where it does not tell."""
    try:
        if sys.platform == "darwin":
            # struct xucred: a version and the user's number come first.
            _, uid = struct.unpack_from("II", connection.getsockopt(0, 1, 76))
        else:
            _, uid, _ = struct.unpack("iII", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    except (OSError, AttributeError, struct.error):
        return None
    return int(uid)


@contextmanager
def _address(path: str) -> Iterator[bytes]:
    """The path as an address: one that is too long goes through its directory, opened, where the system allows."""
    raw = encode(path)
    if len(raw) <= _LONGEST:
        yield raw
        return
    if not sys.platform.startswith("linux"):
        raise Refused(f"{path} is too long for a socket; choose a shorter state directory.")
    directory = os.open(os.path.dirname(raw), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield b"/proc/self/fd/%d/%s" % (directory, os.path.basename(raw))
    finally:
        os.close(directory)
