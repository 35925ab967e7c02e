from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from perdure.errors import UsageError
from perdure.live.typed import (
    LONGEST,
    Message,
    Outlook,
    has_moved,
    held,
    is_recorded,
    is_said,
    message,
    objection,
    outlook,
    part_said,
    sign_of_keys,
)
from perdure.model.screen import ScreenReading, State
from perdure.model.text import decode, encode

NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
#: Texts as people write them: printable, and not only blanks.
TEXTS = st.text(st.characters(codec="utf-8", categories=("L", "N", "P", "S", "Zs")), min_size=1, max_size=60).filter(
    lambda text: bool(text.strip())
)
IDLE = ScreenReading(rule="x.idle", state=State.IDLE)
BUSY = ScreenReading(rule="x.busy", state=State.BUSY)
ASKS = ScreenReading(rule="x.asks", state=State.ATTENTION, reason="permission")
ABOVE = ("boxer 1.0", "", "what was said before")


def _framed(*inside: str) -> tuple[str, ...]:
    return (*ABOVE, "╭───────╮", *(f"│ {line} │" for line in inside), "╰───────╯", "  ready", "")


@given(st.text())
def test_any_text_is_sent_whole_or_not_at_all(text: str) -> None:
    try:
        told = message(text)
    except UsageError:
        return
    assert "\r" not in told.text
    assert not told.text.endswith("\n")
    assert told.text.split() == text.split()


@given(st.binary(min_size=1, max_size=40))
def test_bytes_that_are_no_text_are_sent_as_they_are(raw: bytes) -> None:
    text = decode(raw)
    try:
        told = message(text)
    except UsageError:
        return
    assert encode(told.text) == raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip(b"\n")


@pytest.mark.parametrize("text", ["\x1b[201~rm", "a\x03", "a\0b", "\x7f", "\x9b1A", "", " \n", "x" * (LONGEST + 1)])
def test_what_would_be_keys_or_nothing_is_not_sent(text: str) -> None:
    with pytest.raises(UsageError):
        message(text)


@pytest.mark.parametrize("key", ["Enter", "Escape", "C-c", "M-x", "C-M-Left", "F12", "y", ";", "é", "^C", "S-Up", "-"])
def test_keys_go_by_tmuxs_names(key: str) -> None:
    assert message("", [key]).keys == (key,)


@pytest.mark.parametrize(
    "key", ["", "enter", "Enter; kill-server", "C-", "yes", "F13", "MouseDown1Pane", "a b", "\n", "-t"]
)
def test_what_is_no_key_is_not_pressed(key: str) -> None:
    with pytest.raises(UsageError):
        message("text", [key])


@given(TEXTS)
def test_a_text_is_found_where_it_was_typed_and_missed_when_it_left(text: str) -> None:
    before, typed = _framed("> "), _framed(*f"> {text}".split("\n"))
    assume(" ".join(before[-4].split()) != " ".join(typed[-4].split()))
    found = held(text, typed, before)
    assume(found is not None)  # a text that looks like a frame is seen as one
    assert outlook(IDLE, found, typed, IDLE) is Outlook.STANDS
    answered = (*ABOVE, f"> {text}", "it is answered", "at some", "length", *_framed("> ")[3:])
    assert outlook(IDLE, found, answered, IDLE) in (Outlook.GONE, Outlook.STANDS)


def test_ordinary_texts_are_found_in_a_frame() -> None:
    for text in ("hello", "fix the bug in main.py", "y", "first\nsecond line", "x" * 300):
        lines = text[-60:].split("\n")
        found = held(text, _framed(f"> {lines[0]}", *lines[1:]), _framed("> "))
        assert found is not None
        assert outlook(IDLE, found, (*ABOVE, "> hello", "answer", *_framed("> ")[3:]), IDLE) is Outlook.GONE


def test_a_long_paste_is_known_by_what_stands_for_it() -> None:
    for shown in ("[Pasted text #1 +20 lines]", "[Pasted Content 1234 chars]", "[Pasted ~12 lines]"):
        assert held("a\nb\nc\nd", _framed(f"> {shown}"), _framed("> ")) is not None


def test_what_was_there_before_is_not_what_was_typed() -> None:
    screen = _framed("> hello")
    assert held("hello", screen, screen) is None
    assert outlook(IDLE, None, screen, IDLE) is Outlook.UNKNOWN


def test_going_to_work_is_proof_only_of_one_who_did_not() -> None:
    typed = held("hello", _framed("> hello"), _framed("> "))
    assert outlook(IDLE, typed, _framed("> hello"), BUSY) is Outlook.STARTED
    assert outlook(BUSY, typed, _framed("> hello"), BUSY) is Outlook.STANDS
    assert outlook(BUSY, typed, (*ABOVE, "queued: hello", "", "", *_framed("> ")[3:]), BUSY) is Outlook.GONE
    assert outlook(IDLE, typed, _framed("> "), ScreenReading(rule="x.viewer", frozen=True)) is Outlook.UNKNOWN


@pytest.mark.parametrize(
    ("reading", "is_refused"),
    [
        (None, False),
        (IDLE, False),
        (BUSY, False),
        (ScreenReading(rule="x", state=State.ATTENTION, reason="permission"), True),
        (ScreenReading(rule="x", state=State.ATTENTION, reason="question"), True),
        (ScreenReading(rule="x", state=State.ATTENTION, reason="login"), True),
        (ScreenReading(rule="x", state=State.ATTENTION, reason="limit"), False),
        (ScreenReading(rule="x", frozen=True), True),
    ],
)
def test_a_text_is_refused_where_it_would_be_an_answer(reading: ScreenReading | None, is_refused: bool) -> None:
    assert bool(objection(reading, Message(text="hello"))) is is_refused
    assert not objection(reading, Message(text="hello", anyway=True))
    assert not objection(reading, Message(keys=("y",)))


def test_a_clock_and_a_spinner_are_no_movement() -> None:
    assert not has_moved(("⠋ thinking (3 s)", "12:00"), ("⠙ thinking (4 s)", "12:01"))
    assert has_moved(("Allow this?",), ("done",))


@given(TEXTS)
def test_a_turn_counts_from_the_moment_of_sending(text: str) -> None:
    since = NOON + timedelta(seconds=1, milliseconds=300)

    def said(at: datetime | None, role: str = "user", agent: str | None = None, said: str = text) -> bool:
        return is_said(text, [{"role": role, "text": said, "time": at, "agent": agent}], since)

    assert said(since)
    assert said(NOON + timedelta(seconds=1))  # who notes only seconds
    assert not said(since - timedelta(milliseconds=1))
    assert not said(NOON)
    assert not said(None)
    assert not said(since, role="assistant")
    assert not said(since, agent="sub")
    assert not said(since, said="something else entirely, and no part of it")


@given(st.text(min_size=60), st.integers(1, 40))
def test_a_beginning_or_an_end_is_a_part_and_nothing_else_is(text: str, cut: int) -> None:
    plain = " ".join(text.split())

    def part(said: str, at: datetime = NOON) -> int:
        return part_said(text, [{"role": "user", "text": said, "time": at}], NOON)

    for said in (plain[:-cut], plain[cut:]):
        length = len(" ".join(said.split()))
        assert part(said) == (length if 20 <= length < len(plain) else 0)
        assert part(said, NOON - timedelta(seconds=1)) == 0
    assert part(text) == part(f"{plain} and more") == part("[Pasted text #1 +20 lines]") == part("") == 0


def test_a_hooks_record_counts_when_it_holds_the_prompt() -> None:
    record = msgspec.json.encode({"hook_event_name": "UserPromptSubmit", "prompt": "fix  it\nnow"})
    assert is_recorded("fix it now", [(NOON, record)], NOON)
    assert not is_recorded("fix it now", [(NOON, record)], NOON + timedelta(seconds=1))
    assert not is_recorded("other", [(NOON, record), (NOON, b"{"), (NOON, b"[1]")], NOON)


@pytest.mark.parametrize(
    ("was", "reading", "keys", "sign"),
    [
        (ASKS, IDLE, ["y"], "what it asked is gone"),
        (ASKS, BUSY, ["1", "Enter"], "what it asked is gone"),
        (IDLE, BUSY, ["Enter"], "it went to work"),
        (BUSY, IDLE, ["Escape"], "it stopped its work"),
        # It may have ended by itself, and may have asked for itself.
        (BUSY, IDLE, ["x"], ""),
        (BUSY, ASKS, ["Escape"], ""),
        (BUSY, BUSY, ["Escape"], ""),
        (ASKS, ASKS, ["y"], ""),
        # Nobody knows what it was, or is.
        (None, BUSY, ["Enter"], ""),
        (ASKS, None, ["y"], ""),
        (ASKS, ScreenReading(rule="x.viewer", frozen=True), ["y"], ""),
        (ASKS, ScreenReading(rule="x.unread"), ["y"], ""),
    ],
)
def test_a_screen_tells_what_came_of_keys(
    was: ScreenReading | None, reading: ScreenReading | None, keys: list[str], sign: str
) -> None:
    assert sign_of_keys(was, reading, keys) == sign
