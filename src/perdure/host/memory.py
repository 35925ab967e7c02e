"""How much memory this process holds."""

from __future__ import annotations

import os


def resident_bytes() -> int | None:
    """Return how many bytes of memory this process holds at this moment, None where nobody tells."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
