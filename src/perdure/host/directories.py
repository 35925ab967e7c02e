"""Directories that are there, for those that may not be."""

from __future__ import annotations

import os
import stat

from perdure.errors import PerdureError
from perdure.host.users import run_as
from perdure.model.text import encode
from perdure.model.user import User


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


def make_private(path: bytes) -> None:
    """Make a directory with all those above it that are missing, none of them for others. Raises OSError."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_private(os.path.dirname(path))
        os.mkdir(path, 0o700)


def make_for(user: User, path: str) -> None:
    """Make a directory that may be missing, as `user` and for them alone. Raises PerdureError."""

    def work() -> bytes:
        try:
            make_private(encode(path))
        except OSError as error:
            raise PerdureError(f"{path} cannot be made: {error.strerror or error}.") from error
        return b""

    if os.path.lexists(encode(path)):
        return
    if os.geteuid() == user.uid:
        work()
    else:
        run_as(user, work)


def is_directory(path: str) -> bool:
    """Say whether this is a directory that can be entered."""
    try:
        raw = encode(path)
        return stat.S_ISDIR(os.stat(raw).st_mode) and os.access(raw, os.X_OK)
    except (OSError, ValueError):
        return False
