"""Whether an agent is in the conversation it was started for: only what it shows itself, and shows now, counts."""

from __future__ import annotations

from datetime import datetime

import pytest

from perdure.model.identity import Evidence, Identity
from perdure.model.plan import Action, Result, Step
from perdure.model.screen import ScreenReading, State
from perdure.restore.judge import Seen, Verdict, is_on_screen, judge, needs_screen
from perdure.restore.replay import below_marker, replayed

MINE, OTHER = "id-of-mine", "id-of-another"
TASK = "please sort the shelf by colour"
SHOWN = ("> Please sort the shelf", "  by colour", "done")
AT = datetime(2026, 11, 15, 17, 57)


def step(action: Action = Action.RESUME, conversation: str | None = MINE) -> Step:
    return Step(n=1, pane="%0", target="w:0.0", action=action, agent="some", conversation=conversation)


def who(evidence: Evidence, conversation: str = MINE, *, certain: bool = True) -> Identity:
    return Identity(agent="some", conversation=conversation, evidence=evidence, certain=certain)


def says(state: State | None, reason: str | None = None) -> ScreenReading:
    return ScreenReading(rule="r", state=state, reason=reason)


def result(seen: Seen, *, late: bool = False, task: str | None = TASK, of: Step | None = None) -> Result | None:
    verdict = judge(of or step(), seen, is_late=late, task=task)
    return verdict.result if verdict else None


@pytest.mark.parametrize("evidence", [Evidence.REGISTRY, Evidence.HOOK, Evidence.OPEN_FILE, Evidence.TITLE])
def test_what_the_agent_shows_decides_at_once_for_and_against(evidence: Evidence) -> None:
    assert result(Seen(identity=who(evidence))) is Result.VERIFIED
    assert result(Seen(identity=who(evidence, OTHER))) is Result.FAILED
    assert result(Seen(identity=who(evidence, certain=False))) is None


@pytest.mark.parametrize("evidence", [Evidence.ARGV, Evidence.LAUNCH, Evidence.REMEMBERED])
def test_what_we_told_it_ourselves_needs_the_conversation_on_the_screen(evidence: Evidence) -> None:
    said = Seen(identity=who(evidence))
    assert needs_screen(step(), said)
    assert result(said) is None
    assert result(said, late=True) is Result.UNVERIFIED
    assert result(Seen(identity=who(evidence), screen=SHOWN)) is Result.VERIFIED
    assert result(Seen(identity=who(evidence, OTHER), screen=SHOWN)) is None
    assert result(Seen(identity=who(evidence), screen=("> something else",))) is None
    assert result(Seen(identity=who(evidence), screen=SHOWN), task=None) is None


def test_a_guess_is_never_verified() -> None:
    seen = Seen(identity=who(Evidence.GUESS, certain=False), screen=SHOWN)
    assert result(seen) is None
    assert result(seen, late=True) is Result.UNVERIFIED


def test_a_turn_that_failed_long_ago_does_not_speak_against_it() -> None:
    seen = Seen(identity=who(Evidence.ARGV), screen=SHOWN, reading=says(State.ERROR))
    assert result(seen) is Result.VERIFIED


def test_an_error_without_the_conversation_is_a_failure_in_the_end() -> None:
    seen = Seen(identity=who(Evidence.ARGV), screen=("Error: Unknown session",), reading=says(State.ERROR))
    assert result(seen) is None
    assert result(seen, late=True) is Result.FAILED


def test_a_question_leaves_it_open_until_somebody_has_answered() -> None:
    seen = Seen(identity=who(Evidence.ARGV), screen=SHOWN, reading=says(State.ATTENTION))
    assert result(seen) is None
    assert judge(step(), seen, is_late=True, task=TASK) == Verdict(
        result=Result.UNVERIFIED, why="some waits for an answer"
    )


def test_one_that_asks_to_log_in_is_told_as_that() -> None:
    seen = Seen(identity=who(Evidence.ARGV), screen=(), reading=says(State.ATTENTION, "login"))
    assert judge(step(), seen, is_late=False) == Verdict(result=Result.UNVERIFIED, why="some asks to log in")


def test_one_that_ended_or_never_came_has_failed() -> None:
    assert result(Seen(there=False)) is Result.FAILED
    assert result(Seen(status=0, identity=who(Evidence.REGISTRY))) is Result.FAILED
    assert result(Seen()) is None
    assert result(Seen(), late=True) is Result.FAILED


def test_one_that_begins_anew_has_come_up_once_it_shows_something() -> None:
    new = step(Action.START)
    waiting = Seen(identity=who(Evidence.ARGV))
    assert result(waiting, of=new) is None
    assert result(waiting, of=new, late=True) is Result.VERIFIED
    assert result(Seen(identity=who(Evidence.ARGV), reading=says(State.IDLE)), of=new) is Result.VERIFIED
    assert result(Seen(identity=who(Evidence.REGISTRY)), of=new) is Result.VERIFIED
    assert result(Seen(identity=who(Evidence.REGISTRY, OTHER)), of=new) is Result.DONE
    assert result(Seen(identity=who(Evidence.ARGV), status=1), of=new) is Result.FAILED


@pytest.mark.parametrize(
    ("task", "lines", "expected"),
    [
        (TASK, SHOWN, True),
        ("go on", ("Press enter to go on",), False),
        ("go on", ("❯ go on                17:56",), True),
        ("go on", (" > Go on",), True),
        ("?", ("?",), False),
        ("", ("",), False),
        ("x" * 500, ("x" * 80, "x" * 80), True),
        ("do (a|b)*", ("do (a|b)* 3",), True),
    ],
)
def test_a_short_prompt_needs_a_line_of_its_own(task: str, lines: tuple[str, ...], expected: bool) -> None:
    assert is_on_screen(task, lines) is expected


@pytest.mark.parametrize("width", [120, 30, 8])
def test_what_was_replayed_is_not_what_the_agent_shows(width: int) -> None:
    text = replayed(f"> {TASK}\n".encode(), (), saved_at=AT, now=AT, width=width)
    assert text is not None
    marker = text.decode().splitlines()[1].removeprefix("\x1b[2m").removesuffix("\x1b[m")
    assert below_marker([f"> {TASK}", marker]) == ()
    assert below_marker([f"> {TASK}", marker, "its own"]) == ("its own",)
    assert below_marker(["all", "its own"]) == ("all", "its own")


@pytest.mark.parametrize("width", [120, 30, 8])
def test_what_was_replayed_is_not_what_the_agent_shows(width: int) -> None:
    text = replayed(f"> {TASK}\n".encode(), (), saved_at=NOON, now=NOON, width=width)
    assert text is not None
    marker = text.decode().splitlines()[1].removeprefix("\x1b[2m").removesuffix("\x1b[m")

    assert below_marker([f"> {TASK}", marker]) == ()
    assert below_marker([f"> {TASK}", marker, "its own"]) == ("its own",)
    assert below_marker(["all", "its own"]) == ("all", "its own")
