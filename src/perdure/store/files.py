"""Files nobody else can read, written so that a crash leaves the old one or the new one and never half of either."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from time import sleep

from perdure import errors
from perdure.store import forking

_TRIES, _PAUSE = 200, 0.05
TEMPORARY = ".tmp"
#: With less than this SQLite cannot even make the index of its log.
_ROOM = 65536


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


def write_atomically(
    path: str, data: bytes, *, aside: str | None = None, like: os.stat_result | None = None, mode: int = 0o600
) -> None:
    """Put `data` at `path`, for the owner alone unless `mode` says otherwise, in one step. Raises OSError.

    It survives a power cut. With `aside`, what was there gets that name, once nothing but renaming is left to
    do. With `like`, the file is as accessible as that one, to the same owner and group.
    """
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name}.{os.getpid()}-{os.urandom(4).hex()}{TEMPORARY}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            if like is not None and (like.st_uid, like.st_gid) != (os.geteuid(), os.getegid()):
                os.fchown(handle, like.st_uid, like.st_gid)
            os.fchmod(handle, mode if like is None else stat.S_IMODE(like.st_mode))
            file.write(data)
            file.flush()
            os.fsync(handle)
        if aside is not None:
            os.rename(path, aside)
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
    forking.void_in_child(handle)
    try:
        _lock(handle, directory)
        yield
    finally:
        # Not by closing it alone: a process forked off or started meanwhile may have it open as well.
        with suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)
        forking.void_in_child(handle, is_over=True)
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
    cause = error.strerror or str(error)
    return errors.StoreUnusable(f"{what} {path} cannot {verb}: {cause}.", path=path, cause=cause)


def obstacle(path: str) -> str | None:
    """Return why the file at `path`, or one beside it, cannot be written; None when there is no reason to be seen."""
    directory = os.path.dirname(path)
    try:
        disk = os.statvfs(directory)
    except OSError:
        return None
    if disk.f_flag & os.ST_RDONLY:
        return "the file system is read-only"
    # Some file systems do not count; and root may use what is held back from others.
    free = disk.f_bfree if os.geteuid() == 0 else disk.f_bavail
    if disk.f_blocks and free * disk.f_frsize < _ROOM:
        return "the disk is full"
    if disk.f_files and not disk.f_ffree:
        return "the disk has no room for another file"
    if not os.access(directory, os.W_OK | os.X_OK):
        return f"no file can be made in {directory}"
    return "the file is read-only" if os.path.exists(path) and not os.access(path, os.W_OK) else None


def damaged_name(path: str, now: datetime) -> str:
    """Return the name under which what is damaged at `path` is kept: one that nothing has yet."""
    wanted = f"{path}.damaged-{now.astimezone(UTC).strftime('%Y%m%dT%H%M%SZ')}"
    name, number = wanted, 1
    while os.path.lexists(name) or os.path.lexists(f"{name}-wal"):
        number += 1
        name = f"{wanted}.{number}"
    return name
