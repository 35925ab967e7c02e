"""What is written in a conversation with Hermes decides nothing; the sign before the prompt does."""

# ruff: noqa: RUF001

from __future__ import annotations

import pytest

from perdure.agents.hermes import Hermes
from perdure.model.screen import Screen, State

WIDE, NARROW = 100, 60
STATUS = {WIDE: " ⚕ stub-model │ 14K/256K │ [█░░░░░░░░░] 6% │ 9s │ ⏲ 1s", NARROW: " ⚕ stub-model · 6% · 9s"}

QUOTES = [
    "⚕ ❯ msg=interrupt · /queue · /bg · /steer · Ctrl+C cancel",
    "⚠ ❯",
    "❌ Non-retryable error (HTTP 400): stub",
    "↑/↓ to select, Enter to confirm  (55s)",
    "Allow this hook to run? [y/N]:",
    " ⚕ stub-model │ 14K/256K │ ⛓ 1 │ 9s",
    "─ ready │ stub model │ 3s",
]


def screen(
    prompt: str, *above: str, width: int = WIDE, status: str | None = None, below: tuple[str, ...] = ()
) -> Screen:
    rule = "─" * width
    end = [rule] if width == WIDE else []
    line = STATUS[width] if status is None else status
    return Screen(lines=(*above, *([line] if line else []), rule, prompt, *end, *below, "", ""))


def asked(text: str) -> list[str]:
    return ["─" * 40, f"● {text}", "─" * 40, ""]


def answered(*text: str) -> list[str]:
    return ["╭─ ⚕ Hermes " + "─" * 40 + "╮", *(f"    {line}" for line in text), "╰" + "─" * 51 + "╯"]


def state(shown: Screen) -> tuple[State | None, str | None] | None:
    reading = Hermes().read_screen(shown)
    return None if reading is None else (reading.state, reading.reason)


@pytest.mark.parametrize("width", [WIDE, NARROW])
@pytest.mark.parametrize("quote", QUOTES)
def test_a_quote_decides_nothing(quote: str, width: int) -> None:
    arrow = "❯ " if width == WIDE else ""
    for said in ([*asked("hello"), *answered(quote)], [*asked(quote), *answered("fine")]):
        assert state(screen(f"❯ {quote}", *said, width=width)) == (State.IDLE, None)
        assert state(screen(f"⚕ {arrow}{quote}", *said, width=width)) == (State.BUSY, None)


@pytest.mark.parametrize(
    ("prompt", "expected"),
    [
        ("❯", (State.IDLE, None)),
        ("coder ❯", (State.IDLE, None)),
        ("⚔", (State.IDLE, None)),
        ("🎤 ❯ type or Ctrl+B to record", (State.IDLE, None)),
        ("⚕ ❯", (State.BUSY, None)),
        ("⠹ ❯ ⠹ Compressing context...", (State.BUSY, None)),
        ("⚠ ❯", (State.ATTENTION, "permission")),
        ("🔐 ❯ type password (hidden), Enter to submit · ESC to skip", (State.ATTENTION, "permission")),
        ("🔑 ❯", (State.ATTENTION, "question")),
        ("? ❯", (State.ATTENTION, "question")),
        ("✎ ❯ my answer", (State.ATTENTION, "question")),
        ("● ▃ ❯ recording...", None),
    ],
)
def test_the_sign_says_the_state(prompt: str, expected: tuple[State, str | None] | None) -> None:
    assert state(screen(prompt, *answered("fine"))) == expected


@pytest.mark.parametrize("prompt", ["⚕ msg=interrupt", "⚠", "?", "✎ my answer"])
def test_on_a_narrow_screen_it_stands_alone(prompt: str) -> None:
    wide = f"{prompt.split()[0]} ❯ {' '.join(prompt.split()[1:])}".rstrip()
    assert state(screen(prompt, width=NARROW)) == state(screen(wide))


def test_a_confirmation_of_one_s_own_command_is_a_question() -> None:
    hint = "  type 1/2/3, or ↑/↓ to select, Enter to confirm  (119s)"
    assert state(screen("⚠ ❯ type 1/2/3", "╰────╯", "", hint)) == (State.ATTENTION, "question")


def test_a_turn_failed_until_something_else_is_said() -> None:
    failed = [
        *asked("do it"),
        "❌ API failed after 3 retries — HTTP 500: stub",
        "   💀 Final error",
        " ─  ⚕ Hermes  ───",
    ]
    assert state(screen("❯", *failed)) == (State.ERROR, None)
    assert state(screen("❯ half typed", *failed)) == (State.ERROR, None)
    assert state(screen("⚕ ❯", *failed)) == (State.BUSY, None)
    for after in (answered("a fallback answered"), asked("again"), ["⚙️  /new", "(^_^)v New session started!"]):
        assert state(screen("❯", *failed, *after)) == (State.IDLE, None)


def test_sub_agents_in_the_background_are_work() -> None:
    assert state(screen("❯", status=" ⚕ stub-model │ 14K/256K │ 6% │ ⛓ 1 │ 9s")) == (State.BUSY, None)
    assert state(screen("❯", status=" ⚕ stub-model │ 14K/256K │ 6% │ ⚙ 1 │ 9s")) == (State.IDLE, None)


def test_completions_stand_below() -> None:
    assert state(screen("❯ /ne", below=(" /new     Start", " /help    Show"))) == (State.IDLE, None)
    assert state(screen("⚕ ❯ /ne", below=(" /new     Start",))) == (State.BUSY, None)


def test_a_picker_covers_the_agent() -> None:
    frame = ["╭─ ⚙ Model Picker — Select Provider ───╮", "│ ❯ Cancel │", "╰──────────╯", ""]
    reading = Hermes().read_screen(screen("❯", *frame, status=""))
    assert reading is not None
    assert (reading.state, reading.frozen) == (None, True)


@pytest.mark.parametrize(
    "lines", [(), ("",), ("$ ",), ("─" * 80,), ("Goodbye! ⚕", "$ "), ("─" * 80, "❯", "─" * 80, "$ ls")]
)
def test_nothing_is_read_from_nothing(lines: tuple[str, ...]) -> None:
    assert state(Screen(lines=lines)) is None
