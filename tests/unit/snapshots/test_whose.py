"""Whose screen it is by its signs, and what is said of it then."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents._spec import Ordinary
from perdure.model.agent import AgentSpec, ScreenRule
from perdure.model.screen import Screen
from perdure.snapshots.explain import judge_anybodys
from perdure.snapshots.whose import whose


def agent(name: str, *signs: str, match: str = "stop it", state: str = "busy") -> Ordinary:
    rule = ScreenRule(id="rule", match=match, state=state)
    return Ordinary(name, AgentSpec(binaries=(name,), signs=signs, screen=(rule,)))


REN = agent("ren", "title:^ren: ", r"^\[ren\]", r"^ren \d+%$")
KO = agent("ko", "title:^ko$", r"^<ko", state="idle")
MU = agent("mu", match="^mu$", state="error")
KNOWN = (REN, KO, MU)


def screen(*lines: str, title: str = "box") -> Screen:
    return Screen(lines=lines, title=title)


@pytest.mark.parametrize(
    ("shown", "told"),
    [
        (screen("[ren] 1.0", "words"), "ren"),
        (screen("words", title="ren: words"), "ren"),
        (screen("[ren] 1.0", title="ren: words"), "ren"),
        # What is further up is quoted or left over, however much of it there is.
        (screen("[ren] 1.0", "ren 9%", "<ko>"), "ko"),
        (screen("<ko>", "<ko>", "ren 9%", "words"), "ren"),
        # A line may be padded, and the screen may end in empty lines.
        (screen("ren 9%   ", "", "  "), "ren"),
    ],
)
def test_the_lowest_sign_and_the_title_tell(shown: Screen, told: str) -> None:
    found = whose(shown, KNOWN).agent
    assert found is not None
    assert found.name == told


def test_the_title_tells_which_of_two_signs_in_one_line_it_is() -> None:
    known = (agent("ren", "title:^ren: ", "%"), agent("ko", "title:^ko$", "9"))
    assert whose(screen("9%"), known).agent is None
    assert whose(screen("9%", title="ko"), known).agent is known[1]


@pytest.mark.parametrize(
    "shown",
    [
        screen("<ko>", title="ren: words"),
        # Even when the title's agent has a sign further up.
        screen("ren 9%", "<ko>", title="ren: words"),
    ],
)
def test_a_title_against_the_lowest_sign_tells_nobody_and_says_so(shown: Screen) -> None:
    told = whose(shown, KNOWN)
    assert told.agent is None
    assert told.because == ("ren: the title says 'ren:'", "ko: '<ko' is the lowest sign of an agent")


def test_the_signs_are_searched_for_where_they_belong() -> None:
    assert whose(screen("ren: words", "ko"), KNOWN).because == ()
    assert whose(screen(title="[ren] 1.0"), KNOWN).because == ()


def test_only_the_agent_whose_screen_it_is_is_asked() -> None:
    """Both rules fit; without signs they would contradict each other."""
    said = judge_anybodys(screen("[ren]", "stop it"), KNOWN)
    assert (said.agent, said.state, said.rule) == ("ren", "busy", "ren.rule")
    assert said.because[0] == "ren: '[ren]' is the lowest sign of an agent"
    assert said.because[-1] == "ren.rule: the bottom says 'stop it'"


def test_whose_rules_say_nothing_is_not_judged_by_others() -> None:
    said = judge_anybodys(screen("<ko>", "mu"), KNOWN)
    assert (said.agent, said.state, said.rule) == ("ko", None, None)
    assert said.because == ("ko: '<ko' is the lowest sign of an agent", "no rule fits this screen")


def test_signs_that_contradict_each_other_say_nothing() -> None:
    said = judge_anybodys(screen("<ko>", "stop it", title="ren: words"), KNOWN)
    assert (said.agent, said.state, said.rule) == (None, None, None)
    assert said.because[-1] == "signs of several agents; say whose screen it is"


def test_without_signs_everybody_is_asked() -> None:
    said = judge_anybodys(screen("words", "mu"), KNOWN)
    assert (said.agent, said.state) == ("mu", "error")
    said = judge_anybodys(screen("stop it"), KNOWN)
    assert (said.agent, said.state) == (None, None)
    assert "disagree" in said.because[0]


@given(
    st.lists(st.text(alphabet="[ren]<ko 9%\n\u276f", max_size=12), max_size=6), st.sampled_from(["", "ko", "ren: a"])
)
def test_what_is_told_is_told_by_a_sign_and_by_none_against_it(lines: list[str], title: str) -> None:
    told = whose(screen(*lines, title=title), KNOWN)
    agents = {why.partition(":")[0] for why in told.because}
    assert told.agent is None or told.agent.name in agents
    assert told.agent is not None or len(agents) != 1
