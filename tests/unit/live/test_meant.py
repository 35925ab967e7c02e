from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.agents import agent_of, roster
from perdure.live.meant import (
    AN_AGENT,
    ANOTHER_AGENT,
    ANOTHER_CONVERSATION,
    ANOTHER_PROGRAM,
    Meant,
    There,
    meant_by,
    program_of,
    stranger,
    there_in,
)
from perdure.model.agent import AgentSpec
from perdure.model.identity import Evidence, Identity
from perdure.model.process import Process
from perdure.model.run import Program
from perdure.tmux.wrap import Start, command
from tests.builders import a_process, an_identity
from tests.unit.live.timeline import a_run

FIRST, AGENT, ANOTHER = (Program(pid=pid, start_ticks=7 * pid) for pid in (10, 20, 30))
#: The numbers of processes are given again.
AGENTS_NUMBER = structs.replace(AGENT, start_ticks=AGENT.start_ticks + 1)
MEANT = Meant(agent="some", first=FIRST, program=AGENT, identity=an_identity(conversation="c1"))
SHELL = Meant(first=FIRST)
KNOWN = roster({"some": AgentSpec(binaries=("some",))})


def there(program: Program | None = AGENT, agent: str | None = "some", **changes: Any) -> There:
    now = There(first=FIRST, agent=agent if program else None, program=program)
    return structs.replace(now, **changes)


def being_in(conversation: str | None, **changes: Any) -> Callable[[], Identity | None]:
    return lambda: an_identity(conversation=conversation, **changes) if conversation else None


def never() -> Identity | None:
    raise AssertionError("it was found out without need")


# -- the very program -------------------------------------------------------------------------------------------------


def test_the_program_that_was_shown_may_hear_it_and_nothing_more_is_found_out() -> None:
    assert stranger(MEANT, there(), never) == ""


@pytest.mark.parametrize("program", [ANOTHER, AGENTS_NUMBER])
def test_another_program_may_not_whatever_it_is_called(program: Program) -> None:
    assert stranger(MEANT, there(program), being_in("c2")) == ANOTHER_AGENT
    assert stranger(MEANT, there(program), being_in(None)) == ANOTHER_AGENT


def test_a_program_that_has_become_another_agent_may_not() -> None:
    assert stranger(MEANT, there(AGENT, "other"), being_in(None)) == ANOTHER_AGENT


def test_the_same_conversation_in_another_program_may() -> None:
    assert stranger(MEANT, there(ANOTHER, first=ANOTHER), being_in("c1")) == ""


@pytest.mark.parametrize(
    "claim",
    [
        {"certain": False},
        {"evidence": Evidence.GUESS},
        {"profile": "elsewhere"},
        {"agent": "other"},
    ],
)
def test_what_is_not_certainly_the_same_conversation_is_another(claim: dict[str, Any]) -> None:
    now = an_identity(conversation="c1")
    assert stranger(MEANT, there(ANOTHER), lambda: structs.replace(now, **claim)) == ANOTHER_AGENT
    doubtful = structs.replace(MEANT, identity=structs.replace(now, **claim))
    assert stranger(doubtful, there(ANOTHER), lambda: now) == ANOTHER_AGENT


# -- launchers --------------------------------------------------------------------------------------------------------


def test_what_was_shown_while_it_started_is_who_it_has_started() -> None:
    below = there(ANOTHER, launchers=(AGENT, FIRST))
    assert stranger(MEANT, below, being_in(None)) == ""
    assert stranger(MEANT, below, being_in("c1")) == ""
    assert stranger(structs.replace(MEANT, identity=an_identity(conversation=None)), below, being_in("c2")) == ""


def test_a_launcher_that_has_started_another_conversation_is_not_who_was_shown() -> None:
    assert stranger(MEANT, there(ANOTHER, launchers=(AGENT, FIRST)), being_in("c2")) == ANOTHER_AGENT


def test_another_below_the_same_launcher_is_another() -> None:
    assert stranger(MEANT, there(ANOTHER, launchers=(FIRST,)), being_in(None)) == ANOTHER_AGENT


# -- shells -----------------------------------------------------------------------------------------------------------


def test_what_a_shell_was_to_be_told_no_agent_hears() -> None:
    assert stranger(SHELL, there(), being_in("c1")) == AN_AGENT


def test_a_shell_is_the_one_that_was_there() -> None:
    assert stranger(SHELL, there(None), never) == ""
    assert stranger(SHELL, there(None, first=ANOTHER), never) == ANOTHER_PROGRAM
    # Of those whose processes cannot be seen nothing can be said.
    assert stranger(SHELL, there(None, first=None), never) == ""
    assert stranger(Meant(), there(None), never) == ""


def test_an_agent_that_had_ended_is_back_in_its_conversation_alone() -> None:
    ended = structs.replace(MEANT, program=None)
    assert stranger(ended, there(ANOTHER), being_in("c1")) == ""
    assert stranger(ended, there(ANOTHER), being_in("c2")) == ANOTHER_AGENT
    assert stranger(ended, there(None), never) == ""


# -- a conversation that is named -------------------------------------------------------------------------------------


def test_whoever_names_no_conversation_means_the_agent_wherever_it_went_on() -> None:
    assert stranger(MEANT, there(), being_in("c2", evidence=Evidence.REGISTRY)) == ""


@pytest.mark.parametrize(
    ("named", "was", "now", "why"),
    [
        ("c1", "c1", None, ""),
        ("c1", "c2", None, ANOTHER_CONVERSATION),
        ("c1", None, None, ANOTHER_CONVERSATION),
        ("c1", "c1", ("c1", Evidence.REGISTRY), ""),
        ("c1", "c1", ("c2", Evidence.REGISTRY), ANOTHER_CONVERSATION),
        ("c2", "c1", ("c2", Evidence.REGISTRY), ""),
        # How it was started does not tell where it went on.
        ("c2", "c2", ("c1", Evidence.ARGV), ""),
        ("c1", "c2", ("c1", Evidence.ARGV), ANOTHER_CONVERSATION),
    ],
)
def test_the_same_program_must_still_be_in_a_conversation_that_is_named(
    named: str, was: str | None, now: tuple[str, Evidence] | None, why: str
) -> None:
    meant = structs.replace(MEANT, identity=an_identity(conversation=was), conversation=named)
    is_in = being_in(None) if now is None else being_in(now[0], evidence=now[1])
    assert stranger(meant, there(), is_in) == why


def test_another_program_must_certainly_be_in_a_conversation_that_is_named() -> None:
    meant = structs.replace(MEANT, conversation="c2")
    assert stranger(meant, there(ANOTHER), being_in("c2")) == ""
    assert stranger(meant, there(ANOTHER), being_in("c1")) == ANOTHER_AGENT
    assert stranger(meant, there(ANOTHER, launchers=(AGENT,)), being_in(None)) == ANOTHER_AGENT
    assert stranger(meant, there(None), never) == ANOTHER_CONVERSATION


# -- always -----------------------------------------------------------------------------------------------------------

programs = st.sampled_from([FIRST, AGENT, ANOTHER, AGENTS_NUMBER])
identities = st.builds(
    an_identity,
    agent=st.sampled_from(["some", "other"]),
    conversation=st.sampled_from([None, "c1", "c2"]),
    certain=st.booleans(),
    evidence=st.sampled_from(Evidence),
)
meants = st.builds(
    lambda first, program, identity, conversation: Meant(
        agent=identity.agent if identity else None,
        first=first,
        program=program if identity else None,
        identity=identity,
        conversation=conversation,
    ),
    st.none() | programs,
    st.none() | programs,
    st.none() | identities,
    st.sampled_from([None, "c1", "c2"]),
)


@given(meants, programs, st.none() | identities, st.lists(programs, max_size=2))
def test_no_other_program_hears_anything_unless_it_is_certainly_in_the_conversation_or_was_started_by_who_is_meant(
    meant: Meant, program: Program, now: Identity | None, launchers: list[Program]
) -> None:
    agent = now.agent if now is not None else "some"
    if stranger(meant, there(program, agent, launchers=tuple(launchers)), lambda: now):
        return
    assert meant.identity is not None
    if program == meant.program:
        return
    is_in = now is not None and now.certain and now.evidence is not Evidence.GUESS and now.conversation is not None
    assert is_in or meant.program in launchers
    if is_in and now is not None and meant.identity.certain and meant.identity.evidence is not Evidence.GUESS:
        wanted = meant.conversation or meant.identity.conversation or now.conversation
        assert now.conversation == wanted


# -- who is there -----------------------------------------------------------------------------------------------------


def seen(*tree: Process) -> There:
    return there_in(tree, agent_of(tree, KNOWN), KNOWN)


def a_shell(pid: int = 10, *argv: str, **changes: Any) -> Process:
    return a_process(pid, comm="sh", exe="/bin/sh", argv=argv or ("-sh",), **changes)


def an_agent(pid: int, ppid: int, **changes: Any) -> Process:
    return a_process(pid, **{"ppid": ppid, "comm": "some", "exe": "/opt/some", "argv": ("some",), **changes})


def test_a_shell_at_its_prompt_launches_no_agent() -> None:
    shell, agent = a_shell(), an_agent(20, 10)
    now = seen(shell, agent)
    assert (now.first, now.agent, now.program) == (program_of(shell), "some", program_of(agent))
    assert now.launchers == ()
    assert now.programs == {program_of(shell), program_of(agent)}


def test_what_a_pane_was_made_with_launches_its_agent_until_a_shell_is_left() -> None:
    wrapper = a_shell(10, *command(Start(argv=("some",), name="some")))
    agent = an_agent(20, 10)
    assert seen(wrapper, agent).launchers == (program_of(wrapper),)
    # The shell that is left has the same number, and whoever is started from it is somebody else.
    meant = Meant(agent="some", first=program_of(wrapper), program=program_of(wrapper))
    assert stranger(meant, seen(wrapper, agent), being_in(None)) == ""
    assert stranger(meant, seen(a_shell(), an_agent(30, 10)), being_in(None)) == ANOTHER_AGENT


def test_an_empty_pane_has_nobody() -> None:
    assert seen() == There()


def test_whoever_was_shown_a_run_means_what_it_was_then() -> None:
    run = a_run(first=FIRST, program=AGENT, identity=an_identity())
    meant = meant_by(run, "c9")
    assert (meant.agent, meant.first, meant.program, meant.identity) == ("some", FIRST, AGENT, run.identity)
    assert meant.conversation == "c9"
    assert meant_by(a_run(first=FIRST, program=None, identity=None)) == SHELL
