"""Whole lines put into a text and taken out again, with the line breaks the text uses."""

from __future__ import annotations

from collections.abc import Sequence


def newline_of(text: str) -> str:
    """Return the line break of a text."""
    return "\r\n" if "\r\n" in text else "\n"


def line_start(text: str, place: int) -> int:
    """Return where the line of a place begins."""
    return text.rfind("\n", 0, place) + 1


def line_end(text: str, place: int) -> int:
    """Return where the next line begins, or the text ends."""
    found = text.find("\n", place)
    return len(text) if found < 0 else found + 1


def insert(text: str, place: int, lines: Sequence[str]) -> str:
    """Return the text with lines at the beginning of a line, or at its end.

    Behind a last line that does not end there, they end as it did: without a line break.
    """
    newline = newline_of(text)
    if place == len(text) and text and not text.endswith("\n"):
        return text + newline + newline.join(lines)
    return text[:place] + "".join(line + newline for line in lines) + text[place:]


def append(text: str, lines: Sequence[str]) -> str:
    """Return the text with lines at its end, after an empty one where that can be taken out again."""
    whole = text.endswith("\n")
    return insert(text, len(text), ["", *lines] if whole else lines)


def cut(text: str, start: int, end: int, *, appended: bool = False) -> str:
    """Return the text without the lines from `start` to `end`: what `insert` or, if so, `append` has put there."""
    before = text[:start]
    shorter = before.removesuffix("\n").removesuffix("\r")
    unended = not text[start:end].endswith("\n")
    return (shorter if unended or (appended and shorter.endswith("\n")) else before) + text[end:]
