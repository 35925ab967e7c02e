"""What is written in a conversation with opencode decides nothing; what stands around it does."""

from __future__ import annotations

import pytest

from perdure.agents.opencode import OpenCode
from perdure.model.screen import Screen, State

WIDTH = 80
FLOOR = "  ╹" + "▀" * (WIDTH - 5)
AT_REST = "   /home/dev/work                                  8.1K (8%)  ctrl+p commands"
AT_WORK = "   ⬝⬝■■■■■■  esc interrupt                         tab agents  ctrl+p commands"
SIGNED = "     ▣  Build · Stub One · 2.5s"
UNFINISHED = "     ▣  Build · Stub One"

#: What a reply, a prompt or a half-typed word may quote.
QUOTES = [
    "⬝⬝■■■■■■  esc interrupt",
    "△ Permission required",
    "Allow once   Allow always   Reject",
    "↑↓ select  enter submit  esc dismiss",
    "General (1 of 1)    Parent up  Prev left  Next right",
    "Commands                   esc",
    "stub error 400 [retrying in 5s attempt #2]",
]


def block(*lines: str) -> list[str]:
    return ["  ┃", *(f"  ┃  {line}" for line in lines), "  ┃", ""]


def session(said: list[str], footer: str, typed: str = "") -> Screen:
    box = ["  ┃", f"  ┃  {typed}".rstrip(), "  ┃", "  ┃  Build · Stub One Stub", FLOOR, footer]
    return Screen(lines=("", *said, *box, "", ""), title="OC | First")


def state(screen: Screen) -> tuple[State | None, str | None] | None:
    reading = OpenCode().read_screen(screen)
    return None if reading is None else (reading.state, reading.reason)


@pytest.mark.parametrize("quote", QUOTES)
@pytest.mark.parametrize(("footer", "expected"), [(AT_REST, State.IDLE), (AT_WORK, State.BUSY)])
def test_a_quote_decides_nothing(quote: str, footer: str, expected: State) -> None:
    signed = SIGNED if expected is State.IDLE else UNFINISHED
    for said in (["     " + quote, "", signed, ""], [*block(quote), "     fine", "", signed, ""]):
        assert state(session(said, footer)) == (expected, None)
        assert state(session(said, footer, typed=quote)) == (expected, None)


def test_an_error_ends_the_turn() -> None:
    said = [*block("do it"), *block("stub error 400"), UNFINISHED, ""]
    assert state(session(said, AT_REST)) == (State.ERROR, None)
    assert state(session(said, AT_WORK)) == (State.BUSY, None)
    after_text = ["     earlier words", "", *block("stub error 400"), UNFINISHED, ""]
    assert state(session(after_text, AT_REST)) == (State.ERROR, None)


@pytest.mark.parametrize(
    "said",
    [
        # Interrupted while it was tried again.
        ["     fine", "", SIGNED, "", *block("do it"), UNFINISHED, ""],
        # Interrupted at once.
        [*block("do it"), *block("so"), "     ▣  Build · Stub One · interrupted", ""],
        # A command the person ran.
        [*block("do it"), *block("$ ls", "", "a"), UNFINISHED, ""],
        # Not the last turn.
        [*block("do it"), *block("stub error 400"), *block("again"), "     fine", "", SIGNED, ""],
    ],
)
def test_no_other_block_is_an_error(said: list[str]) -> None:
    assert state(session(said, AT_REST)) == (State.IDLE, None)


def test_a_block_whose_beginning_has_scrolled_away_cannot_be_told() -> None:
    assert state(session([*block("what is this")[1:], UNFINISHED, ""], AT_REST)) is None


def test_of_a_short_conversation_the_first_block_is_the_prompt() -> None:
    assert state(session([*block("do it"), UNFINISHED, "", "", ""], AT_REST)) == (State.IDLE, None)


def test_a_list_in_the_middle_covers_the_agent() -> None:
    title = "    Commands" + " " * (WIDTH - 2 * 14 - len("Commands") - len("esc")) + "esc"
    said = ["     fine", "", SIGNED, "", " " * 10 + title, "", "              Search", ""]
    reading = OpenCode().read_screen(session(said, AT_WORK))
    assert reading is not None
    assert (reading.state, reading.frozen) == (None, True)


def test_a_question_that_quotes_an_approval_is_a_question() -> None:
    asked = block("△ Permission required", "", "1. Yes", "2. No", "", "↑↓ select  enter submit  esc dismiss")[:-1]
    assert state(Screen(lines=("", "     fine", "", *asked, ""))) == (State.ATTENTION, "question")


@pytest.mark.parametrize("lines", [(), ("",), ("$ ",), ("  ╹▀▀▀▀▀▀▀▀▀▀▀",), ("  ┃",)])
def test_nothing_is_read_from_nothing(lines: tuple[str, ...]) -> None:
    assert state(Screen(lines=lines)) is None
