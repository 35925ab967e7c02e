"""What was said, as people get to see it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from perdure.chats.shown import turn_row
from perdure.cli.chat_lines import turn_lines
from tests.contract.store.chats import a_turn

#: Put together here, so that no scanner takes this file for a leak.
KEY = "sk-" + "proj-" + "x9Y" * 12
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.text(), st.lists(_JSON, max_size=2))
def test_nothing_said_moves_a_cursor_or_passes_for_a_line_of_ours(
    content: object, role: str, calls: list[object]
) -> None:
    head, *lines = turn_lines(a_turn(content, role, position=7, tool_calls=tuple(calls)))
    assert head.startswith("[7] ")
    assert head.isprintable()
    for line in lines:
        assert line.startswith("    ")
        assert line.isprintable()


def test_lines_stay_lines_and_tabs_stay_apart() -> None:
    _, *lines = turn_lines(a_turn("one\r\n\ttwo\n\x1b[2Jthree\u202e"))
    assert lines == ["    one", "        two", "    \\x1b[2Jthree\\u202e"]


def test_texts_of_parts_are_shown_and_other_parts_in_short() -> None:
    parts = [{"type": "text", "text": "look"}, {"type": "image", "data": "A" * 5000}]
    _, first, second = turn_lines(a_turn(parts))
    assert first == "    look"
    assert len(second) < 500
    assert "5000" not in second
    assert "characters)" in second


def test_calls_of_tools_in_the_usual_forms() -> None:
    calls = (
        {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "tea"}'}},
        {"name": "read", "input": {"path": "notes"}},
        "odd",
    )
    _, *lines = turn_lines(a_turn(None, "assistant", tool_calls=calls))
    assert lines == ['    calls search {"q": "tea"}', '    calls read {"path": "notes"}', "    calls odd"]


def test_half_a_character_is_shown_and_breaks_nothing() -> None:
    _, line = turn_lines(a_turn({"half": "\ud83d"}))
    assert "\\ud83d" in line


def test_keys_and_tokens_are_shown_nowhere() -> None:
    turn = a_turn(
        f"my key is {KEY}",
        "assistant",
        tool_calls=(
            {"function": {"name": "login", "arguments": '{"password": "hunter2!"}'}},
            {"name": "run", "input": {"argv": ["curl", "--token", "hunter3!"], "env": {"API_KEY": "hunter4!"}}},
        ),
        attachments=({"url": "https://me:hunter5@example.org/x"},),
        extra={"session_token": "hunter6", "deep": [{"cookie": ["hunter7"]}], "prompt_tokens": 12, "otp": 778899},
        tokens=5,
    )
    for shown in (str(turn_row(turn)), "\n".join(turn_lines(turn))):
        assert KEY not in shown
        assert "hunter" not in shown
        assert "778899" not in shown
    row = turn_row(turn)
    assert row.tokens == 5
    assert row.extra["prompt_tokens"] == 12
