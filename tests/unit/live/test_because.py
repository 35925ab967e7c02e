"""Causes are names for programs; each has a sentence for people, from one place."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import perdure.live
from perdure.cli.event_lines import event_line
from perdure.live.because import because
from perdure.live.ending import ASKED
from perdure.live.event_row import event_row
from perdure.live.lifetimes import ASKED_FOR, AT_START, NOTICED
from perdure.live.standing import standing_of
from perdure.live.until import ended
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.observation import Ending, Source
from perdure.model.run import RunState
from tests.builders import NOON
from tests.unit.live.timeline import in_state


@pytest.mark.parametrize(
    ("cause", "sentence"),
    [
        ("registry:busy", "The agent says so itself."),
        ("hook:Stop", "A hook of the agent's has told it."),
        ("screen:claude.busy.footer", "Its screen shows it."),
        ("screen:unread", "Nothing that it shows tells."),
        ("process:prompt", "A shell waits for a command."),
        ("process:make", "It runs make."),
        ("process:program", "It runs a program."),
        ("process:process_exit", "Its program has ended."),
        ("process:tmux_reconcile_missing", "Its pane was closed."),
        ("tmux_reconcile_missing", "Its pane was closed."),
        ("periodic_tmux_reconcile", "Its pane was opened."),
        ("startup_missing_tmux", "Its pane was gone when Perdure began to look."),
        ("silence", "Nothing was heard of it for long."),
        ("seen", "Somebody has seen it."),
    ],
)
def test_a_cause_has_a_sentence(cause: str, sentence: str) -> None:
    assert because(cause) == sentence


def test_whatever_decides_in_this_program_has_a_sentence_of_its_own() -> None:
    """Read off the source: a cause that somebody adds has to be put into words."""
    named = set()
    for path in Path(perdure.live.__path__[0]).glob("*.py"):
        named |= set(re.findall(r'cause="([^"]+)"', path.read_text()))
    named |= {*map(str, Ending), *map(str, Source), AT_START, NOTICED, ASKED_FOR, ASKED, "shutdown", "initial", "input"}
    assert {"returned", "seen", "output"} <= named
    assert [name for name in named if because(name).startswith("The cause is ")] == []


@given(st.text())
def test_every_cause_has_some_sentence(cause: str) -> None:
    sentence = because(cause)
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert "\n" not in sentence or "\n" in cause


def test_it_is_told_wherever_the_cause_is() -> None:
    assert standing_of(in_state(RunState.IDLE)).because == because("before")
    run = in_state(RunState.EXITED)
    assert ended(run, ["idle"]).message.endswith(f"was not idle: {because(run.status.cause).replace('The', 'the')}")
    for kind, name, cause in (
        (EventKind.STATE_CHANGED, "cause", "process:process_exit"),
        (EventKind.RUN_DELETED, "reason", "tmux_reconcile_missing"),
        (EventKind.RUN_CREATED, "reason", "periodic_tmux_reconcile"),
    ):
        stored = StoredEvent(seq=1, event=Event(kind=kind, at=NOON, run="r1", data={name: cause}))
        assert event_row(stored).data == {name: cause, "because": because(cause)}
        assert event_line(stored).endswith(f" {because(cause)}")
    about_a_chat = StoredEvent(seq=1, event=Event(kind=EventKind.CHAT_CLOSED, at=NOON, data={"reason": "idle"}))
    assert event_row(about_a_chat).data == {"reason": "idle"}
