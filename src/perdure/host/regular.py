"""Opening what somebody names as a file, and is one."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO


def open_regular(path: str) -> BinaryIO:
    """Open a regular file to be read. Raises OSError, for a device or a pipe too: these may have no end, or no beginning."""
    # Not waiting for whoever might be at the other end of a pipe.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise OSError(0, "it is not a regular file", path)
    return os.fdopen(handle, "rb")
