"""A chat as JSON lines, whole, cut off and forged."""

from __future__ import annotations

from pathlib import Path

import pytest

from perdure.chats.jsonl import is_export, lines_of, read_export
from perdure.errors import ImportFailed
from perdure.model.chat import Chat, CloseReason, Kinship, Source, Tokens, Transcript, Turn
from tests.builders import at

CHAT = Chat(
    id="20261115_083702_cab80001",
    key="agent:main:telegram:dm:99",
    source=Source(platform="telegram", chat_id="99", user_name="half \ud800"),
    opened_at=at(0),
    touched_at=at(9),
    closed_at=at(9),
    close_reason=CloseReason.ASKED,
    title="The roof",
    follows="before",
    kinship=Kinship.SUCCESSOR,
    tokens=Tokens(input=1, output=2),
    by_model={"m": Tokens(input=1, output=2)},
    turns=2,
    extra={"nested": [1, None]},
)
TURNS = (
    Turn(position=1, role="user", content="line\nline\u2028\0", at=at(1), attachments=({"path": "a"},)),
    Turn(position=2, role="assistant", content=[{"x": 1.5}], at=at(2), hidden=True, extra={"reasoning": "r"}),
    Turn(position=4, role="assistant", content=None, at=at(3), tool_calls=({"id": "c"},), tokens=3, model="m"),
)
TRANSCRIPT = Transcript(chat=CHAT.id, turns=TURNS, next=6)


def export(path: Path, lines: list[bytes]) -> str:
    (path / "chat.jsonl").write_bytes(b"".join(lines))
    return str(path / "chat.jsonl")


def test_what_was_written_is_read_back(tmp_path: Path) -> None:
    lines = list(lines_of(CHAT, TRANSCRIPT))
    assert is_export(lines[0])
    assert not is_export(lines[1])
    coming = read_export(export(tmp_path, lines))
    assert coming.own == CHAT
    words = coming.read()
    assert (words.turns, words.next, words.mishaps) == (TURNS, 6, ())


def test_one_that_was_cut_off_says_what_is_missing(tmp_path: Path) -> None:
    lines = list(lines_of(CHAT, TRANSCRIPT))
    words = read_export(export(tmp_path, [*lines[:2], lines[2][:-10]])).read()
    assert words.turns == TURNS[:1]
    assert words.next is None
    assert [each.what for each in words.mishaps] == [
        "it is no turn that could stand there",
        "1 of 3 turns are missing at its end",
    ]


def test_turns_out_of_place_are_left_out(tmp_path: Path) -> None:
    head, *turns = lines_of(CHAT, TRANSCRIPT)
    words = read_export(export(tmp_path, [head, turns[1], turns[0], turns[2]])).read()
    assert [turn.position for turn in words.turns] == [2, 4]
    assert len(words.mishaps) == 1


@pytest.mark.parametrize(
    "head", [b"", b"{}\n", b"no JSON\n", b'{"perdure": "chat", "version": 1}\n', b'{"perdure": "chat", "version": 2}\n']
)
def test_what_does_not_begin_with_a_chat_is_said_so(tmp_path: Path, head: bytes) -> None:
    with pytest.raises(ImportFailed):
        read_export(export(tmp_path, [head]))
