"""Screens without the keys on them, which a terminal may have broken over several lines. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import pairwise

from perdure.model.secrets import mask_text

#: What is drawn around a text, or left beside it.
_MARGIN = " \t\u00a0|│┃║▌▎▏▐▕┆┊╎╏┇┋"
#: A program breaks a long word where its own margin is: so much of the room is filled then at least.
_FILLED = 0.8
#: Longer than any key.
_LONGEST = 4096
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----|\Z)")
# Its beginning has left the screen.
_PRIVATE_KEY_REST = re.compile(r"\A[\s\S]*-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----")


def without_keys(lines: Sequence[str], width: int) -> list[str]:
    """Return the lines of a screen so many columns wide, each as long as it was, with stars for what belongs to a key.

    A key may go on in the next line, where the terminal or a program in its box broke it.
    """
    if not lines:
        return []
    shown = [list(mask_text(line)) for line in _without_private_keys(lines)]
    for chain in _chains(lines, width):
        first, *rest = (lines[number][begin:end] for number, begin, end in chain)
        for gap in ("", " "):
            masked = mask_text(first + gap + "".join(rest))
            stars = iter(masked[: len(first)] + masked[len(first) + len(gap) :])
            for number, begin, end in chain:
                for place in range(begin, end):
                    if next(stars) == "*":
                        shown[number][place] = "*"
    return ["".join(line) for line in shown]


def _without_private_keys(lines: Sequence[str]) -> list[str]:
    text = "\n".join(lines)
    for pattern in (_PRIVATE_KEY, _PRIVATE_KEY_REST):
        text = pattern.sub(lambda match: re.sub(r"\S", "*", match[0]), text)
    return text.split("\n")


def _chains(lines: Sequence[str], width: int) -> Iterator[list[tuple[int, int, int]]]:
    """Yield from every line that may go on in the next: the lines it may go on in, each with where its text is.

    Behind a line that holds a space, a word that began before it does not go on.
    """
    places = [_text_place(number, line) for number, line in enumerate(lines)]
    goes_on = [_goes_on(lines, one, two, width) for one, two in pairwise(places)]
    for first, starts in enumerate(goes_on):
        if not starts:
            continue
        last, length = first + 1, width
        while last < len(goes_on) and goes_on[last] and length < _LONGEST:
            number, begin, end = places[last]
            if " " in lines[number][begin:end]:
                break
            length += end - begin
            last += 1
        yield places[first : last + 1]


def _text_place(number: int, line: str) -> tuple[int, int, int]:
    """The line's number, and where in it the text begins and ends, without what is drawn around it."""
    end = len(line.rstrip(_MARGIN))
    return number, min(end, len(line) - len(line.lstrip(_MARGIN))), end


def _goes_on(lines: Sequence[str], one: tuple[int, int, int], two: tuple[int, int, int], width: int) -> bool:
    """Say whether a word may have been broken here: nothing more fits, and the next line is filled no further."""
    if one[1] == one[2] or two[1] == two[2]:
        return False
    line, next_line = lines[one[0]], lines[two[0]]
    drawn = line.rstrip()
    room = _columns(drawn) - 1 if len(drawn) > one[2] else width
    filled = _columns(line[: one[2]])
    return filled >= room * _FILLED and filled + 1 >= _columns(next_line[: two[2]])


def _columns(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
