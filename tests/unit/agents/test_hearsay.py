"""Agents known from what is published of them only: cursor and amp."""

from __future__ import annotations

import pytest

from perdure.agents.amp import Amp
from perdure.agents.cursor import Cursor
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Command
from perdure.model.screen import Screen, State
from tests.contract.agents.cases.amp import ID as THREAD
from tests.contract.agents.cases.cursor import CASE, ID
from tests.unit.agents.hosts import CWD, HOME, LATEST, DirectoryHost, Seen, process

CURSOR, AMP = Cursor(), Amp()
OTHER = "991d8052-f962-4cb1-8de9-ae620d3138d3"


def chat(host: DirectoryHost, id: str, at: float) -> None:
    host.write(f"{HOME}/.cursor/chats/5d41402abc4b2a76b9719d911017c592/{id}/store.db", "x", at=at)
    host.write(f"{HOME}/.cursor/chats/5d41402abc4b2a76b9719d911017c592/{id}/meta.json", "{}", at=at)


def test_the_chat_cursor_was_told_to_resume_is_its_until_another_is_written(host: DirectoryHost) -> None:
    chat(host, ID, 60)
    seen = next(each for each in CASE.mine if "--resume" in each.argv)
    (first, nothing) = CURSOR.identify(Seen(seen), host)
    assert (first.conversation, first.evidence, first.certain) == (ID, Evidence.ARGV, True)
    assert nothing.conversation is None
    chat(host, OTHER, LATEST)
    assert [each.conversation for each in CURSOR.identify(Seen(seen), host)] == [ID, OTHER, None]


def test_what_cursor_s_launcher_hides_does_not_come_back(host: DirectoryHost) -> None:
    launched = Command(argv=(*CASE.mine[1].argv[:3], "--model", "auto", "--continue", "a prompt"), cwd=CWD)
    command = CURSOR.resume(Identity(agent="cursor", conversation=ID), launched)
    assert command is not None
    assert command.argv == ("/home/dev/.local/bin/agent", "--model", "auto", "--resume", ID)


def test_a_thread_amp_continues_is_certain_only_with_a_trace_of_it(host: DirectoryHost) -> None:
    seen = Seen(process("amp", "threads", "continue", THREAD))
    first = AMP.identify(seen, host)[0]
    assert (first.conversation, first.certain) == (THREAD, False)
    host.write(f"{HOME}/.local/share/amp/threads/{THREAD}.json", "{}")
    assert AMP.identify(seen, host)[0].certain


def test_amp_continues_its_thread_with_the_flags_it_had() -> None:
    launched = Command(argv=("amp", "-m", "deep", "threads", "continue", "T-old", "--no-ide"), cwd=CWD)
    command = AMP.resume(Identity(agent="amp", conversation=THREAD), launched)
    assert command is not None
    assert command.argv == ("amp", "threads", "continue", THREAD, "-m", "deep", "--no-ide")


@pytest.mark.parametrize(
    ("lines", "state"),
    [
        (("Run this command?", " → Run (once) (y)", "   Skip (esc or n)"), State.ATTENTION),
        (("  ⬢ Generating  12 tokens", "", "→ Add a follow-up        ctrl+c to stop"), State.BUSY),
        ((" ⠹ Reading", "→ Add a follow-up"), State.BUSY),
        (("→ Plan, search, build anything",), None),
    ],
)
def test_cursor_s_screens_by_hearsay(lines: tuple[str, ...], state: State | None) -> None:
    reading = CURSOR.read_screen(Screen(lines=lines))
    assert (reading and reading.state) == state
    assert reading is None or reading.confidence < 0.7


@pytest.mark.parametrize(
    ("lines", "title", "state"),
    [
        (("Run this command?",), "⠹ work - amp - proj1", State.ATTENTION),
        (("╰ ∿ Running tools ───────── ~/proj1",), "", State.BUSY),
        (("anything",), "⠹ work - amp - proj1", State.BUSY),
        (("anything",), "Plugin confirmation needed", State.ATTENTION),
        (("anything",), "work - amp - proj1", State.IDLE),
        (("anything",), "box", None),
    ],
)
def test_amp_s_screens_by_hearsay(lines: tuple[str, ...], title: str, state: State | None) -> None:
    reading = AMP.read_screen(Screen(lines=lines, title=title))
    assert (reading and reading.state) == state
