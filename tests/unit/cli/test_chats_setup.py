"""Chats as a table for people."""

from __future__ import annotations

import pytest

from perdure.chats.shown import chat_row
from perdure.cli.chats_setup import print_chats
from tests.builders import at
from tests.contract.store.chats import a_chat, a_source


def test_a_name_without_end_is_cut_for_people_and_whole_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    long = a_chat("c1", source=a_source("ann", user_name="n" * 200_000))
    chats = [long, *(a_chat(f"c{number}") for number in range(2, 20))]
    print_chats(chats, at(5))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) < 300
    assert [line.split()[0] for line in lines[2:]] == [chat.id for chat in chats]
    assert "DM with nnn" in lines[2]
    assert "n…" in lines[2]
    assert chat_row(long).where == f"DM with {'n' * 200_000}"


def test_a_name_as_long_as_a_title_may_be_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    name = "n" * 100
    print_chats([a_chat("c1", source=a_source("ann", chat_name=name, chat_type="group"))], at(5))
    assert f"group: {name} " in capsys.readouterr().out
