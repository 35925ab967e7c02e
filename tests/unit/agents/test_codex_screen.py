"""What a Codex screen says, whatever was written on it."""

# ruff: noqa: RUF001

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.codex import Codex
from perdure.model.screen import Screen, State

CODEX = Codex()
PHRASES = [
    "• Working (12s • esc to interrupt)",
    "Working (12s • esc to interrupt)",
    "› 1. Yes, proceed (y)",
    "1. Yes, proceed",
    "Press enter to confirm or esc to cancel",
    "tab to add notes | enter to submit answer | esc to interrupt",
    "tab to queue message",
    "enter select · esc back",
    "■ unexpected status 500",
    "■ You’ve hit your usage limit.",
    "Implement this plan?",
    "Hooks need review",
    "q close",
    "? help  esc back",
    "Worked for 3s • 10:00",
    "⠹",
    "",
]
FOOTER = ["", "  gpt-5 default · ~/w", "  ? for shortcuts                    ⚠ 1 warning · f2 to view"]
words = st.text(st.characters(exclude_categories=("C", "Z")), max_size=20)
texts = st.lists(st.sampled_from(PHRASES) | words, max_size=8)


def read(*lines: str, title: str = "w") -> tuple[State | None, str | None, bool]:
    reading = CODEX.read_screen(Screen(lines=lines, title=title))
    return (reading.state, reading.reason, reading.frozen) if reading else (None, None, False)


def turn(reply: list[str], typed: list[str], *status: str, finished: bool = True) -> list[str]:
    """A screen after one turn, as it is drawn."""
    answer = ["• Sure.", *(f"  {line}".rstrip() for line in reply)]
    end = ["", "  Worked for 2s • 10:00"] if finished else []
    first, *more = typed or ["Ask Codex to do anything"]
    composer = [f"› {first}", *(f"  {line}".rstrip() for line in more)]
    return [
        "  >_ OpenAI Codex (v0.166.0)",
        "     ~/w",
        "",
        "",
        "› hello",
        "",
        *answer,
        *end,
        "",
        *status,
        "",
        *composer,
        *FOOTER,
    ]


@given(texts, texts)
def test_nothing_that_was_said_or_typed_makes_an_idle_screen_anything_else(reply: list[str], typed: list[str]) -> None:
    for title in ("w", "", "Fix it | w"):
        assert read(*turn(reply, typed), title=title) == (State.IDLE, None, False)


@given(
    texts, texts, st.sampled_from(["◦ Working", "Thinking", "• Reconnecting... 2/5", "• Starting MCP servers (0/1): x"])
)
def test_the_status_line_says_busy_whatever_else_is_there(reply: list[str], typed: list[str], what: str) -> None:
    status = f"{what} (1m 3s • esc to interrupt)"
    assert read(*turn(reply, typed, status, "  └ Unexpected status 500")) == (State.BUSY, None, False)
    queued = ("", "• Queued follow-up inputs", "  ↳ and then", "    shift+← edit last queued message")
    assert read(*turn(reply, typed, status, *queued), title="") == (State.BUSY, None, False)


@given(texts, texts)
def test_an_answer_without_an_end_is_busy_only_by_the_title(reply: list[str], typed: list[str]) -> None:
    answer = [line for line in reply if not line.startswith("Worked for")]
    streaming = turn([*answer, "and so"], typed, finished=False)
    assert read(*streaming, title="⠹ Fix it | w") == (State.BUSY, None, False)
    # Without animations there is never a wheel.
    assert read(*streaming, title="Fix it | w") == (None, None, False)


@pytest.mark.parametrize(
    ("title", "state"),
    [
        ("⠹ w", State.BUSY),
        ("w | ⠹ | x", State.BUSY),
        ("w | 01a1dfab-39e7-77b2-ad4a-fe3f2... | Working", State.BUSY),
        ("w | 01a1dfab-39e7-77b2-ad4a-fe3f2... | Ready", State.IDLE),
        ("[ ! ] Action Required | w", State.ATTENTION),
        ("w | [ . ] Action Required", State.ATTENTION),
        ("Add an Action Required label | w", State.IDLE),
        ("Working hours | w", State.IDLE),
    ],
)
def test_the_title_in_its_forms(title: str, state: State) -> None:
    assert read(*turn([], []), title=title)[0] is state


@pytest.mark.parametrize(
    ("said", "state", "reason"),
    [
        ("■ unexpected status 529 <unknown status code>: overloaded", State.ERROR, None),
        ('■ {"error": {"message": "no"}}', State.ERROR, None),
        ("■ Something nobody has seen before", State.ERROR, None),
        ("■ You’ve hit your usage limit. Try again at 3:33 AM.", State.ATTENTION, "limit"),
        ("■ Quota exceeded. Check your plan and billing details.", State.ATTENTION, "limit"),
        ("■ Conversation interrupted - use /feedback if something went wrong", State.IDLE, None),
        ("■ '/new' is disabled while a task is in progress.", State.IDLE, None),
    ],
)
def test_how_a_turn_ended_other_than_well(said: str, state: State, reason: str | None) -> None:
    screen = ["› hello", "", said, "wrapped at the edge", "", "› Ask Codex to do anything", *FOOTER]
    assert read(*screen) == (state, reason, False)
    after = ["› hello", "", said, "", "› again", "", "• Fine.", "", "  Worked for 1s • 10:01", ""]
    assert read(*after, "› Ask Codex to do anything", *FOOTER) == (State.IDLE, None, False)


def test_what_cannot_be_told_from_a_failed_turn_is_not_told() -> None:
    screen = ["› hello", "", "• Half an answer", "", "■ Something nobody has seen before", ""]
    assert read(*screen, "› Ask Codex to do anything", *FOOTER) == (None, None, False)


def test_typed_ahead_the_footer_tells_that_it_is_busy() -> None:
    screen = ["› hello", "", "• Half an answer", "", "› next", "", "  gpt-5 default · ~/w", "  tab to queue message"]
    assert read(*screen, title="") == (State.BUSY, None, False)


@pytest.mark.parametrize(
    "hint",
    ["Press enter to confirm or esc to cancel", "Press enter to confirm or esc to cancel or o to open\n  thread"],
)
def test_an_approval_however_its_keys_are_wrapped(hint: str) -> None:
    choices = ["› 1. Yes, proceed (y)", "  2. No, and tell Codex what to do differently (esc)", ""]
    screen = [
        "  Would you like to run the following command?",
        "",
        "  $ rm -rf /",
        "",
        *choices,
        *f"  {hint}".split("\n"),
    ]
    assert read(*screen, title="") == (State.ATTENTION, "permission", False)


def test_an_empty_screen_says_nothing() -> None:
    assert read() == read("", "") == read("$ ", title="") == (None, None, False)


def test_the_reading_says_by_which_rule() -> None:
    reading = CODEX.read_screen(Screen(lines=tuple(turn([], [])), title="⠹ w"))
    assert reading is not None
    assert reading.rule == "codex.busy.title"
    assert reading.because[-1] == "codex.busy.title: the title says '⠹ w'"
