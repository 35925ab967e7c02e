"""What somebody has begun to type into an agent and not sent, as far as its screen tells. Pure.

Whatever is pasted there would be joined with it, and both sent as one. The cursor tells: agents leave it where the next letter comes,
also those that hide it and draw one of their own. What stands behind it may be a placeholder and says nothing.
"""

# ruff: noqa: RUF001
from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

#: What an input begins with: a frame's edge, a sign with or without a word before it, or both.
_EDGE = re.compile(r"\s*(?:[│┃║▌]\s*)*(?:[A-Za-z]{0,12} ?[>❯›»▸!](?=\s|$))?\s*")
#: Across which no input reaches.
_LINE = re.compile(r"\s*[─━╌═▔▁╭╰┌└].*")
#: So many lines a draft may have above its last.
_MOST = 40


def draft(lines: Sequence[str], cursor: tuple[int, int], *, waits: bool) -> str:
    """Return what is typed before the cursor (column and line, from 0), "" when nothing is, or when that cannot be told.

    `waits`: the agent waits for its next prompt, so that the cursor is in its input and nowhere else.
    """
    x, y = cursor
    if not 0 <= y < len(lines):
        return ""
    begun = _behind_sign(_cells(lines[y], x))
    if begun == "" and waits and y and len(lines[y - 1]) + 1 >= max(map(len, lines)):
        # Some begin each of their lines with the sign, and the one above is full.
        return _behind_sign(lines[y - 1]) or ""
    if begun is not None:
        return begun
    rest = [_cells(lines[y], x).strip()]
    if not waits or not rest[0]:
        return ""
    # The rest of a draft, if the beginning of one is above it.
    for above in reversed(lines[max(0, y - _MOST) : y]):
        if not above.strip() or _LINE.fullmatch(above):
            return ""
        begun = _behind_sign(above)
        if begun is not None:
            return " ".join((begun, *reversed(rest))) if begun else ""
        rest.append(above.strip())
    return ""


def _behind_sign(line: str) -> str | None:
    """What stands behind the beginning of an input, None where there is no such beginning."""
    edge = _EDGE.match(line)
    return line[edge.end() :].strip() if edge and edge[0].strip() else None


def _cells(line: str, width: int) -> str:
    """As much of a line as takes so many columns."""
    taken = 0
    for at, char in enumerate(line):
        if taken >= width:
            return line[:at]
        taken += 0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
    return line
