"""What is begun in an input is told from what agents show there themselves: their screens, and where their cursors were."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.drafts import draft

RULE = "─" * 60
WIDE = "x" * 57


@pytest.mark.parametrize(
    ("row", "x"),
    [
        (">", 2),
        ("❯\xa0", 2),
        ("            ❯ What can I do for you?", 14),
        ("› Ask Codex to do anything", 2),
        (" >   Type your message or @path/to/file", 3),
        ('     ┃  Ask anything… "Fix broken tests"', 8),
        ("│ > Try to begin          │", 4),
        ("you ▸ ", 6),
        # One that says nothing: no sign is where the cursor is.
        (" Enter to send · Ctrl+J newline", 3),
        ("  ? for shortcuts", 0),
        ("", 0),
    ],
)
def test_an_input_in_which_nothing_is_begun(row: str, x: int) -> None:
    for above in ((RULE,), ("Repo-map: disabled", RULE), ("", ""), ("> said before", "", "an answer", RULE)):
        lines = (*above, row, RULE, "  ⏵⏵ auto mode on")
        assert draft(lines, (x, len(above)), waits=True) == ""


@pytest.mark.parametrize(
    ("row", "x"),
    [
        ("> half typed", 12),
        ("❯\xa0half typed", 12),
        ("            ❯ half typed", 24),
        ("› half typed", 12),
        (" > half typed", 13),
        ("     ┃  half typed", 18),
        ("│ > half typed              │", 14),
        ("ask> half typed", 15),
        ("you ▸ half typed", 16),
        # What is behind the cursor may be anybody's.
        ("> half typed, or so it is suggested", 12),
    ],
)
def test_an_input_in_which_something_is_begun(row: str, x: int) -> None:
    for waits in (True, False):
        assert draft((RULE, row, RULE, "  ? for shortcuts"), (x, 1), waits=waits) == "half typed"


@pytest.mark.parametrize("lead", ["", "  ", "   "])
def test_a_draft_of_several_lines_is_one(lead: str) -> None:
    lines = (RULE, f"❯ half typed {WIDE}", f"{lead}{WIDE}", f"{lead}to the end", RULE)
    assert draft(lines, (len(lead) + 10, 3), waits=True) == f"half typed {WIDE} {WIDE} to the end"
    # While it works, the cursor may be where its answer comes, right below what it was told.
    assert draft(lines, (len(lead) + 10, 3), waits=False) == ""


def test_a_draft_that_fills_its_line_leaves_the_cursor_on_an_empty_one() -> None:
    full = f"> half typed {'x' * 47}"
    assert len(full) == len(RULE)
    assert draft((RULE, full, ">"), (2, 2), waits=True).startswith("half typed")
    assert draft((RULE, "> said before", ">"), (2, 2), waits=True) == ""
    assert draft((full, RULE, ">"), (2, 2), waits=True) == ""


def test_what_was_said_before_is_no_draft() -> None:
    assert draft(("> said before", "", "waiting for the model"), (21, 2), waits=True) == ""
    assert draft(("> said before", RULE, "  ready"), (7, 2), waits=True) == ""
    assert draft(("> said before", "", "an answer", ""), (0, 3), waits=True) == ""


def test_wide_letters_take_two_columns() -> None:
    assert draft(("> 漢字 and so on",), (6, 0), waits=True) == "漢字"


@given(st.lists(st.text(max_size=90), max_size=30), st.integers(-1, 200), st.integers(-1, 60), st.booleans())
def test_it_says_something_of_any_screen(lines: list[str], x: int, y: int, waits: bool) -> None:
    found = draft(lines, (x, y), waits=waits)
    assert found == found.strip()
