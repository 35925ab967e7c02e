"""Titles of chats: clean, and counted on when a chat goes on under the same name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from perdure.errors import UsageError

TITLE_CHARACTERS = 100

#: What is not seen, or turns around what is: controls, zero-width characters, marks of direction, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
#: A number as it is given here: `#02` and `#0` are words like any other.
_NUMBERED = re.compile(r"(.*\S) #([1-9][0-9]{0,14})", re.DOTALL)


def clean_title(text: str) -> str | None:
    """Return a title on one line without anything unseen in it; None when nothing is left, a mistake when it is too long."""
    title = " ".join(_UNSEEN.sub("", text).split())
    if len(title) > TITLE_CHARACTERS:
        raise UsageError(f"A title has at most {TITLE_CHARACTERS} characters, and this one has {len(title)}.")
    return title or None


def base_and_number(title: str) -> tuple[str, int | None]:
    """Return `My Project` and 2 for `My Project #2`; the title itself and None when it has no number at its end."""
    found = _NUMBERED.fullmatch(title)
    return (found[1], int(found[2])) if found else (title, None)


def next_title(existing: Iterable[str], wanted: str) -> str:
    """Return a title for what follows under that name: `My Project`, then `My Project #2`, `My Project #3`, …

    It is none of the existing ones, and never too long: a long name is cut to make room for the number.
    """
    taken = set(existing)
    numbers: dict[str, int] = {}
    for each in taken:
        name, number = base_and_number(each)
        numbers[name] = max(numbers.get(name, 0), number or 1)
    base = base_and_number(wanted)[0][:TITLE_CHARACTERS].rstrip()
    if base not in numbers:
        return base
    counted = numbers[base] + 1
    while True:
        name = base[: TITLE_CHARACTERS - len(f" #{counted}")].rstrip()
        # A name that had to be cut may be another's, whose numbers are taken too.
        title = f"{name} #{counted}"
        if title not in taken and numbers.get(name, 0) < counted:
            return title
        counted = max(counted, numbers.get(name, 0)) + 1


def resolve(title: str, candidates: Iterable[str]) -> str | None:
    """Return which of the candidates is meant by a title; None for none.

    `My Project` is the one of `My Project #N` with the highest number, whatever order they were begun in; without
    numbered ones the title itself. A title that has a number is itself when there is such a one. Case counts.
    """
    named = set(candidates)
    if title in named and base_and_number(title)[1] is not None:
        return title
    numbered = [each for each in named if base_and_number(each)[0] == title and each != title]
    if numbered:
        return max(numbered, key=lambda each: base_and_number(each)[1] or 0)
    return title if title in named else None
