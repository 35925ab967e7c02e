"""A person of this machine."""

from __future__ import annotations

from typing import NamedTuple


class User(NamedTuple):
    """An account, as the password database has it.

    Not a Struct: a save needs it before it can afford to import msgspec.
    """

    name: str
    uid: int
    gid: int
    home: str
