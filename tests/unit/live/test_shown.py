"""Who was shown, by the word for them, and who is there by now."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.live.meant import (
    AN_AGENT,
    ANOTHER_AGENT,
    ANOTHER_CONVERSATION,
    ANOTHER_PROGRAM,
    NOBODY,
    There,
    changed_since,
    meant_as,
    shown_in,
    stranger,
)
from perdure.model.run import Program, Run
from perdure.model.server import ServerProcess
from perdure.model.who import Who, read_who
from tests.builders import an_identity
from tests.unit.live.timeline import a_run

FIRST, AGENT, ANOTHER = (Program(pid=pid, start_ticks=7 * pid) for pid in (10, 20, 30))
SERVER = ServerProcess(pid=5, started_at=datetime(2026, 11, 15, 12, tzinfo=UTC), version="3.4")
SHOWN = structs.replace(
    a_run(), process=SERVER, first=FIRST, program=AGENT, identity=an_identity(conversation="c1", certain=True)
)
SHELL = structs.replace(SHOWN, program=None, identity=None)
DEAD = structs.replace(SHOWN, program=None, first=None)
OTHERS = an_identity(conversation="c2", certain=True)
UNKNOWN = an_identity(conversation=None, certain=False)
GUESSED = an_identity(conversation="c1", certain=False)


def word(run: Run) -> str:
    return str(shown_in(run))


def test_who_was_shown_is_the_same_whatever_else_is_told_of_it() -> None:
    assert changed_since(word(SHOWN), structs.replace(SHOWN, title="another", attached=3)) == ""
    assert changed_since(word(SHELL), structs.replace(SHELL, command="vi")) == ""
    assert changed_since(None, SHOWN) == ""


def test_a_conversation_that_was_not_known_may_be_known_by_now() -> None:
    assert changed_since(word(structs.replace(SHOWN, identity=UNKNOWN)), SHOWN) == ""
    assert changed_since(word(structs.replace(SHOWN, identity=GUESSED)), SHOWN) == ""


@pytest.mark.parametrize("identity", [OTHERS, UNKNOWN, an_identity(conversation="c1", profile="work", certain=True)])
def test_the_same_program_in_another_conversation_is_not_who_was_shown(identity: object) -> None:
    assert changed_since(word(SHOWN), structs.replace(SHOWN, identity=identity)) == ANOTHER_CONVERSATION


@pytest.mark.parametrize("identity", [OTHERS, UNKNOWN, GUESSED])
def test_another_program_is_not_who_was_shown(identity: object) -> None:
    assert changed_since(word(SHOWN), structs.replace(SHOWN, program=ANOTHER, identity=identity)) == ANOTHER_AGENT
    guess = structs.replace(SHOWN, identity=GUESSED)
    assert changed_since(word(guess), structs.replace(SHOWN, program=ANOTHER, identity=identity)) == ANOTHER_AGENT


def test_another_program_is_who_was_shown_where_the_conversation_is_certainly_the_same() -> None:
    assert changed_since(word(SHOWN), structs.replace(SHOWN, first=ANOTHER, program=ANOTHER)) == ""


def test_numbers_that_are_given_again_after_a_start_of_the_machine_are_others() -> None:
    later = structs.replace(SERVER, started_at=datetime(2026, 11, 16, 12, tzinfo=UTC))
    assert changed_since(word(SHELL), structs.replace(SHELL, process=later)) == NOBODY
    shown = structs.replace(SHOWN, identity=UNKNOWN)
    assert changed_since(word(shown), structs.replace(shown, process=later)) == ANOTHER_AGENT


def test_an_agent_that_came_is_told_from_one_that_was_there() -> None:
    assert changed_since(word(SHELL), SHOWN) == AN_AGENT
    # A shell that becomes its agent keeps number and start.
    assert changed_since(word(SHELL), structs.replace(SHOWN, program=FIRST)) == AN_AGENT


def test_who_has_ended_is_not_who_is_left() -> None:
    assert changed_since(word(SHOWN), structs.replace(SHOWN, program=None)) == NOBODY
    assert changed_since(word(SHOWN), DEAD) == NOBODY


def test_where_nobody_was_shown_nobody_is_who_is_meant() -> None:
    """A pane whose program has ended may be kept, and anybody be started in it."""
    assert word(DEAD) == "nobody"
    assert changed_since("nobody", DEAD) == ""
    assert changed_since("nobody", SHOWN) == AN_AGENT
    assert changed_since("nobody", SHELL) == ANOTHER_PROGRAM
    # Also one the daemon has not seen yet, and be it in the conversation of the one who had ended there.
    meant = meant_as(DEAD, "nobody")
    agent = There(first=AGENT, agent="claude", program=AGENT, programs=frozenset({AGENT}))
    assert stranger(meant, agent, lambda: SHOWN.identity) == AN_AGENT
    assert stranger(meant, There(first=FIRST, programs=frozenset({FIRST})), lambda: None) == ANOTHER_PROGRAM
    assert stranger(meant, There(), lambda: None) == ""


def test_who_hands_the_word_back_means_the_conversation_too() -> None:
    assert meant_as(SHOWN, word(SHOWN)).conversation == "c1"
    assert meant_as(SHOWN, None).conversation is None
    assert meant_as(structs.replace(SHOWN, identity=GUESSED), "x").conversation is None
    # Nobody is in it any more.
    assert meant_as(structs.replace(SHOWN, program=None), "x").conversation is None


@given(st.text(max_size=60))
def test_a_word_nobody_was_given_is_nobodys(odd: str) -> None:
    assert changed_since(odd, SHOWN) == ANOTHER_AGENT


@pytest.mark.parametrize(
    "who", [Who(program="a1"), Who(program="a1", conversation="b2"), Who(program="a1", conversation="b2", certain=True)]
)
def test_a_word_is_read_as_it_was_written(who: Who) -> None:
    assert read_who(str(who)) == who
