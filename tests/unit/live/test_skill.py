from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._records import turn
from perdure.live.skill import last_skill, skill_in
from tests.unit.live.turns import asked, called, said


@pytest.mark.parametrize(
    ("text", "skill"),
    [
        ("/commit all of it", "commit"),
        ("/Review", "review"),
        ("/plugin:do-it now", "plugin:do-it"),
        ("$describe the module", "describe"),
        ("<command-name>/clear</command-name>\n<command-message>clear</command-message>", "clear"),
        ("<skill>\n<name>domain-planner</name>\n<path>/home/dev/x</path>\n</skill>", "domain-planner"),
        ("/tmp is full", None),
        ("/home/dev/a.py is broken", None),
        ("/etc", None),
        ("$HOME is wrong", None),
        ("$5 is too much", None),
        ("look at /commit", None),
        ("a line\n/commit", None),
        ("$ ls", None),
        ("<name>no-skill</name>", None),
    ],
)
def test_which_skill_was_asked_for(text: str, skill: str | None) -> None:
    assert skill_in(asked(text)) == skill_in(turn("system", text)) == skill


def test_a_skill_an_agent_takes_up_itself_counts_and_the_last_wins() -> None:
    turns = [asked("/review"), called("Skill", "Pdf"), said("/commit is what I would say")]
    assert last_skill(turns) == "pdf"
    assert last_skill([*turns, asked("/commit")]) == "commit"
    assert last_skill([*turns, {**asked("/other"), "agent": "sub"}]) == "pdf"
    assert skill_in(called("Read, Skill", "a.py\ndocx")) == "docx"
    assert skill_in(called("Bash", "ls")) is None
    assert last_skill([]) is None


@given(st.text(alphabet="<skill>/name$ commandn-\n", max_size=80))
def test_a_skill_is_always_a_name(text: str) -> None:
    found = skill_in(asked(text))
    assert found is None or (found == found.lower() and " " not in found and found)
