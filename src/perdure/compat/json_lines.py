"""Where in a JSON text a value stands, so that a person can be pointed to its line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from json import JSONDecoder

_SPACE = re.compile(r"[ \t\r\n]*")
_STEP = re.compile(r"\.(\w+)|\[(\d+)\]")
_DECODER = JSONDecoder()

#: Member names and list positions, outermost first.
Path = Sequence[str | int]


def path_of(dotted: str) -> Path:
    """Return the steps of a path such as `$.panes[3].pid`."""
    return [name or int(position) for name, position in _STEP.findall(dotted)]


def line_of(text: str, path: Path) -> int:
    """Return the line on which the value at `path` begins; of a missing one, the line of what should hold it.

    `text` has to be valid JSON.
    """
    at = _skip(text, 0)
    for step in path:
        # Of members with the same name the last one counts, as for every reader of JSON.
        found = [position for name, position in _members(text, at) if name == step]
        if not found:
            break
        at = found[-1]
    return text.count("\n", 0, at) + 1


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """Yield name and position of each value in the object or list that begins at `at`."""
    named = text[at] == "{"
    if not named and text[at] != "[":
        return
    count = 0
    at = _skip(text, at + 1)
    while text[at] not in "}]":
        name: str | int = count
        if named:
            name, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        yield name, at
        _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
        count += 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
