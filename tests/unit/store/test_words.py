"""Words as they are searched for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure import errors
from perdure.store import words
from perdure.store.rows import stamp
from perdure.store.words import Term, Wanted

ANY_TEXT = st.text(st.characters())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Roof-plan_v2.txt", ["roof", "plan", "v2", "txt"]),
        ("Caf\u00e9 na\u00efve STRASSE Stra\u00dfe", ["cafe", "naive", "strasse", "strasse"]),
        ("\u6771\u4eac x", ["\u6771", "\u4eac", "x"]),
        ("\ud800 \0 \u200b", []),
        ("x" * 300, ["x" * 100]),
    ],
)
def test_words_of_a_text(text: str, expected: list[str]) -> None:
    assert list(words.words_of(text)) == expected


def test_a_query() -> None:
    assert words.wanted('roof "new tiles" sla* OR clay -wood NOT glass') == Wanted(
        groups=(
            (Term(("roof",)),),
            (Term(("new", "tiles")),),
            (Term(("sla",), True), Term(("clay",))),
        ),
        without=(Term(("wood",)), Term(("glass",))),
    )


def test_a_query_as_both_databases_write_it() -> None:
    asked = words.wanted('a* OR "b c" d -e')
    assert asked.for_fts5 == '(("a" * OR "b c") AND ("d")) NOT "e"'
    assert asked.for_tsquery == "('a':* | 'b' <-> 'c') & ('d') & !('e')"


@pytest.mark.parametrize("query", ["", '"', '"""', "OR OR", "-", "- * '", "NOT x"])
def test_nothing_to_look_for(query: str) -> None:
    with pytest.raises(errors.UsageError):
        words.wanted(query)


@given(ANY_TEXT, ANY_TEXT)
def test_a_snippet_marks_words_that_stand_there(text: str, query: str) -> None:
    try:
        asked = words.wanted(query)
    except errors.UsageError:
        return
    terms = [term for group in asked.groups for term in group]
    shown, marks = words.snippet(text, terms)
    assert len(shown) <= 162
    wanted = [word for term in terms for word in term.words]
    for start, end in marks:
        (said,) = ["".join(words.words_of(shown[start:end]))]
        assert any(said == word or said.startswith(word) for word in wanted)


@given(st.lists(st.none() | ANY_TEXT, max_size=8), st.lists(st.sampled_from("abc"), min_size=1, max_size=3))
def test_every_text_has_its_weight(texts: list[str | None], asked: list[str]) -> None:
    found = words.weights(texts, [Term((word,)) for word in asked])
    assert len(found) == len(texts)
    assert all(weight >= 0 for weight in found)


def test_saying_it_more_often_or_more_briefly_counts_more() -> None:
    often, once, long = words.weights(["tile tile roof", "tile slate roof", "tile" + " roof" * 50], [Term(("tile",))])
    assert often > once > long


def test_a_very_long_text_fits_into_an_index() -> None:
    text = " ".join(str(number) for number in range(100_000))
    assert len(words.for_tsvector(text).encode()) < 1 << 20
    assert len(words.for_fts5(text).encode()) <= words.SEARCHABLE


EARLIEST, CLOSE_BY = datetime(2, 1, 1, tzinfo=UTC), datetime(2025, 12, 30, tzinfo=UTC)
ZONES = st.sampled_from([UTC, timezone(timedelta(hours=5, minutes=30)), timezone(timedelta(hours=-11))])
#: Most of them close by; some further away than anybody keeps a calendar for.
MOMENTS = st.builds(
    lambda first, minutes, zone: (first + timedelta(minutes=minutes)).astimezone(zone),
    st.sampled_from([CLOSE_BY, EARLIEST]),
    st.integers(0, 90_000) | st.integers(0, 7000 * 365 * 24 * 60),
    ZONES,
)


@given(MOMENTS, MOMENTS | st.none(), MOMENTS | st.none())
@example(
    datetime(2026, 1, 31, 23, 59, tzinfo=UTC), datetime(2026, 1, 31, 23, tzinfo=UTC), datetime(2026, 2, 1, tzinfo=UTC)
)
def test_whatever_was_said_between_two_moments_has_a_mark_of_the_time_between_them(
    at: datetime, since: datetime | None, until: datetime | None
) -> None:
    between = words.marks_between(since, until)
    shared = set(between) & set(words.marks_at(stamp(at)))
    assert len(between) == len(set(between)) <= words.MOST_MARKS
    hour = timedelta(hours=1)
    if (since is None or since <= at) and (until is None or at < until):
        assert shared
    elif 1970 < at.year < 2100 and (
        (since is not None and at < since - hour) or (until is not None and at > until + hour)
    ):
        assert not shared


def test_times_are_marked_like_no_word_and_no_role() -> None:
    marks = words.marks_at("2026-01-31T23:59:59.000000Z")
    assert marks == ("::2026", "::202601", "::20260131", "::2026013123")
    assert not set(marks) & {words.mark_of(role) for role in ("2026", ":2026", "::2026")}
    assert words.words_of("::2026 :2026") == ["2026", "2026"]
