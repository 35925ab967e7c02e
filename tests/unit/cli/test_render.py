"""What people and scripts get to see."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.render import age, counted, print_json, print_table, printable
from tests.builders import NOON


@given(st.text())
def test_printable_text_moves_no_cursor_and_loses_nothing(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    if text.isprintable():
        assert shown == text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(-5, "0 s ago"), (0, "0 s ago"), (59, "59 s ago"), (60, "1 min ago"), (7200, "2 h ago"), (200000, "2 d ago")],
)
def test_an_age_has_one_unit(seconds: int, words: str) -> None:
    assert age(NOON - timedelta(seconds=seconds), NOON) == words


def test_numbers_come_with_their_noun() -> None:
    assert [counted(number, "pane") for number in (0, 1, 2)] == ["0 panes", "1 pane", "2 panes"]


def test_json_is_one_line_even_of_what_is_no_text(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_json({"path": "a\udcffb", "more": [{"deep": "\udc80"}], "when": NOON, "number": 1})
    out = capfdbinary.readouterr().out
    assert out.count(b"\n") == 1
    answer = json.loads(out)
    assert answer["number"] == 1
    assert answer["path"] != answer["more"][0]["deep"]


def test_a_piped_table_is_cut_nowhere(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    print_table(["name", "path"], [["a", "/x" * 300], ["[bold]b[/bold]", None]])
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert "/x" * 300 in lines[2]
    assert lines[3].split() == ["[bold]b[/bold]"]
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("columns", [["name", "path"], ["name", "path", "size"]])
def test_what_can_be_spared_is_left_out_where_there_is_no_room(
    columns: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "20")
    # One that may be left out is not there in the first place.
    print_table(columns, [["n" * 12, "p" * 12, "s" * 12][: len(columns)]], whole=("name",), spare=("size", "path"))
    out = capsys.readouterr().out
    assert "n" * 12 in out
    assert "path" not in out
    assert "size" not in out
