"""Whether an agent is in the conversation it was started for: only what it shows itself, and shows now, counts."""

from __future__ import annotations

import pytest

from perdure.model.identity import Evidence, Identity
from perdure.model.plan import Action, Result, Step
from perdure.model.screen import ScreenReading, State
from perdure.restore.judge import Seen, is_in_title, is_on_screen, is_present, is_up, judge, needs_screen
from perdure.restore.replay import below_marker, replayed
from tests.builders import NOON, an_identity

TASK = "Why does the parser drop the last line?"
SHOWN = ("◈ some 1.0", "you ▸ Why does the parser drop", "  the last line?", "")
RESUME = Step(n=1, pane="%1", target="work:0.0", action=Action.RESUME, agent="some", conversation="c0ffee")
START = Step(n=1, pane="%1", target="work:0.0", action=Action.START, agent="some", conversation="c0ffee")

PRESENT = (Evidence.REGISTRY, Evidence.HOOK, Evidence.OPEN_FILE, Evidence.TITLE)
ABSENT = tuple(each for each in Evidence if each not in (*PRESENT, Evidence.LAUNCH, Evidence.KEPT))


def reading(state: State, reason: str | None = None) -> ScreenReading:
    return ScreenReading(rule="some", state=state, reason=reason)


def result(
    step: Step, seen: Seen, *, is_late: bool = False, was_up: bool = False, task: str | None = TASK
) -> Result | None:
    verdict = judge(step, seen, is_late=is_late, was_up=was_up, task=task)
    return None if verdict is None else verdict.result


def why(step: Step, seen: Seen, *, is_late: bool = False) -> str:
    verdict = judge(step, seen, is_late=is_late, task=TASK)
    assert verdict is not None
    return verdict.why


@pytest.mark.parametrize("evidence", PRESENT)
def test_certain_evidence_of_now_verifies(evidence: Evidence) -> None:
    seen = Seen(identity=an_identity(evidence=evidence))

    assert result(RESUME, seen) is Result.VERIFIED
    assert str(evidence) in why(RESUME, seen)


@pytest.mark.parametrize("evidence", [*PRESENT, *ABSENT])
@pytest.mark.parametrize("certain", [True, False])
def test_one_that_came_up_with_nothing_of_what_was_said_has_failed(evidence: Evidence, certain: bool) -> None:
    """Some go on under any id they are given: that of a conversation they do not know as well."""
    seen = Seen(identity=an_identity(evidence=evidence, certain=certain, prompted=False), screen=("Session not found",))

    assert result(RESUME, seen) is None
    assert result(RESUME, seen, is_late=True) is Result.FAILED
    assert "nothing of what was said" in why(RESUME, seen, is_late=True)
    assert result(START, seen, is_late=True) is not Result.FAILED


@pytest.mark.parametrize("evidence", PRESENT)
def test_one_whose_files_tell_of_nothing_that_was_asked_is_not_verified_by_its_name(evidence: Evidence) -> None:
    """Its transcript was cut, and it is in a conversation of the same id."""
    seen = Seen(identity=an_identity(evidence=evidence, prompted=True), is_bare=True)

    assert result(RESUME, seen) is None
    assert result(RESUME, seen, is_late=True) is Result.UNVERIFIED
    assert "nothing of what was said" in why(RESUME, seen, is_late=True)
    # Where nothing was asked before either, that is how it was; what stands on its screen is there.
    assert result(RESUME, seen, task=None) is Result.VERIFIED
    shown = Seen(identity=an_identity(evidence=evidence, prompted=True), is_bare=True, screen=SHOWN)
    assert result(RESUME, shown) is Result.VERIFIED
    other = Seen(identity=an_identity(conversation="bad1dea", evidence=evidence), is_bare=True)
    assert result(RESUME, other) is Result.FAILED


@pytest.mark.parametrize("evidence", PRESENT)
def test_another_conversation_is_a_failure_that_names_it(evidence: Evidence) -> None:
    seen = Seen(identity=an_identity(conversation="bad1dea", evidence=evidence), screen=SHOWN)

    assert result(RESUME, seen) is Result.FAILED
    assert "bad1dea" in why(RESUME, seen)


@pytest.mark.parametrize("evidence", tuple(Evidence))
def test_nothing_uncertain_verifies(evidence: Evidence) -> None:
    seen = Seen(identity=an_identity(evidence=evidence, certain=False), screen=SHOWN)

    assert result(RESUME, seen) is None
    assert result(RESUME, seen, is_late=True) in (Result.UNVERIFIED, Result.FAILED)


@pytest.mark.parametrize("evidence", ABSENT)
def test_what_we_wrote_ourselves_needs_the_conversation_on_the_screen(evidence: Evidence) -> None:
    identity = an_identity(evidence=evidence)
    elsewhere = Seen(identity=identity, screen=("you ▸ Something else entirely, never asked",))

    assert result(RESUME, Seen(identity=identity)) is None
    assert result(RESUME, elsewhere) is None
    assert result(RESUME, Seen(identity=identity, screen=SHOWN)) is Result.VERIFIED
    assert result(RESUME, Seen(identity=identity, screen=SHOWN), task=None) is None
    assert result(RESUME, elsewhere, is_late=True) is Result.UNVERIFIED


def test_words_that_a_long_answer_has_pushed_out_of_sight_count_as_well() -> None:
    argv = an_identity(evidence=Evidence.ARGV)

    assert result(RESUME, Seen(identity=argv, screen=("line 30",), whole=(*SHOWN, "line 30"))) is Result.VERIFIED
    assert result(RESUME, Seen(identity=argv, screen=("line 30",), whole=("line 30",))) is None


def test_a_title_with_the_conversations_name_stands_beside_what_we_wrote_ourselves() -> None:
    seen = Seen(identity=an_identity(evidence=Evidence.ARGV), screen=("line 30",), is_titled=True)
    other = an_identity(conversation="bad1dea", evidence=Evidence.ARGV)

    assert result(RESUME, seen) is Result.VERIFIED
    assert result(RESUME, Seen(identity=other, screen=("line 30",), is_titled=True)) is None
    guess = an_identity(evidence=Evidence.GUESS, certain=False)
    assert result(RESUME, Seen(identity=guess, screen=("line 30",), is_titled=True)) is None


@pytest.mark.parametrize(
    ("name", "title", "expected"),
    [
        ("Sort the shelf by colour", "OC | Sort the shelf by colour", True),
        ("Sort the shelf by colour and by size", "OC | Sort the shelf by colour…", False),
        ("Sort the shelf by the colour of its books", "OC | Sort the shelf by the colour of…", True),
        ("Sort", "OC | Sort", False),
        (None, "OC | Sort the shelf", False),
        ("Sort the shelf by colour", "vm", False),
    ],
)
def test_a_name_in_a_title_has_to_be_long_enough_to_tell(name: str | None, title: str, expected: bool) -> None:
    assert is_in_title(name, title) is expected


def test_an_error_on_the_screen_may_be_old_and_speaks_against_nothing_but_silence() -> None:
    argv, error = an_identity(evidence=Evidence.ARGV), reading(State.ERROR)

    assert result(RESUME, Seen(identity=argv, screen=SHOWN, reading=error)) is Result.VERIFIED
    unknown = Seen(identity=argv, screen=("Error: Unknown session",), reading=error)
    assert result(RESUME, unknown) is None
    assert result(RESUME, unknown, is_late=True) is Result.FAILED


def test_another_conversation_is_not_verified_by_the_same_words() -> None:
    seen = Seen(identity=an_identity(conversation="bad1dea", evidence=Evidence.ARGV), screen=SHOWN)

    assert result(RESUME, seen) is None
    assert result(RESUME, seen, is_late=True) is Result.UNVERIFIED


def test_a_question_leaves_open_where_it_leads() -> None:
    asking = reading(State.ATTENTION, "permission")
    seen = Seen(identity=an_identity(evidence=Evidence.ARGV), screen=SHOWN, reading=asking)

    assert result(RESUME, seen) is None
    assert result(RESUME, seen, is_late=True) is Result.UNVERIFIED
    assert "waits for an answer" in why(RESUME, seen, is_late=True)


@pytest.mark.parametrize("step", [RESUME, START])
@pytest.mark.parametrize("identity", [None, an_identity()])
def test_an_agent_that_has_ended_failed_with_its_status(step: Step, identity: Identity | None) -> None:
    for status in (0, 127):
        seen = Seen(identity=identity, status=status)
        assert result(step, seen) is Result.FAILED
        assert str(status) in why(step, seen)


@pytest.mark.parametrize("step", [RESUME, START])
def test_a_pane_that_is_gone_failed(step: Step) -> None:
    assert result(step, Seen(there=False)) is Result.FAILED
    assert result(step, Seen(there=False, identity=an_identity(), status=0)) is Result.FAILED


@pytest.mark.parametrize("step", [RESUME, START])
@pytest.mark.parametrize("evidence", [None, *ABSENT, *PRESENT])
def test_an_agent_that_asks_to_log_in_is_reported_as_that(step: Step, evidence: Evidence | None) -> None:
    """Also one that is certainly in the conversation."""
    login = reading(State.ATTENTION, "login")
    seen = Seen(identity=an_identity(evidence=evidence), screen=("Log in", *SHOWN), reading=login)

    assert result(step, seen) is Result.UNVERIFIED
    assert why(step, seen) == "some asks to log in"


@pytest.mark.parametrize("step", [RESUME, START])
@pytest.mark.parametrize(
    "identity",
    [
        None,
        an_identity(agent="another"),
        an_identity(evidence=Evidence.LAUNCH),
        an_identity(evidence=Evidence.KEPT),
    ],
    ids=["none", "other", "ours", "kept"],
)
def test_until_the_agent_has_come_up_nothing_is_known(step: Step, identity: Identity | None) -> None:
    """Not even by the screen: it shows what was there before."""
    login = reading(State.ATTENTION, "login")
    late = Seen(identity=identity)

    assert result(step, Seen(identity=identity, screen=SHOWN, reading=login)) is None
    assert result(step, late, is_late=True) is Result.FAILED
    assert "did not start in time" in why(step, late, is_late=True)
    assert result(step, Seen(identity=identity, reading=login), is_late=True) is Result.UNVERIFIED


def test_late_says_what_there_is_to_say() -> None:
    unknown = Seen(identity=an_identity(conversation=None, evidence=None, certain=False))

    assert "only its argv" in why(RESUME, Seen(identity=an_identity(evidence=Evidence.ARGV)), is_late=True)
    assert "cannot be told" in why(RESUME, unknown, is_late=True)


def test_certain_of_nothing_is_no_other_conversation() -> None:
    assert result(RESUME, Seen(identity=an_identity(conversation=None))) is None


# A fresh start


def test_a_fresh_start_under_the_same_id_is_verified_by_the_agent_alone() -> None:
    assert result(START, Seen(identity=an_identity())) is Result.VERIFIED
    assert result(START, Seen(identity=an_identity(evidence=Evidence.ARGV))) is None


def test_a_fresh_start_is_done_when_the_agent_is_up() -> None:
    """Not at the first sight of its screen, which is younger than the rest of the look."""
    argv, idle = an_identity(evidence=Evidence.ARGV), reading(State.IDLE)

    assert result(START, Seen(identity=argv, reading=idle)) is None
    assert result(START, Seen(identity=argv, reading=idle), was_up=True) is Result.DONE
    assert result(START, Seen(identity=an_identity(), reading=idle), was_up=True) is Result.VERIFIED
    assert result(START, Seen(identity=an_identity(conversation="another"))) is Result.DONE
    assert result(START, Seen(identity=argv), is_late=True) is Result.DONE


# Whether to look at the screen


def test_the_screen_is_read_once_the_agent_is_there_and_when_something_is_wrong() -> None:
    assert not needs_screen(RESUME, Seen(), is_late=False)
    assert not needs_screen(RESUME, Seen(there=False, status=1), is_late=True)
    assert not needs_screen(RESUME, Seen(identity=an_identity(evidence=Evidence.LAUNCH)), is_late=False)
    assert needs_screen(RESUME, Seen(identity=an_identity()), is_late=False)
    assert needs_screen(RESUME, Seen(), is_late=True)
    assert needs_screen(RESUME, Seen(status=1), is_late=False)


def test_an_agent_is_up_when_it_shows_a_screen_of_its_own() -> None:
    idle = reading(State.IDLE)

    assert is_up(RESUME, Seen(identity=an_identity(), reading=idle))
    assert not is_up(RESUME, Seen(identity=an_identity()))
    assert not is_up(RESUME, Seen(identity=an_identity(), reading=ScreenReading(rule="none")))
    assert not is_up(RESUME, Seen(reading=idle))
    assert not is_up(RESUME, Seen(identity=an_identity(evidence=Evidence.LAUNCH), reading=idle))


def test_only_what_the_agent_does_itself_is_of_now() -> None:
    assert {each for each in Evidence if is_present(an_identity(evidence=each))} == set(PRESENT)


@pytest.mark.parametrize(
    ("task", "lines", "expected"),
    [
        (TASK, SHOWN, True),
        (TASK, ("│ why does the PARSER drop   │", "│ the last line?             │"), True),
        (TASK, ("Why does the parser",), False),
        (TASK, (), False),
        (None, SHOWN, False),
        ("", ("",), False),
        ("?", ("?",), False),
        ("go on", ("> go on",), True),
        ("go on", (" > Go on               17:56",), True),
        ("go on", ("Press enter to go on",), False),
        ("do (a|b)*", ("do (a|b)* 3",), True),
        ("x" * 500, ("x" * 80, "x" * 80), True),
        ("日本語でお願いします、よろしく", ("> 日本語でお願いします、よろしく",), True),
    ],
)
def test_what_was_last_asked_is_found_however_it_is_broken(
    task: str | None, lines: tuple[str, ...], expected: bool
) -> None:
    assert is_on_screen(task, lines) is expected


@pytest.mark.parametrize("width", [120, 30, 8])
def test_what_was_replayed_is_not_what_the_agent_shows(width: int) -> None:
    text = replayed(f"> {TASK}\n".encode(), (), saved_at=NOON, now=NOON, width=width)
    assert text is not None
    marker = text.decode().splitlines()[1].removeprefix("\x1b[2m").removesuffix("\x1b[m")

    assert below_marker([f"> {TASK}", marker]) == ()
    assert below_marker([f"> {TASK}", marker, "its own"]) == ("its own",)
    assert below_marker(["all", "its own"]) == ("all", "its own")
