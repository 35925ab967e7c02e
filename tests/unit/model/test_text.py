from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.text import decode, encode

#: Characters that stand for single bytes, as text and as the bytes they would have been.
RESERVED = [chr(code) for code in (0xEF80, 0xEFBF, 0xEFFF)]
#: Bytes as they come: text, pieces of text cut in the middle, and noise.
RAW = st.one_of(
    st.binary(),
    st.text().map(str.encode),
    st.lists(st.sampled_from([b"\xc3", b"\xa9", b"\xed\xa0\x80", b"\xf4\x90", b"\xee\xbe\x80", b"a", b"\xff"])).map(
        b"".join
    ),
)


@given(RAW)
def test_any_bytes_come_back(raw: bytes) -> None:
    assert encode(decode(raw)) == raw


@given(RAW, RAW)
def test_different_bytes_never_become_the_same_text(one: bytes, other: bytes) -> None:
    assert (decode(one) == decode(other)) == (one == other)


@given(RAW)
def test_the_text_can_be_stored_anywhere(raw: bytes) -> None:
    text = decode(raw)
    assert msgspec.json.decode(msgspec.json.encode(text)) == text
    assert not any("\ud800" <= character <= "\udfff" for character in text)


@given(st.text())
def test_ordinary_text_is_left_as_it_is(text: str) -> None:
    if not any("\uef80" <= character <= "\uefff" for character in text):
        assert decode(text.encode()) == text
        assert encode(text) == text.encode()


@pytest.mark.parametrize("character", RESERVED)
def test_a_real_character_of_the_reserved_range_becomes_three(character: str) -> None:
    text = decode(f"a{character}b".encode())
    assert len(text) == 5
    assert encode(text) == f"a{character}b".encode()


def test_one_bad_byte_is_one_character() -> None:
    assert decode(b"caf\xe9") == "caf\uefe9"
    assert decode("café".encode()) == "café"


def test_what_python_itself_escaped_is_accepted_too() -> None:
    """os.listdir and os.environ give lone surrogates; they mean the same bytes."""
    assert encode("caf\udce9") == b"caf\xe9"
