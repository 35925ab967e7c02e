"""Every recorded screen yields its label, and is taken for no other agent's when nobody says whose it is.

A label is a `.json` beside the `.txt` with the screen's lines, as `perdure explain --record` writes them: agent, title,
state (null when a screen alone cannot tell), reason and frozen. Whoever sees a wrong status adds the two files with
the right label, and then the rule.
"""

from __future__ import annotations

import os

import msgspec
import pytest

from perdure.agents import adapters
from perdure.model.screen import Screen
from perdure.snapshots.explain import judge_anybodys
from perdure.snapshots.whose import whose
from tests.contract.agents import samples


class Label(msgspec.Struct, kw_only=True):
    """What a person who saw the program says of its screen."""

    agent: str
    title: str = ""
    state: str | None
    reason: str | None = None
    frozen: bool = False


def recorded() -> list[tuple[str, Label]]:
    found = []
    for folder, _, names in sorted(os.walk(samples.FOLDER)):
        for name in sorted(names):
            if name.endswith(".json") and os.path.basename(folder) == "screens":
                path = os.path.join(folder, name)
                with open(path, "rb") as file:
                    found.append((path.removesuffix(".json"), msgspec.json.decode(file.read(), type=Label)))
    return found


RECORDED = recorded()


def shown(path: str, label: Label) -> Screen:
    with open(f"{path}.txt", encoding="utf-8") as file:
        return Screen(lines=tuple(file.read().split("\n")), title=label.title)


each_screen = pytest.mark.parametrize(
    ("path", "label"), RECORDED, ids=[os.path.relpath(path, samples.FOLDER) for path, _ in RECORDED]
)


@each_screen
def test_a_recorded_screen_yields_its_label(path: str, label: Label) -> None:
    (adapter,) = (adapter for adapter in adapters() if adapter.name == label.agent)
    reading = adapter.read_screen(shown(path, label))
    said = (reading.state, reading.reason, reading.frozen) if reading else (None, None, False)
    assert said == (label.state, label.reason, label.frozen), reading
    screen = shown(path, label)
    padded = Screen(lines=(*screen.lines, "", "", ""), title=screen.title)
    assert adapter.read_screen(padded) == reading


@each_screen
def test_a_screen_of_which_nobody_knows_whose_it_is_yields_its_label_or_nothing(path: str, label: Label) -> None:
    said = judge_anybodys(shown(path, label), adapters())
    assert said.agent in (label.agent, None), said
    assert (said.state, said.reason, said.frozen) in {
        (label.state, label.reason, label.frozen),
        (None, None, False),
    }, said


@each_screen
def test_without_its_title_a_screen_is_nobody_elses_either(path: str, label: Label) -> None:
    told = whose(Screen(lines=shown(path, label).lines, title="box"), adapters())
    assert told.agent is None or told.agent.name == label.agent, told


def test_of_nearly_every_screen_its_signs_tell_whose_it_is() -> None:
    verdicts = [(judge_anybodys(shown(path, label), adapters()), label) for path, label in RECORDED]
    known = [label for said, label in verdicts if said.agent == label.agent]
    right = [label for said, label in verdicts if (said.state, said.frozen) == (label.state, label.frozen)]
    assert len(known) > len(RECORDED) * 0.97
    assert len(right) > len(RECORDED) * 0.98


def test_every_screen_has_a_label_and_every_label_a_screen() -> None:
    labelled = {path for path, _ in RECORDED}
    screens = {
        os.path.join(folder, name.removesuffix(".txt"))
        for folder, _, names in os.walk(samples.FOLDER)
        if os.path.basename(folder) == "screens"
        for name in names
        if name.endswith(".txt")
    }
    assert screens == labelled
