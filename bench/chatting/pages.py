"""What of a store is in the system's memory: all of it, or nothing, so that no run measures what happened before it."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Iterator

_AT_ONCE = 1 << 20
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.mmap.restype = ctypes.c_void_p
_LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
_LIBC.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_LIBC.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
_NOWHERE = ctypes.c_void_p(-1).value


def bring_in(directory: str) -> None:
    """Have everything in a directory in memory, as far as there is room."""
    for file in _files(directory):
        while os.read(file, _AT_ONCE):
            pass


def take_out(directory: str) -> None:
    """Have nothing in a directory in memory, where nobody has it open and the file system can do without."""
    for file in _files(directory):
        # What is not on disk yet stays.
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


def share_in(directory: str) -> float:
    """Return how much of a directory is in memory, 1 for all of it; to look brings nothing in."""
    found = [_pages(file, os.fstat(file).st_size) for file in _files(directory)]
    return sum(map(sum, found)) / max(1, sum(map(len, found)))


def _files(directory: str) -> Iterator[int]:
    for path, _, names in os.walk(directory):
        for name in names:
            file = os.open(os.path.join(path, name), os.O_RDONLY)
            try:
                yield file
            finally:
                os.close(file)


def _pages(file: int, size: int) -> list[bool]:
    """Whether each page of a file is in memory."""
    if size == 0:
        return []
    # Reading without waiting would tell as well, but has the system fetch what is not there.
    start = _LIBC.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file, 0)
    if start == _NOWHERE:
        raise OSError(ctypes.get_errno(), "a file cannot be mapped")
    try:
        told = ctypes.create_string_buffer(-(-size // mmap.PAGESIZE))
        if _LIBC.mincore(start, size, told):
            raise OSError(ctypes.get_errno(), "the system does not tell what is in memory")
        # Only the lowest bit of each byte means anything.
        return [bool(page & 1) for page in told.raw]
    finally:
        _LIBC.munmap(start, size)
