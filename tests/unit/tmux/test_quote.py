"""What goes over the wire. Whether tmux reads it as meant is for tmux to say: tests/integration/test_quoting.py."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import PerdureError
from perdure.model.text import decode
from perdure.tmux.quote import LONGEST_LINE, LONGEST_WORD, line, literal, quote, unescaped


@given(st.binary(max_size=50).filter(lambda raw: b"\0" not in raw))
def test_a_quoted_word_is_printable_ascii_between_two_quotes(raw: bytes) -> None:
    quoted = quote(decode(raw))
    assert quoted[:1] == quoted[-1:] == b'"'
    assert all(0x20 <= byte <= 0x7E and byte not in b'"$~' for byte in quoted[1:-1])


def test_a_command_is_one_line() -> None:
    assert line(["rename-window", "", "a b\n;"]) == b'"rename-window" "" "a b\\012;"\n'


def test_a_nul_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


@pytest.mark.parametrize("words", [[], [""], ["", "x"]])
def test_a_line_that_would_detach_the_client_is_refused(words: list[str]) -> None:
    with pytest.raises(ValueError, match="name"):
        line(words)


def test_what_no_program_could_be_given_is_refused() -> None:
    assert len(quote("x" * LONGEST_WORD)) == LONGEST_WORD + 2
    with pytest.raises(PerdureError, match="131072 bytes"):
        quote("é" * ((LONGEST_WORD + 1) // 2))
    with pytest.raises(PerdureError, match="too long"):
        line(["new-window"] + ["x" * LONGEST_WORD] * (LONGEST_LINE // LONGEST_WORD + 1))


@pytest.mark.parametrize(
    ("text", "format"),
    [
        ("", ""),
        ("plain 100%", "plain 100%"),
        ("#(id)", "##(id)"),
        ("#", "##"),
        ("###{pid}", "######{pid}"),
        # A style is left alone by tmux, however many hashes stand before it.
        ("#[fg=red]", "#[fg=red]"),
        ("###[x", "###[x"),
        ("#[#S##,#", "#[##S####,##"),
    ],
)
def test_text_where_a_format_is_expanded(text: str, format: str) -> None:
    assert literal(text) == format


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        ("plain", "plain"),
        (r"\$HOME $5", "$HOME $5"),
        (r"a\\b", "a\\b"),
        (r"a\\\$HOME", "a\\$HOME"),
        (r"\033[1m\n\t\a\177", "\x1b[1m\n\t\a\x7f"),
        (r"\\n", "\\n"),
        (r"caf\351", decode(b"caf\xe9")),
        # Not tmux's own writing, and so left as it is.
        ("\\q\\", "\\q\\"),
    ],
)
def test_a_name_as_it_was_before_tmux_wrote_it_down(shown: str, name: str) -> None:
    assert unescaped(shown) == name
