from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.agents import adapters
from perdure.agents._opening import opening
from perdure.model.agent import AgentSpec
from perdure.model.agent_check import mistakes
from perdure.ports import Begins

ALONE, JOINED = ("{prompt}",), ("--ask={prompt}",)


@given(st.text(), st.sampled_from([(), ALONE, JOINED]))
def test_a_prompt_is_one_word_of_the_command_line_or_none(prompt: str, form: tuple[str, ...]) -> None:
    words, carried = opening(("agent", "chat"), form, prompt)
    assert words[:2] == ("agent", "chat")
    assert words[2:] == (((form[0].removesuffix("{prompt}") + prompt),) if carried else ())


@pytest.mark.parametrize(
    "prompt", ["", "  ", "-p x", "--version now", "update", "a\0b", "x " * 40_000, "use sk-ant-api03-" + "a" * 90]
)
@pytest.mark.parametrize("form", [ALONE, JOINED])
def test_what_might_be_taken_for_something_else_is_left_to_be_typed(prompt: str, form: tuple[str, ...]) -> None:
    if (prompt, form) != ("update", JOINED):
        assert opening(("agent",), form, prompt) == (("agent",), False)


def test_a_prompt_that_talks_of_prompts_is_left_as_it_is() -> None:
    assert opening(("agent",), ALONE, "write {prompt} here") == (("agent", "write {prompt} here"), True)


def test_every_agent_can_be_started_by_a_name_it_is_known_by() -> None:
    for adapter in adapters():
        assert isinstance(adapter, Begins)
        words, carried = adapter.begin()
        assert words[0] in adapter.programs
        assert not carried


def test_one_without_words_for_it_says_so() -> None:
    carried = {each.name: isinstance(each, Begins) and each.begin("do this now")[1] for each in adapters()}
    assert all(carried[name] for name in ("claude", "codex", "gemini"))
    assert not carried["aider"]


@pytest.mark.parametrize(
    "spec", [AgentSpec(binaries=("ren",), begin=("other",)), AgentSpec(binaries=("ren",), prompt=("--ask",))]
)
def test_a_mistake_in_a_users_own_table_is_named(spec: AgentSpec) -> None:
    assert len(list(mistakes("ren", spec))) == 1
