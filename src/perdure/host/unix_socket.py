"""Unix sockets of our own: bound for us alone, one listener at a time, and who is at the other end."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from perdure.errors import PerdureError, Refused
from perdure.host.directories import make_private
from perdure.host.lock import held
from perdure.model.text import encode

#: What fits into a socket's address everywhere, with the byte that ends it.
_LONGEST = 103
#: How many may wait to be let in.
_BACKLOG = 128


@contextmanager
def listening(path: str, work: str) -> Iterator[socket.socket]:
    """Listen at `path`, for the owner alone, until the block ends; the socket does not block, and is removed then.

    Raises `Refused` when another process listens there ("Another `work` is at work"). What one that was killed left
    behind is replaced: a lock that ends with its process tells the two apart, never an answer that does not come.
    """
    try:
        make_private(os.path.dirname(encode(path)))
    except OSError as error:
        raise PerdureError(f"{os.path.dirname(path)} cannot be made: {error.strerror or error}.") from error
    with held(f"{path}.lock", work):
        listener = bound(path)
        try:
            yield listener
        finally:
            listener.close()
            with suppress(OSError):
                os.unlink(encode(path))


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
