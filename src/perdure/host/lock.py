"""One at a time: a file that a process holds for as long as it is at work."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from perdure.errors import Refused
from perdure.host.clock import pause, ticking
from perdure.model.text import encode

#: What tells of whoever is refused that another was first.
AT_WORK = "is at work"
#: O_NOFOLLOW and O_NONBLOCK: the file may lie in somebody else's directory, and be a link or a fifo there.
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK


class Hold:
    """A file that is held."""

    def __init__(self, handle: int, path: str) -> None:
        self._handle = handle
        self._path = path

    def is_found(self) -> bool:
        """Return whether it is still what others find: somebody may have removed it, or put another in its place."""
        try:
            found = os.stat(encode(self._path))
        except OSError:
            return False
        return os.path.samestat(found, os.fstat(self._handle))


@contextmanager
def held(path: str, work: str) -> Iterator[Hold]:
    """Hold the file at `path`, made for the owner alone when it is missing, until the block ends or the process does.

    Raises `Refused` at once when anybody else holds it ("Another `work` is at work"), or when it cannot be held. No
    program that is started meanwhile keeps it; a fork of this process, which is still at the same work, does. The
    file stays: were it removed, somebody could hold the old one while another holds a new one.
    """
    handle = _opened(path)
    try:
        _lock(handle, path, work)
        _say(handle)
        yield Hold(handle, path)
    finally:
        os.close(handle)


@contextmanager
def held_within(path: str, work: str, timeout: float) -> Iterator[None]:
    """Hold the file as `held` does, once whoever else holds it has let go. Raises `Refused` when that takes too long."""
    until = ticking() + timeout
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(held(path, work))
                break
            except Refused:
                if ticking() >= until:
                    raise
                pause(0.02)
        yield


def _opened(path: str) -> int:
    try:
        handle = os.open(encode(path), _FLAGS, 0o600)
    except OSError as error:
        raise _cannot(path, error) from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Refused(f"{path} cannot be locked: it is not a regular file.")
    return handle


def _lock(handle: int, path: str, work: str) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        pid = _holder(handle)
        raise Refused(f"Another {work} {AT_WORK}{'' if pid is None else f' (pid {pid})'}.") from None
    except OSError as error:
        raise _cannot(path, error) from error


def _say(handle: int) -> None:
    # Only for the sentence others read: on a full disk the lock is as good without.
    with suppress(OSError):
        os.ftruncate(handle, 0)
        os.pwrite(handle, b"%d\n" % os.getpid(), 0)


def _holder(handle: int) -> int | None:
    """The process that says it holds the file; None when that one has gone: its successor has not said so yet."""
    said = os.pread(handle, 20, 0).strip()
    return int(said) if said.isdigit() and _is_alive(int(said)) else None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def _cannot(path: str, error: OSError) -> Refused:
    return Refused(f"{path} cannot be locked: {error.strerror or error}.")
