"""What a title alone says of a recorded screen, where an adapter promises that it is enough."""

from __future__ import annotations

import pytest

from perdure.agents import adapters
from perdure.model.screen import Screen, State
from perdure.ports import ShowsState
from tests.contract.agents.test_every_screen import RECORDED

SHOWING = {each.name: each for each in adapters() if isinstance(each, ShowsState) and each.title_tells}


@pytest.mark.parametrize("agent", SHOWING)
def test_a_title_that_says_busy_is_right_whatever_the_lines_are(agent: str) -> None:
    told = 0
    for path, label in RECORDED:
        reading = SHOWING[agent].read_screen(Screen(lines=(), title=label.title)) if label.agent == agent else None
        if reading is not None and reading.state is State.BUSY:
            told += 1
            # A viewer hides the lines, and no title.
            assert label.state == "busy" or label.frozen, path
    assert told


def test_no_title_alone_says_that_an_agent_is_at_rest() -> None:
    """Failed turns, limits and questions have the titles of rest."""
    for each in adapters():
        for title in {label.title for _, label in RECORDED}:
            reading = each.read_screen(Screen(lines=(), title=title))
            assert reading is None or reading.state is not State.IDLE, (each.name, title)


def test_an_empty_screen_without_a_title_says_nothing() -> None:
    assert [each.name for each in adapters() if each.read_screen(Screen(lines=(), title=""))] == []
