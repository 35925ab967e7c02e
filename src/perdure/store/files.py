"""Files nobody else can read, written so that a crash leaves the old one or the new one and never half of either."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from time import sleep

from perdure import errors

_TRIES, _PAUSE = 200, 0.05
TEMPORARY = ".tmp"


def private_directory(path: str) -> None:
    """See that there is such a directory; a new one is the owner's alone. One that is there keeps its mode."""
    if os.path.isdir(path):
        return
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        # A umask can take away, so the mode given above is not yet the one we want.
        os.chmod(path, 0o700)
    except OSError as error:
        raise cannot("The directory", path, "be made", error) from error


def private_file(path: str) -> None:
    """See that there is such a file; a new one is empty and the owner's alone. One that is there keeps its mode."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return
    except OSError as error:
        raise cannot("The file", path, "be made", error) from error
    with os.fdopen(handle, "wb"):
        os.fchmod(handle, 0o600)


def write_atomically(path: str, data: bytes) -> None:
    """Put `data` at `path`, for the owner alone, in one step that survives a power cut. Raises OSError."""
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}-{os.urandom(4).hex()}{TEMPORARY}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o600)
            file.write(data)
            file.flush()
            os.fsync(handle)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_directory(directory)


def sync_directory(path: str) -> None:
    """Make renames in a directory durable. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def locked(directory: str) -> Iterator[None]:
    """Hold a directory against everyone else who asks this way; gone with the process, whatever ends it."""
    try:
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise cannot("The directory", directory, "be opened", error) from error
    try:
        _lock(handle, directory)
        yield
    finally:
        os.close(handle)


def _lock(handle: int, directory: str) -> None:
    for _ in range(_TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sleep(_PAUSE)
        except OSError as error:
            raise cannot("The directory", directory, "be locked", error) from error
        else:
            return
    raise errors.StoreUnusable(f"Another process holds {directory} and does not let go.")


def cannot(what: str, path: str, verb: str, error: OSError) -> errors.StoreUnusable:
    """Return the sentence for a file operation that failed."""
    return errors.StoreUnusable(f"{what} {path} cannot {verb}: {error.strerror or error}.", path=path)
