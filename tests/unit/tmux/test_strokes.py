"""What is typed is bytes, keys or a paste, and never a command."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.errors import UsageError
from perdure.tmux.control import Reply
from perdure.tmux.strokes import leaving_mode, objection, pasting, pressing, typing


@given(st.binary(max_size=5000))
def test_bytes_are_numbers(data: bytes) -> None:
    commands = typing("%1", data)
    assert b"".join(bytes.fromhex("".join(command[4:])) for command in commands) == data
    assert all(command[:4] == ("send-keys", "-t", "%1", "-H") for command in commands)


@pytest.mark.parametrize("key", ["Enter", "Escape", "C-c", "C-M-x", "S-Up", "F12", "a", ";", "BSpace", "M-Enter", "-"])
def test_keys_are_keys(key: str) -> None:
    assert pressing("%1", [key]) == [("send-keys", "-t", "%1", "--", key)]


@pytest.mark.parametrize("key", ["", "Entr", "rm", "F13", "C-", "é", "Enter\n", "C-C-C-C-c", " "])
def test_what_is_no_key_is_refused(key: str) -> None:
    with pytest.raises(UsageError):
        pressing("%1", ["Enter", key])


@given(st.text())
def test_a_paste_cannot_end_itself(text: str) -> None:
    (_, _, _, _, pasted), _ = pasting("%1", f"{text}\x1b[201~\x9b201~{text}")
    assert not any(each in pasted for each in "\x00\x03\x1b\x7f\x9b")
    assert [each for each in pasted if each in "\t\n\r"] == [each for each in text + text if each in "\t\n\r"]


@pytest.mark.parametrize(
    ("told", "why"),
    [
        ("%1|7|0|0|0|", None),
        ("%1|7|0|0|0|copy-mode", None),
        ("%1|7|0|0|0|tree-mode", "it is in tree-mode, where keys mean something else"),
        ("%1|7|1|0|0|", "its program has ended, and nobody reads what is typed"),
        ("%1|7|0|1|0|", "it was told to take no input"),
        ("%1|7|0|0|1|", "what is typed there goes to other panes of its window, too (synchronize-panes)"),
        ("|||||", "it is not there any more"),
    ],
)
def test_nothing_is_typed_where_nobody_reads(told: str, why: str | None) -> None:
    reply = Reply((told,), None)
    assert objection("%1", reply) == why
    assert bool(leaving_mode("%1", reply)) == told.endswith("mode")
