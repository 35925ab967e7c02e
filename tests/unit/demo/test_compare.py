"""Before and after, pane by pane: an agent counts as back only when everything says so."""

from __future__ import annotations

import pytest
from msgspec import structs

from perdure.demo.compare import Row, Told, compare

AGENT = Row(
    session="api", window=0, pane=1, command="python3", agent="simulant", conversation="one", certain=True, task="look"
)
SHELL = Row(session="api", window=1, pane=0, command="sh", agent=None, conversation=None, certain=None, task=None)
TAIL = structs.replace(SHELL, command="tail")


def told(row: Row, result: str, why: str | None = None) -> Told:
    return Told(target=row.address, result=result, why=why)


def test_an_agent_in_the_same_conversation_is_verified() -> None:
    (line,) = compare([AGENT], [AGENT], [told(AGENT, "verified")])
    assert (line.pane, line.before, line.after, line.why) == ("api:0.1", "one", "one", "")
    assert line.is_verified


@pytest.mark.parametrize(
    ("after", "step", "why"),
    [
        ([structs.replace(AGENT, conversation="two")], told(AGENT, "verified"), "it is in another conversation"),
        ([structs.replace(AGENT, certain=False)], told(AGENT, "verified"), "it is not certain"),
        ([AGENT], told(AGENT, "unverified"), "it is not certain"),
        ([AGENT], told(AGENT, "failed", "it asks to log in"), "it asks to log in"),
        (
            [structs.replace(AGENT, agent=None, command="sh")],
            told(AGENT, "verified"),
            "simulant was there, now it is shell",
        ),
        ([], told(AGENT, "verified"), "the pane is not there"),
        ([AGENT], None, "the restore says nothing about it"),
    ],
)
def test_whatever_speaks_against_it_is_said(after: list[Row], step: Told | None, why: str) -> None:
    (line,) = compare([AGENT], after, [step] if step else [])
    assert line.why.startswith(why)
    assert not line.is_verified


def test_an_agent_nobody_knew_the_conversation_of_is_never_verified() -> None:
    unknown = structs.replace(AGENT, conversation=None)
    (line,) = compare([unknown], [unknown], [told(AGENT, "verified")])
    assert line.why == "its conversation was not known before"


def test_one_shell_is_as_good_as_another_and_a_program_is_not() -> None:
    after = [structs.replace(SHELL, command="bash")]
    assert [line.why for line in compare([SHELL], after, [told(SHELL, "done")])] == [""]
    assert [line.why for line in compare([TAIL], after, [told(TAIL, "done")])] == ["tail was there, now it is shell"]
