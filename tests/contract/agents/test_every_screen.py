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


def labelled_of(agent: str) -> list[tuple[str, Label]]:
    return [(path, label) for path, label in RECORDED if label.agent == agent]


# Of one agent all at once: there are more than a thousand, and to begin and end a test takes longer than to read one.
each_agent = pytest.mark.parametrize("agent", sorted({label.agent for _, label in RECORDED}))

Said = tuple[str | None, str | None, bool]
NOTHING: Said = (None, None, False)


@each_agent
def test_a_recorded_screen_yields_its_label(agent: str) -> None:
    (adapter,) = (adapter for adapter in adapters() if adapter.name == agent)
    wrong: dict[str, object] = {}
    for path, label in labelled_of(agent):
        screen = shown(path, label)
        reading = adapter.read_screen(screen)
        said = (reading.state, reading.reason, reading.frozen) if reading else NOTHING
        if said != (label.state, label.reason, label.frozen):
            wrong[path] = (reading, "and not", label)
        padded = Screen(lines=(*screen.lines, "", "", ""), title=screen.title)
        if (below := adapter.read_screen(padded)) != reading:
            wrong[f"{path}, with empty lines below"] = (below, "and not", reading)
    assert wrong == {}


@each_agent
def test_a_screen_of_which_nobody_knows_whose_it_is_yields_its_label_or_nothing(agent: str) -> None:
    wrong = {}
    for path, label in labelled_of(agent):
        said = judge_anybodys(shown(path, label), adapters())
        right = {(label.state, label.reason, label.frozen), NOTHING}
        if said.agent not in (agent, None) or (said.state, said.reason, said.frozen) not in right:
            wrong[path] = (said, "and not", label)
    assert wrong == {}


@each_agent
def test_without_its_title_a_screen_is_nobody_elses_either(agent: str) -> None:
    wrong = {}
    for path, label in labelled_of(agent):
        told = whose(Screen(lines=shown(path, label).lines, title="box"), adapters())
        if told.agent is not None and told.agent.name != agent:
            wrong[path] = told
    assert wrong == {}


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
