"""The supervisor's end of a job's socket: one request each, one answer, for the owner alone.

    write N\\n and N bytes     close\\n     resize ROWS COLUMNS\\n     kill SECONDS\\n     standing\\n

are answered by `ok` and numbers, or by `no` and a word. `control` is the other end.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

import _socket as socket
import os
import sys

#: A request's first line, and the most that is written at once.
_LINE, MOST = 100, 1 << 16
_BACKLOG = 64


def listen(name: bytes) -> socket.socket:
    """Listen at a name in the present directory, which is short enough whatever the directory. Raises OSError."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.unlink(name)
    except FileNotFoundError:
        pass
    listener.bind(name)
    os.chmod(name, 0o600)
    listener.listen(_BACKLOG)
    listener.setblocking(False)
    return listener


def admit(listener: socket.socket) -> int:
    """Return a connection of our own user's, which does not block; -1 when there is none, or it is another's."""
    try:
        handle, _ = listener._accept()  # type: ignore[attr-defined]
    except OSError:
        return -1
    connection = socket.socket(fileno=handle)
    try:
        peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if int.from_bytes(peer[4:8], sys.byteorder) in (os.geteuid(), 0):
            os.set_blocking(handle, False)
            return connection.detach()
    except OSError:
        pass
    connection.close()
    return -1


class Request:
    """What somebody asks for, as far as it has arrived."""

    __slots__ = ("_raw",)

    def __init__(self) -> None:
        self._raw = b""

    def take(self, part: bytes) -> tuple[list[bytes], bytes] | None:
        """Add what has arrived; return the words and what is to be written when that is all. ValueError: it is none."""
        self._raw += part
        line, newline, rest = self._raw.partition(b"\n")
        if not newline:
            if len(line) > _LINE:
                raise ValueError("no request")
            return None
        words = line.split()
        if not words:
            raise ValueError("no request")
        if words[0] != b"write":
            return words, b""
        size = int(words[1]) if len(words) == 2 else -1
        if not 0 <= size <= MOST:
            raise ValueError("no size")
        return (words, rest[:size]) if len(rest) >= size else None


def answer(connection: int, text: bytes) -> None:
    """Answer, and hang up; whoever asked may be gone."""
    try:
        os.write(connection, text + b"\n")
    except OSError:
        pass
    os.close(connection)
