"""Text that a person or the model wrote must not decide; only where the program itself writes does."""

# ruff: noqa: RUF001
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents.claude import Claude
from perdure.model.screen import Screen, ScreenReading, State

RULE = "─" * 60
AUTO = "  ⏵⏵ auto mode on (shift+tab to cycle)"
MANUAL = "  ⏸ manual mode on · ? for shortcuts"
DONE = "✻ Brewed for 7s · done 8:36 AM"
LOGO = " ▐▛███▛█   Claude Code v2.1.325"


def read(text: str, title: str = "✳ Claude Code") -> ScreenReading | None:
    return Claude().read_screen(Screen(lines=tuple(text.split("\n")), title=title))


def screen(above: str, typed: str = "", footer: str = AUTO) -> str:
    return f"{above}\n\n{RULE}\n❯\xa0{typed}\n{RULE}\n{footer}\n\n"


def state(text: str, title: str = "") -> State | None:
    reading = read(text, title)
    return reading.state if reading else None


def said(text: str) -> tuple[State | None, str | None]:
    reading = read(text)
    return (reading.state, reading.reason) if reading else (None, None)


def test_the_empty_box_with_its_footer_is_idle() -> None:
    assert state(screen(DONE)) is State.IDLE
    assert state(screen("")) is State.IDLE
    assert state(screen("● Hello", footer="  ? for shortcuts")) is State.IDLE
    assert state(screen("● Hello", typed='Try "fix the build"')) is State.IDLE


@pytest.mark.parametrize(
    "text",
    [
        screen("● Hello", footer=AUTO + " · esc to interrupt"),
        screen("● Hello", footer="  esc to interrupt · ← for agents"),
        screen("✽ Julienning… (2s · ↓ 36 tokens)", typed="typed ahead"),
        screen("✽ Reading the file… (4s · ↓ 71 tokens)\n  ⎿  ◼ Read the file", typed="typed ahead"),
        screen("* Thinking…\n  ⎿  Tip: a tip\n" + " " * 60 + "◐ medium · /effort"),
        screen("✻ API error · Retrying in 1s · attempt 1/10", typed="x"),
        screen("✻ Waiting for API response · will retry in 10s"),
        screen("✻ Waiting for 2 background agents to finish", footer=MANUAL),
        screen("● Thinking… (3s · ↓ 36 tokens)", typed="typed ahead"),
    ],
)
def test_busy(text: str) -> None:
    assert state(text) is State.BUSY


@pytest.mark.parametrize("left", ["esc to interrupt", "esc to interr…", "esc to …", "e…"])
def test_a_narrow_footer_cuts_off_how_to_interrupt(left: str) -> None:
    assert state(screen("● Hello", footer=f"{AUTO} · {left}")) is State.BUSY


def test_a_footer_without_room_for_it_cannot_tell() -> None:
    full = "  ⏵⏵ bypass permissions on (shift+tab to cycle), in 58 cells"
    assert read(screen("● Hello", footer=full)) is None
    assert state(screen("● Hello\n" + DONE, footer=full)) is State.IDLE


@pytest.mark.parametrize(
    "text",
    [
        "● The footer says: esc to interrupt\n" + DONE,
        "❯ why does it say esc to interrupt\n● Because.\n" + DONE,
        "● Look:\n  ✻ Thinking… (3s)\n" + DONE,
        "● Do you want to proceed?\n  ❯ 1. Yes\n  Esc to cancel · Tab to amend\n" + DONE,
        "● It failed with\n  ● API Error: 400 bad\n" + DONE,
        "● API Error: 400 bad\n❯ try again\n● Done.\n" + DONE,
        "● Showing detailed transcript is a feature\n" + DONE,
        f"● A line\n  {RULE}\n  ❯ 1. Yes\n" + DONE,
        "❯ run it\n● Bash(cat log)\n  ⎿  You've hit your weekly limit\n● It says so.\n" + DONE,
        "!  cat log\n  ⎿  You've hit your weekly limit · resets 3pm",
        "❯ /context\n  ⎿  Context limit reached",
        "● A bar:\n  ▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔▔\n  Select model\n" + DONE,
    ],
)
def test_what_somebody_wrote_does_not_decide(text: str) -> None:
    assert state(screen(text, footer=MANUAL)) is State.IDLE


@given(st.lists(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" …─▔●❯✻⎿·"), max_size=70)))
def test_no_answer_whatever_decides(lines: list[str]) -> None:
    answer = "\n".join(f"  {line}" for line in lines)
    for footer in (MANUAL, AUTO):
        assert state(screen(f"❯ go\n● Well.\n{answer}\n{DONE}", footer=footer)) is State.IDLE
    assert state(screen(f"❯ go\n● Well.\n{answer}", footer=AUTO + " · esc to interrupt")) is State.BUSY


@given(st.text(st.characters(exclude_categories=("C", "Z"), include_characters=" …❯1."), min_size=1, max_size=50))
def test_nothing_typed_decides(typed: str) -> None:
    assert state(screen(f"❯ go\n● Well.\n{DONE}", typed=typed)) is State.IDLE
    assert state(screen("❯ go\n✽ Julienning… (2s)", typed=typed)) is State.BUSY


def test_typed_text_hides_whether_it_is_busy() -> None:
    assert read(screen("● Some answer, still streaming", typed="next thing", footer="")) is None
    assert read(screen("● Some answer, still streaming", typed="next thing")) is None
    assert state(screen("● Some answer\n" + DONE, typed="esc to interrupt", footer="")) is State.IDLE


def test_a_status_line_of_the_users_own_is_not_the_footer() -> None:
    own = "  my line · esc to interrupt\n  ⏸ manual mode on · ← for agents"
    assert state(screen("● Hello\n" + DONE, footer=own)) is State.IDLE
    assert read(screen("● Some answer, perhaps still streaming", footer=own)) is None


def test_a_screen_without_a_prompt_is_idle_whatever_is_typed() -> None:
    assert state(screen(LOGO, typed="half a thou", footer="")) is State.IDLE
    assert read(screen(f"● Look:\n  {LOGO}", typed="half a thou", footer="")) is None


def test_after_a_command_or_an_interruption_it_is_idle_whatever_is_typed() -> None:
    assert state(screen("❯ /model\n  ⎿  Kept model as Opus", typed="x", footer="")) is State.IDLE
    assert (
        state(screen("❯ go\n● Bash(ls)\n  ⎿  Interrupted · What should Claude do?", typed="x", footer="")) is State.IDLE
    )
    # A command may be a prompt: what it has tools do is not its output.
    assert read(screen("❯ /review\n  Reading it\n  ⎿  $ sleep 8", typed="x", footer="")) is None


def test_a_scrolled_conversation_does_not_show_how_it_ended() -> None:
    up = f"❯ go\n● API Error: 400 bad\n{DONE}\n          Jump to bottom (ctrl+End) ↓"
    assert read(screen(up, typed="x")) is None
    assert state(screen(up, footer=MANUAL)) is State.IDLE
    assert state(screen(up, footer=AUTO + " · esc to interrupt")) is State.BUSY


def test_the_box_may_bear_a_name() -> None:
    for edge in ("─" * 40 + " my work ─", " a name that is longer than the whole pane is wi… ─"):
        assert state(f"{DONE}\n{edge}\n❯ \n{RULE}\n{AUTO}") is State.IDLE


def test_the_line_above_new_messages_is_no_edge_of_the_box() -> None:
    divider = "─" * 20 + " 1 new message " + "─" * 20
    approval = f"{RULE}\n Bash command\n Do you want to proceed?\n ❯ 1. Yes\n   2. No\n Esc to cancel · Tab to amend"
    assert said(f"{divider}\n❯ go\n{approval}") == (State.ATTENTION, "permission")


def test_an_error_is_the_last_thing_said() -> None:
    assert state(screen("❯ hi\n● API Error: 400 stub\n✻ Cooked for 0s")) is State.ERROR
    assert state(screen("❯ hi\n● There's an issue with the selected model (x). It may not exist")) is State.ERROR
    assert state(screen("❯ hi\n  ⎿ \xa0Invalid API key · Fix external API key\n" + DONE)) is State.ERROR
    assert state(screen("● API Error: 400 stub\n❯ again", typed="")) is State.IDLE


@pytest.mark.parametrize(
    "text",
    [
        screen("❯ hi\n● You've hit your session limit · resets 3pm\n" + DONE),
        screen("❯ hi\n  ⎿ \xa0You've hit your weekly limit · resets 3pm\n" + DONE),
        screen("❯ hi\n● Well\n" + DONE, footer="  ⚠ Usage limit reached · limit resets 6pm\n" + MANUAL),
        "▔" * 60 + "\n   What do you want to do?\n   ❯ 1. Stop and wait for limit to reset\n   Esc to cancel",
    ],
)
def test_a_limit_asks_for_attention(text: str) -> None:
    assert said(text) == (State.ATTENTION, "limit")


@pytest.mark.parametrize(
    "text",
    [
        f"{RULE}\n Ready to code?\n\n Exit plan mode?\n ❯ 1. Yes\n   2. No\n Esc to cancel",
        "▔" * 60 + f"\n  {RULE}\n   Exit plan mode?\n    ❯ 1. Yes\n      2. No",
        "▔" * 60
        + f"\n   the end of a long plan\n  {RULE}\n   Claude has written up a plan and is\n   ready.\n   ❯ 1. Yes",
        "Accessing workspace:\n Quick safety check: Is this yours?\n ❯ 1. No, exit\n   2. Yes\n Enter to confirm · Esc to cancel",
        f"{RULE}\n Quick safety check: Is this yours?\n ❯ No, exit\n   Yes\n Enter to confirm · Esc to cancel",
        f"{RULE}\n Edit file\n Do you want to make this edit to x.py?\n ❯ 1. Yes\n   2. No\n Esc to cancel · Tab to\n amend\n",
        f"{RULE}\n Tool use\n Do you want to proceed?\n ❯ No\n   Yes\n Esc to cancel · Tab to amend · ctrl+x to stop",
    ],
)
def test_dialogs_ask_for_permission(text: str) -> None:
    assert said(text) == (State.ATTENTION, "permission")


def test_questions() -> None:
    hint = "Enter to select · Tab/Arrow keys to navigate\n· Esc to cancel"
    assert said(f"{RULE}\n ☐ Colour\nWhich?\n❯ 1. Red\n{RULE}\n  2. Chat about this\n{hint}") == (
        State.ATTENTION,
        "question",
    )
    assert said(f"{RULE}\n←  ☒ Colour  ✔ Submit  →\nReady to submit your answers?\n❯ 1. Submit answers") == (
        State.ATTENTION,
        "question",
    )


@pytest.mark.parametrize("edge", [RULE, "─" * 50 + " my work ─", " a name that is longer than the whole pane is… ─"])
def test_below_a_dialog_an_edge_of_the_box_may_be_left(edge: str) -> None:
    hint = "Enter to select · Tab/Arrow keys to navigate · Esc to cancel"
    question = f"{RULE}\n ☐ Colour\nWhich?\n❯ 1. Red\n{RULE}\n  2. Chat about this\n{hint}\n{edge}"
    assert said(question) == (State.ATTENTION, "question")
    approval = f"{RULE}\n Bash command\n Do you want to proceed?\n ❯ 1. Yes\n Esc to cancel · Tab to amend\n{edge}"
    assert said(approval) == (State.ATTENTION, "permission")


def test_a_dialog_that_is_not_known_is_said_with_reserve() -> None:
    reading = read(f"{RULE}\n  Something new\n  ❯ This\n    That\n  Enter to confirm · Esc to cancel")
    assert reading is not None
    assert (reading.state, reading.reason, reading.confidence) == (State.ATTENTION, "question", 0.6)


@pytest.mark.parametrize(
    "text",
    [
        "● Long text\n" + RULE + "\n  Showing detailed transcript · ctrl+o to toggle",
        screen(DONE) + "▔" * 60 + "\n   Select model\n   ❯ 1. Opus\n   Enter to set as default · Esc to cancel",
        DONE + "\n tmux detected · scroll with PgUp/PgDn ▔\n   Export conversation\n   ❯ 1. Copy\n   Esc to cancel",
        f"{DONE}\n{RULE}\n  Shell details\n  ← to go back · Esc/Enter/Space to close · x to stop",
        screen("❯ look", footer="  ↑/↓ to select\n  ◯ main\n❯ ● general-purpose  look around        11s"),
    ],
)
def test_viewers_freeze_the_state(text: str) -> None:
    reading = read(text)
    assert reading is not None
    assert (reading.frozen, reading.state) == (True, None)


def test_the_transcript_tells_when_somebody_is_waited_for() -> None:
    assert said(f"● Bash(ls)\n{RULE}\n  dialog waiting · Showing detailed transcript · ctrl+o") == (
        State.ATTENTION,
        None,
    )


def test_the_list_of_agents_is_not_a_conversation() -> None:
    text = f"{LOGO}\nNeeds input\n{RULE}\n❯ describe a task\n{RULE}\n  enter to return · ? for shortcuts"
    for title in ("1 awaiting input · claude agents", ""):
        reading = read(text, title)
        assert reading is not None
        assert reading.frozen


def test_an_older_versions_title_turns_while_busy() -> None:
    assert state(screen("● Text"), title="⠂ Fixing things") is State.BUSY
    assert state("something else", title="⠐ Fixing things") is State.BUSY


def test_a_reading_says_what_led_to_it() -> None:
    reading = read(screen("❯ hi\n● API Error: 400 stub\n" + DONE, footer=MANUAL))
    assert reading is not None
    assert reading.rule == "claude.error.turn"
    assert reading.because[-1] == "claude.error.turn: the last word says 'API Error: 400 stub'"
    assert "claude.busy.footer: nothing in the footer says so" in reading.because


@pytest.mark.parametrize("text", ["", "\n\n", "$ ls\nfile", RULE, f"{RULE}\n{RULE}", "❯ 1. Yes", f"❯ go\n{RULE}\n"])
def test_anything_else_cannot_be_told(text: str) -> None:
    assert read(text) is None
