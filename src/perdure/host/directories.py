"""Directories that are there, for those that may not be."""

from __future__ import annotations

import os
import stat

from perdure.model.text import encode


def nearest(path: str, home: str) -> str:
    """Return the directory itself when somebody can start there, else its nearest parent, else the home, else `/`.

    The root is nobody's nearest parent: what was below a directory that is gone altogether starts at home.
    """
    candidate = path
    while candidate not in ("", "/"):
        if is_directory(candidate):
            return candidate
        candidate = os.path.dirname(candidate.rstrip("/"))
    if path.startswith("/") and not path.strip("/"):
        return "/"
    return home if is_directory(home) else "/"


def is_directory(path: str) -> bool:
    """Say whether this is a directory that can be entered."""
    try:
        raw = encode(path)
        return stat.S_ISDIR(os.stat(raw).st_mode) and os.access(raw, os.X_OK)
    except (OSError, ValueError):
        return False
