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

#: What people put around a title because it stood so in the help.
_PAIRS = {("<", ">"), ("[", "]"), ('"', '"'), ("'", "'")}


def clean_title(text: str) -> str | None:
    """Return a title on one line without anything unseen in it; None when nothing is left, a mistake when it is too long."""
    title = _on_one_line(text)
    if len(title) > TITLE_CHARACTERS:
        raise UsageError(f"A title has at most {TITLE_CHARACTERS} characters, and this one has {len(title)}.")
    return title or None


def base_and_number(title: str) -> tuple[str, int | None]:
    """Return `My Project` and 2 for `My Project #2`; the title itself and None when it has no number at its end."""
    found = _NUMBERED.fullmatch(title)
    return (found[1], int(found[2])) if found else (title, None)


def spellings(text: str) -> tuple[str, ...]:
    """Return which titles may be meant by what somebody typed, in the order in which they are looked for.

    As it stands, as it would be kept as a title, and both without what people put around a title because it stood so in
    the help. Nothing that is too long or empty.
    """
    found = [text.strip(), _kept(text)]
    found += [_kept(each[1:-1]) for each in found if len(each) > 1 and (each[0], each[-1]) in _PAIRS]
    return tuple(dict.fromkeys(filter(None, found)))


def cuts(title: str) -> tuple[str, ...]:
    """Return what a title becomes where it is cut to make room for a number; () when there is room."""
    rooms = (TITLE_CHARACTERS - len(f" #{number}") for number in (9, 99, 999, 9999))
    return tuple(dict.fromkeys(title[:room].rstrip() for room in rooms if room < len(title)))


def next_title(existing: Iterable[str], wanted: str, *, as_is: bool = False) -> str:
    """Return a title for what follows under that name: `My Project`, then `My Project #2`, `My Project #3`, …

    It is none of the existing ones, and never too long: a long name is cut to make room for the number. With `as_is`, a
    number at the end of the name was not given here, and is a part of it.
    """
    taken = set(existing)
    numbers: dict[str, int] = {}
    for each in taken:
        name, number = base_and_number(each)
        numbers[name] = max(numbers.get(name, 0), number or 1)
    base = (wanted if as_is else base_and_number(wanted)[0])[:TITLE_CHARACTERS].rstrip()
    if base not in numbers and base not in taken:
        return base
    counted = numbers.get(base, 1) + 1
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


def _kept(text: str) -> str:
    """A text as it would be kept as a title; nothing when it could not be one."""
    title = _on_one_line(text)
    return title if len(title) <= TITLE_CHARACTERS else ""


def _on_one_line(text: str) -> str:
    return " ".join(_UNSEEN.sub("", text).split())
