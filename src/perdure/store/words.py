"""Words as they are searched for: the same ones whichever database has them, and a query that cannot be malformed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from math import log

from msgspec import Struct

from perdure import errors

#: Written without spaces: every character is a word of its own.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")
_MARKS = re.compile("[\u0300-\u036f]+")
_PIECE = re.compile(r'-?"[^"]*"\*?|\S+')
#: A longer word is cut: nobody looks for the end of it, and PostgreSQL does not take it.
_LONGEST = 100
_MOST_WORDS = 64
_QUERY_LENGTH = 2048
_AROUND = 80
#: Of a text that is too long to be read, in words.
_UNKNOWN_LENGTH = 10_000
#: How much of a turn can be searched: more does not fit into a row of PostgreSQL's.
SEARCHABLE = 250_000
#: The years that are told apart in the index, the first and the one behind the last; and what stands for all others.
_FIRST_YEAR, _LAST_YEAR = 1970, 2100
_LONG_AGO, _FAR_AHEAD = "::before", "::after"
#: The mark of no turn.
NEVER = "::never"
#: Of how many marks a time is made at most: hours, days and months at both ends, all years, and those of no year.
MOST_MARKS = 2 * (23 + 30 + 11) + _LAST_YEAR - _FIRST_YEAR + 2


class Term(Struct, frozen=True):
    """A word, or words that stand one after another."""

    words: tuple[str, ...]
    #: Whether the last of them may go on.
    prefix: bool = False


class Wanted(Struct, frozen=True, kw_only=True):
    """What is searched for: of each group at least one, and none of the others."""

    groups: tuple[tuple[Term, ...], ...]
    without: tuple[Term, ...] = ()

    @property
    def for_fts5(self) -> str:
        """The query as SQLite writes it."""
        groups = [" OR ".join(map(_for_fts5, group)) for group in self.groups]
        text = " AND ".join(f"({group})" for group in groups)
        return "".join([f"({text})", *(f" NOT {_for_fts5(term)}" for term in self.without)])

    @property
    def for_tsquery(self) -> str:
        """The query as PostgreSQL writes it."""
        groups = [" | ".join(map(_for_tsquery, group)) for group in self.groups]
        parts = [f"({group})" for group in groups] + [f"!({_for_tsquery(term)})" for term in self.without]
        return " & ".join(parts)


def wanted(query: str) -> Wanted:
    """Return what somebody wants: words, "phrases", beginnings*, alternatives with OR, and -words not to be there.

    Whatever else stands in it is taken for words. Raises `UsageError` when no word is left to look for.
    """
    groups: list[tuple[Term, ...]] = []
    without: list[Term] = []
    joins = excludes = False
    for piece in _PIECE.findall(query[:_QUERY_LENGTH])[:_MOST_WORDS]:
        if piece in ("AND", "OR", "NOT"):
            joins, excludes = piece == "OR", piece == "NOT"
            continue
        words = tuple(words_of(piece)[:_MOST_WORDS])
        if not words:
            continue
        term = Term(words, piece.endswith("*"))
        if excludes or piece.startswith("-"):
            without.append(term)
        elif joins and groups:
            groups[-1] += (term,)
        else:
            groups.append((term,))
        joins = excludes = False
    if not groups:
        raise errors.UsageError("There is no word to search for.")
    return Wanted(groups=tuple(groups), without=tuple(without))


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case and without accents."""
    return [word[:_LONGEST] for word in _WORD.findall(_folded(text))]


def for_fts5(text: str) -> str:
    """Return a text as SQLite is to index it."""
    return " ".join(words_of(_cut(text)))


def mark_of(role: str) -> str:
    """Return what SQLite indexes a role as: like no word, and nearly always like no other role."""
    return ":" + "".join(letter for letter in role.lower() if letter.isascii() and letter.isalnum())[:_LONGEST]


def marks_at(stamped: str) -> tuple[str, ...]:
    """Return what SQLite indexes the time of a turn as: its year, month, day and hour, like no word and no role."""
    year, month, day, hour = stamped[:4], stamped[5:7], stamped[8:10], stamped[11:13]
    if not _FIRST_YEAR <= int(year) < _LAST_YEAR:
        return (_LONG_AGO if int(year) < _FIRST_YEAR else _FAR_AHEAD,)
    return f"::{year}", f"::{year}{month}", f"::{year}{month}{day}", f"::{year}{month}{day}{hour}"


def marks_between(since: datetime | None, until: datetime | None) -> tuple[str, ...]:
    """Return marks of which every turn has one that was said from one moment up to another, and few others do."""
    low, high = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC), datetime(_LAST_YEAR, 1, 1, tzinfo=UTC)
    marks = []
    if since is None or since < low:
        marks.append(_LONG_AGO)
    if until is None or until > high:
        marks.append(_FAR_AHEAD)
    at = low if since is None or since < low else min(since, high).astimezone(UTC)
    end = high if until is None or until > high else max(until, low).astimezone(UTC)
    at = at.replace(minute=0, second=0, microsecond=0)
    while at < end:
        mark, at = _widest(at, end)
        marks.append(mark)
    return tuple(marks)


def _widest(at: datetime, end: datetime) -> tuple[str, datetime]:
    """The mark of the longest time that begins at an hour and is over by the end, or of the hour; and when it is over."""
    if at.hour == 0:
        next_month = (at.replace(day=28) + timedelta(days=4)).replace(day=1)
        if at.day == at.month == 1 and at.replace(year=at.year + 1) <= end:
            return f"::{at:%Y}", at.replace(year=at.year + 1)
        if at.day == 1 and next_month <= end:
            return f"::{at:%Y%m}", next_month
        if at + timedelta(days=1) <= end:
            return f"::{at:%Y%m%d}", at + timedelta(days=1)
    return f"::{at:%Y%m%d%H}", at + timedelta(hours=1)


def for_tsvector(text: str) -> str:
    """Return a text as PostgreSQL is to index it: its words and where they stand, and nothing it would parse."""
    places: dict[str, list[int]] = {}
    for place, word in enumerate(words_of(_cut(text)), 1):
        # More places, or higher ones, it does not count.
        if place < 1 << 14 and len(found := places.setdefault(word, [])) < 255:
            found.append(place)
        else:
            places.setdefault(word, [])
    return " ".join(f"'{word}':{','.join(map(str, found))}" if found else f"'{word}'" for word, found in places.items())


def weights(texts: Sequence[str | None], terms: Sequence[Term]) -> list[float]:
    """Return how well each of some texts, all of which match, answers to what was asked for (BM25).

    How rare a word is, is taken from these texts alone. One that is not known counts as a long one that says each once.
    """
    said = [None if text is None else words_of(text[:SEARCHABLE]) for text in texts]
    counts = [[1 if each is None else _count(each, term) for term in terms] for each in said]
    lengths = [_UNKNOWN_LENGTH if each is None else len(each) for each in said]
    usual = max(1.0, sum(lengths) / max(1, len(lengths)))
    having = [sum(1 for row in counts if row[place]) for place in range(len(terms))]
    rarity = [log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for n in having]
    return [
        sum(rare * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / usual)) for rare, n in zip(rarity, row, strict=True))
        for row, length in zip(counts, lengths, strict=True)
    ]


def _count(said: Sequence[str], term: Term) -> int:
    if len(term.words) == 1 and not term.prefix:
        return said.count(term.words[0])
    *before, last = term.words
    width = len(term.words)
    return sum(
        1
        for end in range(width - 1, len(said))
        if (said[end].startswith(last) if term.prefix else said[end] == last)
        and list(said[end - width + 1 : end]) == before
    )


def snippet(text: str, terms: Sequence[Term]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """Return some of a text around the first word that was asked for, and where in it such words stand."""
    found = [match.span() for match in _WORD.finditer(text[:SEARCHABLE]) if _is_asked_for(match[0], terms)]
    middle = found[0][0] if found else 0
    low, high = max(0, middle - _AROUND), min(len(text), middle + _AROUND)
    head, tail = "…" if low else "", "…" if high < len(text) else ""
    shift = len(head) - low
    marks = tuple((start + shift, end + shift) for start, end in found if low <= start and end <= high)
    # Nothing is made longer or shorter: the marks stay where they are.
    return head + re.sub(r"\s", " ", text[low:high]) + tail, marks


def _is_asked_for(word: str, terms: Sequence[Term]) -> bool:
    said = word.lower()[:_LONGEST] if word.isascii() else "".join(words_of(word))
    return any(
        said == each or (term.prefix and each is term.words[-1] and said.startswith(each))
        for term in terms
        for each in term.words
    )


def _cut(text: str) -> str:
    # By bytes, as the limit is; a character that is cut in two is left out.
    return text if len(text) * 4 <= SEARCHABLE else text.encode(errors="replace")[:SEARCHABLE].decode(errors="ignore")


def _folded(text: str) -> str:
    if text.isascii():
        return text.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text))
    return unicodedata.normalize("NFKC", bare).casefold()


def _for_fts5(term: Term) -> str:
    return f'"{" ".join(term.words)}"{" *" if term.prefix else ""}'


def _for_tsquery(term: Term) -> str:
    *before, last = (f"'{word}'" for word in term.words)
    return " <-> ".join([*before, f"{last}:*" if term.prefix else last])
