"""What is said in the chats of a run: made up, the same every time, with words as unevenly common as people's are."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import accumulate, islice
from typing import NamedTuple

#: Changed whenever a store of so many turns would be another: those that were kept are then made anew.
EDITION = 2

_SEED = 20
_WORDS = 50_000
_CONSONANTS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [consonant + vowel for consonant in _CONSONANTS for vowel in _VOWELS]
#: How many different lengths of a turn there are, in words, the shortest first.
_SHORTEST, _LONGEST = 4, 44
_ROLES = ("user", "assistant", "user", "assistant", "tool")


class Said(NamedTuple):
    """A turn."""

    role: str
    text: str


def word(rank: int) -> str:
    """Return the word that is said more often than all but `rank` others; every rank has its own."""
    found = []
    rank += len(_SYLLABLES)
    while rank:
        rank, syllable = divmod(rank, len(_SYLLABLES))
        found.append(_SYLLABLES[syllable])
    return "".join(found)


def said(count: int) -> Iterator[Said]:
    """Yield so many turns; the first of more turns are the same."""
    dice = random.Random(_SEED)
    words = [word(rank) for rank in range(_WORDS)]
    weights = list(accumulate(1 / (rank + 2.7) for rank in range(_WORDS)))
    for place in range(count):
        length = dice.randint(_SHORTEST, _LONGEST)
        yield Said(_ROLES[place % len(_ROLES)], " ".join(dice.choices(words, cum_weights=weights, k=length)))


def pairs(count: int) -> list[str]:
    """Return words that were said one after the other at least once."""
    return [" ".join(each.text.split()[1:3]) for each in islice(said(count * 7), 0, None, 7)]
