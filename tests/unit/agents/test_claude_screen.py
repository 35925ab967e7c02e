"""Text that a person or the model wrote must not decide; only the bottom of the screen does."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest

from perdure.agents.claude import Claude
from perdure.model.screen import Screen, ScreenReading, State

RULE = "─" * 60
AUTO = "  ⏵⏵ auto mode on (shift+tab to cycle)"
DONE = "✻ Brewed for 7s · done 8:36 AM"


def read(text: str, title: str = "✳ Claude Code") -> ScreenReading | None:
    return Claude().read_screen(Screen(lines=tuple(text.split("\n")), title=title))


def screen(above: str, typed: str = "", footer: str = AUTO) -> str:
    return f"{above}\n\n{RULE}\n❯\xa0{typed}\n{RULE}\n{footer}\n\n"


def state(text: str, title: str = "") -> State | None:
    reading = read(text, title)
    return reading.state if reading else None


def test_the_empty_box_with_its_footer_is_idle() -> None:
    assert state(screen(DONE)) is State.IDLE
    assert state(screen("")) is State.IDLE
    assert state(screen("● Hello", footer="  ? for shortcuts")) is State.IDLE
    assert state(screen("● Hello", typed='Try "fix the build"')) is State.IDLE


@pytest.mark.parametrize(
    "text",
    [
        screen("● Hello", footer=AUTO + " · esc to interrupt"),
        screen("✽ Julienning… (2s · ↓ 36 tokens)", typed="typed ahead"),
        screen("* Thinking…\n  ⎿  Tip: a tip\n" + " " * 60 + "◐ medium · /effort"),
        screen("✻ API error · Retrying in 1s · attempt 1/10", typed="x"),
        screen("✻ Waiting for API response · will retry in 10s"),
    ],
)
def test_busy(text: str) -> None:
    assert state(text) is State.BUSY


@pytest.mark.parametrize(
    "said",
    [
        "● The footer says: esc to interrupt\n" + DONE,
        "❯ why does it say esc to interrupt\n● Because.\n" + DONE,
        "● Look:\n  ✻ Thinking… (3s)\n" + DONE,
        "● Do you want to proceed?\n  ❯ 1. Yes\n  Esc to cancel · Tab to amend\n" + DONE,
        "● It failed with\n  ● API Error: 400 bad\n" + DONE,
        "● API Error: 400 bad\n❯ try again\n● Done.\n" + DONE,
        "● Showing detailed transcript is a feature\n" + DONE,
        f"● A line\n  {RULE}\n  ❯ 1. Yes\n" + DONE,
    ],
)
def test_what_somebody_wrote_does_not_decide(said: str) -> None:
    assert state(screen(said)) is State.IDLE


def test_typed_text_hides_whether_it_is_busy() -> None:
    assert read(screen("● Some answer, still streaming", typed="next thing", footer="")) is None
    assert state(screen("● Some answer\n" + DONE, typed="esc to interrupt", footer="")) is State.IDLE


def test_an_error_is_the_last_thing_said() -> None:
    assert state(screen("❯ hi\n● API Error: 400 stub\n✻ Cooked for 0s")) is State.ERROR
    assert state(screen("❯ hi\n● There's an issue with the selected model (x). It may not exist")) is State.ERROR
    assert state(screen("● API Error: 400 stub\n❯ again", typed="")) is State.IDLE


def test_a_limit_asks_for_attention() -> None:
    reading = read(screen("❯ hi\n● You've hit your session limit · resets 3pm\n" + DONE))
    assert reading is not None
    assert (reading.state, reading.reason) == (State.ATTENTION, "limit")


@pytest.mark.parametrize(
    "text",
    [
        f"{RULE}\n Ready to code?\n\n Exit plan mode?\n ❯ 1. Yes\n   2. No\n Esc to cancel",
        "Accessing workspace:\n Quick safety check: Is this yours?\n ❯ 1. No, exit\n   2. Yes\n Enter to confirm · Esc to cancel",
        f"{RULE}\n Edit file\n Do you want to make this edit to x.py?\n ❯ 1. Yes\n   2. No\n Esc to cancel · Tab to\n amend\n",
    ],
)
def test_dialogs_ask_for_permission(text: str) -> None:
    reading = read(text)
    assert reading is not None
    assert (reading.state, reading.reason) == (State.ATTENTION, "permission")


def test_viewers_freeze_the_state() -> None:
    transcript = read("● Long text\n" + RULE + "\n  Showing detailed transcript · ctrl+o to toggle")
    panel = read(
        screen(DONE) + "▔" * 60 + "\n   Select model\n   ❯ 1. Opus\n   Enter to set as default · Esc to cancel"
    )
    assert transcript is not None
    assert panel is not None
    assert (transcript.frozen, transcript.state, panel.frozen, panel.state) == (True, None, True, None)


def test_an_older_versions_title_turns_while_busy() -> None:
    assert state(screen("● Text"), title="⠂ Fixing things") is State.BUSY
    assert state("something else", title="⠐ Fixing things") is State.BUSY


@pytest.mark.parametrize("text", ["", "\n\n", "$ ls\nfile", RULE, f"{RULE}\n{RULE}", "❯ 1. Yes"])
def test_anything_else_cannot_be_told(text: str) -> None:
    assert read(text) is None
