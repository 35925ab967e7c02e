from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.jobs.keeping import marked
from perdure.jobs.reading import log_of, since, stretches_of
from perdure.model.job import Output
from tests.contract.store.jobs import a_job

STREETS = "Größe €100 𝄞\n" * 3


def printed(directory: str, data: bytes, start: int = 0) -> str:
    """Let a job have printed something, from a place on."""
    with open(os.path.join(directory, f"out.{start:020d}"), "wb") as file:
        file.write(data)
    return directory


@given(cuts=st.lists(st.integers(0, len(STREETS.encode())), max_size=6))
def test_whenever_it_is_asked_no_character_is_torn_and_none_is_lost(cuts: list[int]) -> None:
    directory = os.environ["HOME"]
    raw, at, texts = STREETS.encode(), 0, []
    for cut in [*sorted(cuts), len(raw)]:
        found = since(printed(directory, raw[:cut]), at, 1000, is_over=cut == len(raw))
        at = found.end
        texts.append(found.text)
        assert not found.truncated
    assert "".join(texts) == STREETS


def test_of_too_much_the_last_is_given_from_a_whole_character_on() -> None:
    directory = printed(os.environ["HOME"], "ä".encode() * 100)
    found = since(directory, 0, 11, is_over=True)
    assert (found.text, found.end, found.truncated) == ("ä" * 5, 200, True)
    assert since(directory, 190, 11, is_over=True).truncated is False
    assert since(directory, 200, 11, is_over=True).text == ""


def test_what_is_no_text_is_shown_as_such() -> None:
    assert since(printed(os.environ["HOME"], b"a\xff\xfeb"), 0, 100, is_over=True).text == "a\ufffd\ufffdb"


def test_half_a_character_at_the_end_is_given_once_nothing_more_comes() -> None:
    directory = printed(os.environ["HOME"], b"a\xe2\x82")
    assert since(directory, 0, 100, is_over=False).text == "a"
    assert since(directory, 1, 100, is_over=True).text == "\ufffd"


def test_what_is_not_kept_any_more_is_said_to_be_missing() -> None:
    directory = printed(os.environ["HOME"], b"later\n", 1000)
    found = since(directory, 0, 5000, is_over=False)
    assert (found.text, found.truncated) == ("later\n", True)
    printed(directory, b"last\n", 2000)
    assert since(directory, 0, 5000, is_over=False).text == "later\nlast\n"
    assert since(directory, 1000, 5000, is_over=False).truncated


def test_nothing_printed_is_nothing() -> None:
    found = since(os.environ["HOME"], 0, 100, is_over=False)
    assert (found.text, found.end, found.truncated) == ("", 0, False)


def log(
    offset: int | None = None, limit: int | None = None, tail: int | None = None, most: int = 1000
) -> tuple[int, str, bool]:
    directory = printed(os.environ["HOME"], b"".join(b"line %d\n" % number for number in range(10)))
    found = log_of(a_job(), directory, offset=offset, limit=limit, tail=tail, most=most)
    assert found.total == 10
    return found.first, found.printed.text, found.printed.truncated


def test_lines_are_counted_from_the_first_or_from_the_last() -> None:
    assert log(offset=2, limit=2) == (2, "line 2\nline 3\n", False)
    assert log(tail=1) == (9, "line 9\n", False)
    assert log(offset=8) == (8, "line 8\nline 9\n", False)
    assert log(offset=99) == (99, "", False)
    assert log(tail=0)[1] == ""
    assert log()[1].count("\n") == 10


def test_of_too_many_bytes_the_first_are_given_from_an_offset_on_and_else_the_last() -> None:
    assert log(offset=0, most=14) == (0, "line 0\nline 1\n", True)
    assert log(most=14) == (8, "line 8\nline 9\n", True)


@pytest.mark.parametrize("offset", [0, 7, 40])
def test_lines_that_are_no_longer_kept_are_said_to_be_missing_and_none_is_given_by_half(offset: int) -> None:
    # 40 lines ended before it; the rest of line 40 is kept, its beginning is not.
    directory = printed(os.environ["HOME"], b"alf\nline 41\nline 42\n", 1000)
    with open(os.path.join(directory, f"err.{1000:020d}"), "wb") as file:
        file.write(marked(40, 0) + marked(1001, 1006))
    found = log_of(a_job(), directory, offset=offset, limit=3, tail=None, most=500)
    assert (found.first, found.total, found.printed.truncated) == (41, 43, True)
    assert found.printed.text == "line 41\nline 42\n"
    assert list(found.stretches) == [(True, b"li"), (False, b"ne 41\nline 42\n")]
    one = log_of(a_job(), directory, offset=offset, limit=1, tail=None, most=500)
    assert (one.printed.text, one.printed.truncated) == ("line 41\n", True)
    whole = log_of(a_job(), directory, offset=41, limit=3, tail=None, most=500)
    assert (whole.first, whole.printed.text, whole.printed.truncated) == (41, "line 41\nline 42\n", False)
    assert log_of(a_job(), directory, offset=None, limit=None, tail=50, most=500).printed.text == whole.printed.text


def test_the_rest_of_the_only_line_is_better_than_nothing() -> None:
    directory = printed(os.environ["HOME"], b"alf a line", 1000)
    found = log_of(a_job(), directory, offset=0, limit=3, tail=None, most=500)
    assert (found.printed.text, found.printed.truncated) == ("alf a line", True)


@given(
    data=st.binary(max_size=20),
    ends=st.lists(st.integers(0, 20), max_size=6).map(lambda numbers: sorted(set(numbers))),
)
def test_stretches_are_the_piece(data: bytes, ends: list[int]) -> None:
    errors = tuple((a, min(b, len(data))) for a, b in zip(ends[::2], ends[1::2], strict=False) if a < len(data))
    found = list(stretches_of(Output(start=0, data=data, end=len(data), errors=errors)))
    assert b"".join(part for _, part in found) == data
    assert sum(len(part) for is_error, part in found if is_error) == sum(b - a for a, b in errors)
