"""What an agent that waits for an answer shows, on recorded screens of all of them."""

from __future__ import annotations

import glob
import os

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.live.prompts import is_same, prompt_on
from perdure.live.typed import message
from tests.architecture.source import ROOT

SAMPLES = os.path.join(ROOT, "tests", "contract", "agents", "samples")


def recorded(*reasons: str) -> list[str]:
    """Return the names of recorded screens that ask for one of these."""
    found = []
    for path in sorted(glob.glob(os.path.join(SAMPLES, "*", "screens", "*.json"))):
        with open(path, "rb") as file:
            if msgspec.json.decode(file.read()).get("reason") in reasons:
                found.append(os.path.relpath(path, SAMPLES).removesuffix(".json"))
    return found


def screen(name: str) -> list[str]:
    with open(os.path.join(SAMPLES, f"{name}.txt"), encoding="utf-8") as file:
        return file.read().split("\n")


@pytest.mark.parametrize(
    ("name", "asked", "choices"),
    [
        (
            "claude-code-2.1.325/screens/approval-bash",
            "",
            None,
        ),
        (
            "codex-0.166.0/screens/approval-80x14",
            "$ touch /home/dev/ws/z9",
            [("1", ("1",)), ("2", ("2",))],
        ),
        (
            "gemini-0.61.0/screens/attention_fetch_100",
            "- http://127.0.0.1:9/x",
            [("1", ("1",)), ("2", ("2",)), ("3", ("3",))],
        ),
        (
            "aider-0.86.2/screens/approval_addfile_70",
            "Add file to the chat?",
            [(key, (key, "Enter")) for key in "ynasd"],
        ),
        (
            "cline-3.0.65/screens/approval_edit_60",
            "/home/dev/w/clp/made.txt",
            [("y", ("y",)), ("n", ("n",))],
        ),
        (
            "goose-1.34.0/screens/approval_shell_60",
            "command: sleep 4; echo done",
            [
                ("1", ("Enter",)),
                ("2", ("Down", "Enter")),
                ("3", ("Down", "Down", "Enter")),
                ("4", ("Down",) * 3 + ("Enter",)),
            ],
        ),
        (
            "simulant-1.0/screens/question_80",
            "$ make test",
            [("y", ("y", "Enter")), ("n", ("n", "Enter"))],
        ),
        # Two buttons, and nothing on the screen says which of them is chosen.
        ("opencode-1.18.33/screens/approval_bash_80x24", "", []),
    ],
)
def test_what_is_asked_and_how_it_is_answered(
    name: str, asked: str, choices: list[tuple[str, tuple[str, ...]]] | None
) -> None:
    prompt = prompt_on(screen(name))
    assert asked in prompt.text
    if choices is None:
        assert [each.key for each in prompt.choices][:2] == ["1", "2"]
    else:
        assert [(each.key, each.keys) for each in prompt.choices] == choices


@pytest.mark.parametrize("name", recorded("permission", "question"))
def test_every_answer_can_be_pressed_and_is_bound_to_what_is_shown(name: str) -> None:
    prompt = prompt_on(screen(name))
    assert prompt.text
    for choice in prompt.choices:
        assert message("", choice.keys).keys == choice.keys
        assert choice.label
    assert len({choice.key for choice in prompt.choices}) == len(prompt.choices)
    # What stands behind the choices may count seconds; what is asked does not change by that.
    assert is_same(prompt.text, prompt_on(screen(name)).text)


def test_a_list_that_was_only_said_is_no_choice() -> None:
    said = ["You could", "1. do this", "2. do that", *(f"line {number}" for number in range(15)), "Your turn (y/n)"]
    assert [each.key for each in prompt_on(said).choices] == ["y", "n"]


def test_what_moves_by_itself_is_not_part_of_what_is_asked() -> None:
    def at(seconds: str, sign: str) -> str:
        return prompt_on([f"{sign} Thinking", "Run rm -rf build?", f"since ({seconds}s)", "[y] Yes  [n] No"]).text

    assert at("1", "⠦") == at("12.5", "⠙")
    assert not is_same(at("1", "⠦"), prompt_on(["Run rm -rf builds?", "since", "[y] Yes  [n] No"]).text)


@given(st.lists(st.text(max_size=80), max_size=60))
def test_any_screen_can_be_asked(lines: list[str]) -> None:
    prompt = prompt_on(lines)
    assert is_same(prompt.text, prompt.text)
    assert prompt.keys_for("Escape")


@given(st.text(max_size=200), st.text(max_size=200))
def test_only_spaces_make_no_difference(one: str, other: str) -> None:
    assert is_same(one, other) == ("".join(one.split()) == "".join(other.split()))
