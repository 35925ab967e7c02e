"""Recordings of real agents, by program and version; paths and names in them are made up."""

from __future__ import annotations

import os
from collections.abc import Iterator

#: What stands for nothing but itself wherever text stands.
_PLAIN = b" -./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")


def read(version: str, name: str) -> bytes:
    """Return one recorded file."""
    with open(os.path.join(FOLDER, version, name), "rb") as file:
        return file.read()


def names(version: str, beginning: str) -> list[str]:
    """Return the recorded files whose names begin so."""
    return sorted(name for name in os.listdir(os.path.join(FOLDER, version)) if name.startswith(beginning))


def ends(line: bytes) -> Iterator[int]:
    """Yield where a line is cut: before each of its bytes, but for those in the midst of letters, digits and the like.

    A reader that copes with a cut behind the first two of them and before the last copes with all between.
    """
    yield from (end for end in range(len(line)) if line[max(0, end - 2) : end + 1].translate(None, _PLAIN))
