from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from perdure.model.text import visible
from perdure.restore.replay import harmless, replayed

NOW = datetime(2026, 11, 15, 17, 40, tzinfo=UTC)
SAVED = datetime(2026, 11, 15, 17, 31, tzinfo=UTC)
MARKER = "\x1b[2m── restored 2026-11-15 17:40 · saved 17:31 ──\x1b[m\n"
PLAIN = "\x1b[m\x1b]8;;\x1b\\\n"

ALLOWED = re.compile(r"\x1b\[[0-9;:]*m|\x1b\]8;[^\x00-\x1f\x7f-\x9f]*(?:\x1b\\|\x07)|[\n\t]")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")

#: Pieces of what terminals are sent, whole and cut.
PIECES = st.one_of(
    st.text(max_size=5).map(str.encode),
    st.binary(max_size=5),
    st.sampled_from(
        "\x1b \x1b[ \x1b[31m \x1b[38:2::1:2:3m \x1b[2J \x1b[6n \x1b[?1049h \x1b]0;title\x07 \x1b]52;c;aGk=\x1b\\ \x1b]8;; "
        "\x1b]8;id=1;http://x\x1b\\ \x1b\\ \x07 \x1bPtmux;\x1b\\ \x1bc \x1b(0 \x1b]8;;a\x9cb\x1b\\ \x9b2J \x08 \r \r\n \n \x00".split(
            " "
        )
    ).map(str.encode),
)


def show(scrollback: bytes | None, *said: str, saved_at: datetime = SAVED, width: int = 80) -> str | None:
    shown = replayed(scrollback, said, saved_at=saved_at, now=NOW, width=width)
    return None if shown is None else shown.decode()


def test_nothing_to_show_is_nothing_to_print() -> None:
    for nothing in (None, b"", b"\n\n", b"  \n\x1b[31m\x1b[m\n"):
        assert show(nothing) is None


def test_a_marker_follows_what_was_there() -> None:
    assert show(b"$ make\n\x1b[32mok\x1b[39m\n\n   \n\n") == f"$ make\n\x1b[32mok\x1b[39m{PLAIN}{MARKER}"


def test_sentences_come_last_and_cannot_steer_the_terminal() -> None:
    assert (
        show(b"$ top\n", "Was running: top\x1b[2J", "a\nb") == f"$ top{PLAIN}{MARKER}Was running: top\\x1b[2J\na\\nb\n"
    )


def test_sentences_alone_need_no_marker() -> None:
    assert show(None, "The directory is gone.") == "The directory is gone.\n"


def test_another_day_is_named() -> None:
    shown = show(b"x", saved_at=SAVED - timedelta(days=1))
    assert shown is not None
    assert "saved 2026-11-14 17:31 ──" in shown


def test_a_marker_never_wraps() -> None:
    for width in range(1, 80):
        shown = show(b"x", width=width)
        assert shown is not None
        assert len(re.sub(r"\x1b\[[0-9]*m", "", shown.split("\n")[1])) <= width


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("a\x1b[1;38:2::1:2:3mb\x1b[0m", "a\x1b[1;38:2::1:2:3mb\x1b[0m"),
        ("\x1b]8;id=1;http://x/?a=b;c\x1b\\link\x1b]8;;\x07", "\x1b]8;id=1;http://x/?a=b;c\x1b\\link\x1b]8;;\x07"),
        ("a\x1b[2Jb\x1b[?1049hc\x1b[6nd\x1b[10;2He", "abcde"),
        ("a\x1b]0;title\x07b\x1b]52;c;aGk=\x1b\\c", "abc"),
        ("a\x1bPtmux;x\x1b\\b\x1b_apc\x1b\\c", "abc"),
        ("a\x1b(0b\x1bcc\x1b7d\x1bMe", "abcde"),
        ("a\x1b]0;never ended", "a]0;never ended"),
        ("a\x1b]8;;http://x\nb", "a]8;;http://x\nb"),
        ("a\x1b[31", "a[31"),
        ("a\x1b", "a"),
        ("a\x1b\x1b[2Jb", "ab"),
        ("a\x9b2Jb\x07\x08\x7fc\r\nd\te", "a2Jbc\nd\te"),
        ("a\x1b]8;;x\x9cy\x1b\\b", "a]8;;xyb"),
    ],
)
def test_only_colours_and_links_reach_the_terminal(sent: str, kept: str) -> None:
    assert harmless(sent.encode()) == kept


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert harmless(b"caf\xe9 \x9b2J") == "caf\ufffd \ufffd2J"


@given(st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.text(max_size=8), max_size=2))
@example(b"\x1b\x1b]8;;\x1b[2J\x1b\\", [])
def test_whatever_was_captured_nothing_else_is_acted_upon(scrollback: bytes, said: list[str]) -> None:
    shown = show(scrollback, *said)
    if shown is not None:
        assert not CONTROL.search(ALLOWED.sub("", shown))
        assert shown.endswith("\n")
    once = harmless(scrollback)
    assert harmless(once.encode()) == once


@given(
    st.lists(
        st.text(st.characters(codec="utf-8").filter(str.isprintable), max_size=8) | st.just("\x1b[31m"), max_size=8
    )
)
def test_what_can_be_read_is_kept_in_order(pieces: list[str]) -> None:
    assert harmless("\n".join(pieces).encode()) == "\n".join(pieces)


@given(st.text())
def test_a_sentence_is_one_printable_line(text: str) -> None:
    assert visible(text).isprintable()
    assert not text.isprintable() or visible(text) == text


def test_a_byte_that_is_no_text_is_said_as_a_byte() -> None:
    assert visible("caf\uefe9") == "caf\\xe9"
