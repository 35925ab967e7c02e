"""What the kernel writes into small files for everybody to read."""

from __future__ import annotations

import os

_ENOUGH = 65536
#: More pages than any of them has; what is no such file may not hold us up.
_MOST = 64


def read_told(path: str) -> bytes:
    """Return what stands in a file of /proc or /sys; b"" when there is none, or it is not ours to read. Never raises."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (OSError, ValueError):
        return b""
    try:
        parts: list[bytes] = []
        # As a rule a page at a time, however much is asked for.
        while (part := os.read(handle, _ENOUGH)) and len(parts) < _MOST:
            parts.append(part)
        return b"".join(parts)
    except OSError:
        # The process ended while it was asked about, or what is told here is switched off.
        return b""
    finally:
        os.close(handle)
