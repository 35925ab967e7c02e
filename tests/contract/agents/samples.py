"""Recordings of real agents, by program and version; paths and names in them are made up."""

from __future__ import annotations

import os
from collections.abc import Iterator

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "samples")


def read(version: str, name: str) -> bytes:
    """Return one recorded file."""
    with open(os.path.join(FOLDER, version, name), "rb") as file:
        return file.read()


def names(version: str, beginning: str) -> list[str]:
    """Return the recorded files whose names begin so."""
    return sorted(name for name in os.listdir(os.path.join(FOLDER, version)) if name.startswith(beginning))


def ends(length: int) -> Iterator[int]:
    """Yield where a line is cut: before each of its bytes."""
    yield from range(length)
