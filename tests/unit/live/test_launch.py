from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import roster
from perdure.errors import UsageError
from perdure.live.launch import Look, Readiness, judge, request
from perdure.live.recognise import next_name
from perdure.model.process import Process
from perdure.model.screen import ScreenReading, State
from perdure.tmux.peek import Peeked
from perdure.tmux.wrap import Start, command

AGENT = roster().called({"simulant"})["simulant"]
ARGV = ("some-program", "now")


def _process(pid: int, ppid: int, argv: tuple[str, ...]) -> Process:
    return Process(
        pid=pid,
        ppid=ppid,
        start_ticks=pid,
        started_at=datetime(2026, 11, 1, tzinfo=UTC),
        pgid=pid,
        foreground=True,
        comm=argv[0],
        argv=argv,
    )


def _pane(*lines: str, is_dead: bool = False) -> Peeked:
    return Peeked(10, "/dev/pts/9", is_dead, 3 if is_dead else None, "", "", lines)


WRAPPED = _process(10, 1, command(Start(argv=ARGV, name="some-program")))
SHELL = _process(10, 1, ("/bin/sh", "-l"))
ASKED = request(None, "/home/dev", argv=ARGV)
FOR_AGENT = request(None, "/home/dev", agent=AGENT)


def test_a_program_runs_once_the_shell_that_starts_it_has_become_it() -> None:
    assert judge(ASKED, Look(pane=_pane(), tree=(WRAPPED,)), was_started=True) is None
    up = judge(ASKED, Look(pane=_pane(), tree=(WRAPPED, _process(11, 10, ARGV))), was_started=True)
    assert up is not None
    assert up.result is Readiness.READY


@pytest.mark.parametrize(
    ("look", "was_started", "result"),
    [
        (Look(pane=None), True, Readiness.ENDED),
        (Look(pane=_pane(is_dead=True)), True, Readiness.ENDED),
        (Look(pane=_pane("$ "), tree=(SHELL,)), True, Readiness.ENDED),
        (Look(pane=_pane("perdure: x ended with status 127.", "$"), tree=(SHELL,)), False, Readiness.ENDED),
        (Look(pane=_pane(), tree=(_process(10, 1, ("tmux",)),)), False, None),
        (Look(pane=_pane(), tree=()), False, None),
    ],
)
def test_what_is_over_is_told_from_what_has_not_begun(look: Look, was_started: bool, result: Readiness | None) -> None:
    verdict = judge(ASKED, look, was_started=was_started)
    assert (verdict.result if verdict else None) is result


def test_a_screen_that_was_read_before_its_program_ended_is_read_again_for_its_status() -> None:
    verdict = judge(ASKED, Look(pane=_pane("starting"), tree=(SHELL,)), was_started=True)
    assert verdict is not None
    assert (verdict.result, verdict.is_sure) == (Readiness.ENDED, False)
    again = judge(ASKED, Look(pane=_pane("perdure: x ended with status 127."), tree=(SHELL,)), was_started=True)
    assert again is not None
    assert (again.status, again.is_sure) == (127, True)


@pytest.mark.parametrize(
    ("reading", "result", "is_sure"),
    [
        (None, None, None),
        (ScreenReading(rule="x", frozen=True), None, None),
        (ScreenReading(rule="x", state=State.IDLE), Readiness.READY, False),
        (ScreenReading(rule="x", state=State.BUSY), Readiness.READY, True),
        (ScreenReading(rule="x", state=State.ATTENTION, reason="login"), Readiness.ATTENTION, True),
        (ScreenReading(rule="x", state=State.ERROR), Readiness.NOT_READY, True),
    ],
)
def test_an_agent_is_ready_when_its_screen_says_so(
    reading: ScreenReading | None, result: Readiness | None, is_sure: bool | None
) -> None:
    look = Look(pane=_pane(), tree=(WRAPPED,), agent=AGENT, reading=reading)
    verdict = judge(FOR_AGENT, look, was_started=True)
    assert (verdict.result if verdict else None) is result
    assert (verdict.is_sure if verdict else None) is is_sure


def test_an_agent_that_was_asked_for_is_waited_for_though_something_runs() -> None:
    look = Look(pane=_pane(), tree=(WRAPPED, _process(11, 10, ("npm", "install"))))
    assert judge(FOR_AGENT, look, was_started=True) is None


@pytest.mark.parametrize("name", ["99999999999999999999", "9" * 40])
def test_numbered_sessions_go_on_above_the_highest_however_long_it_is(name: str) -> None:
    assert next_name([name, "3", "9" * 5000]) == str(int(name) + 1)


@given(st.text())
def test_any_name_becomes_a_session_that_can_be_named_or_is_refused(name: str) -> None:
    try:
        asked = request(name, "/home/dev")
    except UsageError:
        return
    assert asked.name == name
    assert not set(name) & set(":.\n\0")


@pytest.mark.parametrize("name", ["%1", "@2", "$3", "r5", "=work", "-dash", "{last}"])
def test_what_names_something_else_is_no_name(name: str) -> None:
    with pytest.raises(UsageError, match="something else's"):
        request(name, "/home/dev")


def test_a_command_of_ones_own_is_left_as_it_is_and_the_prompt_typed() -> None:
    asked = request(None, "/home/dev", agent=AGENT, argv=("wrapper", "--x"), prompt="do this now")
    assert (asked.argv, asked.prompt) == (("wrapper", "--x"), "do this now")
    carried = request(None, "/home/dev", agent=AGENT, prompt="do this now")
    assert (carried.argv, carried.prompt) == (("simulant", "do this now"), "")
    assert "do this now" not in carried.again
