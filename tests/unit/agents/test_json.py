from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._json import count, decode_object, one_line


@given(st.binary())
def test_no_bytes_raise(raw: bytes) -> None:
    assert decode_object(raw) is None or isinstance(decode_object(raw), dict)


@pytest.mark.parametrize("raw", [None, b"", b"[1]", b"{", b'{"a":"\xff"}', b"[" * 100_000])
def test_what_is_no_object_is_none(raw: bytes | None) -> None:
    assert decode_object(raw) is None


def test_one_line_is_one_line() -> None:
    assert one_line(" a\n\tb\x00\x1bc ") == "a b c"
    assert one_line("x" * 300) == "x" * 199 + "…"
    assert one_line("x" * 200) == "x" * 200
    assert one_line(" \n") is None
    assert one_line(None) is None


@given(st.text())
def test_one_line_never_exceeds_its_limit(text: str) -> None:
    line = one_line(text, 20)
    assert line is None or (0 < len(line) <= 20 and line.isprintable())


def test_only_numbers_of_things_count() -> None:
    assert [count(value) for value in (3, True, -1, "3", None, 2.5)] == [3, 0, 0, 0, 0, 0]
