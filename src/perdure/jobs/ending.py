"""The last thing that is written down of a job: how it ended, so that it is whole or not there, and stays.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

import os

#: As it is called in the job's directory, where whoever writes it works.
ENDED = b"ended.json"
_RESERVE = b"ended.json.new"
_RESERVED = 512


def reserve() -> int:
    """Return a file with room for the end, taken while there is some: the disk may be full when it comes.

    Raises OSError.
    """
    handle = os.open(_RESERVE, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.write(handle, b" " * _RESERVED)
    return handle


def write_for_good(handle: int, text: bytes) -> None:
    """Write the end into its place, with the room that was taken for it or without (-1). Raises OSError.

    It is whole or not there, and survives a machine that stops.
    """
    if handle < 0:
        handle = reserve()
    os.pwrite(handle, text.ljust(_RESERVED), 0)
    os.fsync(handle)
    os.close(handle)
    os.rename(_RESERVE, ENDED)
    here = os.open(b".", os.O_RDONLY | os.O_CLOEXEC)
    os.fsync(here)
    os.close(here)


def code_of(status: int) -> int:
    """Return how a process ended as a shell says it."""
    return 128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def has_text(name: bytes) -> bool:
    """Say whether there is such a file, with something in it."""
    try:
        return os.stat(name).st_size > 0
    except OSError:
        return False


def remove(name: bytes) -> None:
    """Remove a file that may be gone."""
    try:
        os.unlink(name)
    except OSError:
        pass
