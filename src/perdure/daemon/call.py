"""Asking the daemon, from a program that has nothing else to do meanwhile."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator, Iterator
from contextlib import contextmanager

from msgspec import UNSET

from perdure.daemon import protocol
from perdure.daemon.protocol import AnyRequest, Events, Line
from perdure.errors import NoDaemon, PerdureError, Refused, Unanswered
from perdure.host.clock import ticking
from perdure.host.unix_socket import connected, peer_uid
from perdure.model.event import Lagged, StoredEvent

#: How long connecting may take: a daemon lets everybody in at once.
_CONNECT = 5.0


def call(state_dir: str, request: AnyRequest, timeout: float | None) -> object:
    """Return the daemon's answer as plain data.

    Raises the error it answered with, `NoDaemon` when there is none or it ends before it answers, `Unanswered` when the
    time is up, and `Refused` when whoever listens is somebody else.
    """
    with _asked(state_dir, request) as lines:
        line = lines.next(timeout)
        if line is None:
            raise NoDaemon("The daemon ended before it answered.")
        if line.error is not UNSET:
            raise protocol.error_from(line.error)
        if line.ok is UNSET:
            raise PerdureError("The daemon answered something else than was asked.")
        return line.ok


def stream(state_dir: str, request: Events) -> Generator[StoredEvent | Lagged, None, None]:
    """Yield what has happened, and what happens, for as long as it is listened to; `Lagged` comes last.

    Raises what `call` raises; `NoDaemon` when the daemon ends. Whoever asks again behind the last number misses nothing.
    """
    with _asked(state_dir, request) as lines:
        while (line := lines.next(None)) is not None:
            if line.error is not UNSET:
                raise protocol.error_from(line.error)
            if line.event is not UNSET:
                yield line.event
            if line.lagged is not UNSET:
                yield line.lagged
                return
    raise NoDaemon("The daemon has ended.")


def daemon_there(state_dir: str) -> bool:
    """Return whether a daemon of ours, or root's, can be asked."""
    try:
        _connection(state_dir).close()
    except (NoDaemon, Refused):
        return False
    return True


class _Lines:
    """What comes from the daemon, a line at a time."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = bytearray()

    def next(self, timeout: float | None) -> Line | None:
        """Return the next line, None when the other end has closed. Raises `Unanswered` when the time is up."""
        until = None if timeout is None else ticking() + timeout
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            if searched > protocol.LONGEST_LINE:
                raise PerdureError("The daemon's answer is too long.")
            piece = self._received(until, timeout)
            if not piece:
                return None
            self._unread += piece
        raw = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return protocol.decode_line(raw)

    def _received(self, until: float | None, timeout: float | None) -> bytes:
        left = None if until is None else until - ticking()
        try:
            if left is not None and left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            return self._connection.recv(1 << 16)
        except TimeoutError:
            raise Unanswered(f"The daemon did not answer within {round(timeout or 0, 1):g} s.") from None
        except ConnectionError:
            return b""


@contextmanager
def _asked(state_dir: str, request: AnyRequest) -> Iterator[_Lines]:
    raw = protocol.encode_line(request)
    with _connection(state_dir) as connection:
        try:
            connection.sendall(raw)
        except TimeoutError:
            raise Unanswered("The daemon does not read what it is asked.") from None
        except ConnectionError:
            # It may have said why before it closed.
            pass
        yield _Lines(connection)


def _connection(state_dir: str) -> socket.socket:
    path = protocol.socket_path(state_dir)
    try:
        connection = connected(path, timeout=_CONNECT)
    except (FileNotFoundError, NotADirectoryError, ConnectionRefusedError):
        raise NoDaemon from None
    except TimeoutError:
        raise Unanswered("The daemon does not let anybody in.") from None
    except PermissionError:
        raise Refused(f"{path} is another user's.") from None
    except OSError as error:
        raise NoDaemon(f"The daemon at {path} cannot be reached: {error.strerror or error}.") from None
    uid = peer_uid(connection)
    if uid not in (0, os.geteuid()):
        connection.close()
        whose = "somebody" if uid is None else f"user {uid}"
        raise Refused(f"At {path} listens a process of {whose}, not of yours; nothing was asked.")
    return connection
