"""Gemini's recorded screens without the title, which a user can turn off: less may be told then, but nothing else."""

from __future__ import annotations

import pytest

from perdure.agents.gemini import Gemini
from perdure.model.screen import Screen, State
from tests.contract.agents.test_every_screen import RECORDED, Label, shown

SCREENS = [(path, label) for path, label in RECORDED if label.agent == "gemini"]


@pytest.mark.parametrize("title", ["", "dev@box: ~/wk", "Gemini CLI (wk)"])
@pytest.mark.parametrize(("path", "label"), SCREENS, ids=[path.rpartition("/")[2] for path, _ in SCREENS])
def test_without_its_title_a_screen_says_the_same_or_nothing(path: str, label: Label, title: str) -> None:
    reading = Gemini().read_screen(Screen(lines=shown(path, label).lines, title=title))
    assert reading is None or (reading.state, reading.reason, reading.frozen) == (
        label.state,
        label.reason,
        label.frozen,
    )


def test_a_title_alone_does_not_make_an_idle_agent_of_whatever_covers_it() -> None:
    covered = Screen(lines=("~", "~", '"notes.md" 3L, 20C'), title="◇  Ready (wk)")
    assert Gemini().read_screen(covered) is None
    working = Gemini().read_screen(Screen(lines=("",), title="✦  Working… (wk)"))
    assert working is not None
    assert working.state is State.BUSY
