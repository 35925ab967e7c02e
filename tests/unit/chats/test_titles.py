from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.chats.titles import TITLE_CHARACTERS, base_and_number, clean_title, next_title, resolve
from perdure.errors import UsageError

NAMES = st.sampled_from(
    ["My Project", "my project", "A", "A #ideas", "100%", "a_b", "x" * 99, "x" * 97, "y" * 100, "Q #2 b"]
)
NUMBERS = st.one_of(st.integers(1, 12), st.integers(10**8, 10**15 - 1))
TITLES = st.one_of(NAMES, st.builds("{} #{}".format, NAMES, NUMBERS).filter(lambda title: len(title) <= 100))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("My Project", "My Project"),
        ("  My \t\n Project  ", "My Project"),
        ("a\x00b\x07c", "abc"),
        ("a\u200bb\ufeff", "ab"),
        ("\u202eabc\u2066d\u200f", "abcd"),
        ("a\u2028b\x85c", "a b c"),
        ('PR #438: it\'s "done" (50%)', 'PR #438: it\'s "done" (50%)'),
        ("日本語 🎉", "日本語 🎉"),
        ("", None),
        (" \n\u200b\x00 ", None),
        ("x" * 100, "x" * 100),
        (" " + "x" * 100 + "\u200b", "x" * 100),
    ],
)
def test_a_clean_title(text: str, expected: str | None) -> None:
    assert clean_title(text) == expected


def test_a_title_that_is_too_long_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="at most 100 characters, and this one has 101"):
        clean_title("x" * 101)


@given(st.one_of(st.text(max_size=120), st.lists(st.sampled_from([*"a \n\0\u200b\u202e\u2028\x85\x1f"])).map("".join)))
def test_a_title_is_one_line_of_what_can_be_seen(text: str) -> None:
    title = None
    try:
        title = clean_title(text)
    except UsageError:
        assert len(text) > TITLE_CHARACTERS
    if title is not None:
        assert clean_title(title) == title
        assert 0 < len(title) <= TITLE_CHARACTERS
        assert title == title.strip()
        assert len(title.splitlines()) == 1
        assert "Cc" not in map(unicodedata.category, title)


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("My Project #2", ("My Project", 2)),
        ("My Project #1", ("My Project", 1)),
        ("My Project #10", ("My Project", 10)),
        ("My Project", ("My Project", None)),
        ("My Project #ideas", ("My Project #ideas", None)),
        ("My Project #2b", ("My Project #2b", None)),
        ("My Project#2", ("My Project#2", None)),
        ("My Project #02", ("My Project #02", None)),
        ("My Project #0", ("My Project #0", None)),
        ("My Project #", ("My Project #", None)),
        ("My Project #\u0662", ("My Project #\u0662", None)),
        ("#2", ("#2", None)),
        (" #2", (" #2", None)),
        ("A #2 #3", ("A #2", 3)),
        ("A #" + "9" * 5000, ("A #" + "9" * 5000, None)),
    ],
)
def test_base_and_number(title: str, expected: tuple[str, int | None]) -> None:
    assert base_and_number(title) == expected


@pytest.mark.parametrize(
    ("existing", "wanted", "expected"),
    [
        ([], "My Project", "My Project"),
        (["My Project"], "My Project", "My Project #2"),
        (["My Project", "My Project #2", "My Project #3"], "My Project", "My Project #4"),
        (["My Project", "My Project #2"], "My Project #2", "My Project #3"),
        (["My Project #7"], "My Project", "My Project #8"),
        (["My Project #9", "My Project #10"], "My Project", "My Project #11"),
        (["My Project #ideas"], "My Project", "My Project"),
        (["my project"], "My Project", "My Project"),
        (["My_Project", "My%"], "MyXProject", "MyXProject"),
        (["x" * 100], "x" * 100, "x" * 97 + " #2"),
        (["x" * 100, "x" * 97 + " #2"], "x" * 100, "x" * 97 + " #3"),
    ],
)
def test_the_next_title(existing: list[str], wanted: str, expected: str) -> None:
    assert next_title(existing, wanted) == expected


@given(st.lists(TITLES, max_size=12), TITLES)
def test_the_next_title_is_new_clean_and_short_enough(existing: list[str], wanted: str) -> None:
    title = next_title(existing, wanted)
    assert title not in existing
    assert clean_title(title) == title


@given(TITLES, st.integers(1, 15))
def test_however_often_a_chat_goes_on_its_latest_is_found(wanted: str, times: int) -> None:
    existing: list[str] = []
    for _ in range(times):
        existing.append(next_title(existing, wanted))
    base, _ = base_and_number(wanted)
    if len(base) < 90:
        assert resolve(base, existing) == existing[-1]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("My Project", "My Project #10"),
        ("My Project #2", "My Project #2"),
        ("My Project #ideas", "My Project #ideas"),
        ("my project", "my project"),
        ("MY PROJECT", None),
        ("My%", None),
        ("My_Project", None),
        ("Other", "Other #3"),
        ("My Project #4", None),
        ("", None),
    ],
)
def test_the_latest_is_the_one_with_the_highest_number(title: str, expected: str | None) -> None:
    titles = [
        "My Project #9",
        "My Project #10",
        "My Project",
        "My Project #2",
        "My Project #ideas",
        "my project",
        "Other #3",
    ]
    assert resolve(title, titles) == expected
    assert resolve(title, reversed(titles)) == expected


@given(TITLES, st.lists(TITLES, max_size=10))
def test_what_is_found_is_what_was_asked_for(title: str, titles: list[str]) -> None:
    found = resolve(title, titles)
    if found is None:
        assert title not in titles
        assert all(base_and_number(each)[0] != title for each in titles)
    else:
        assert found in titles
        assert found == title or base_and_number(found)[0] == title
        if title in titles and base_and_number(title)[1]:
            assert found == title
        else:
            numbers = [number or 0 for base, number in map(base_and_number, titles) if base == title]
            assert (base_and_number(found)[1] or 0) == max([*numbers, 0]) or found == title
