"""What a title alone tells."""

from __future__ import annotations

import pytest

from perdure.agents import simulant
from perdure.daemon.seeing import Tenant, by_title
from perdure.model.observation import Source
from perdure.model.run import RunState
from perdure.model.sighting import Seen
from perdure.ports import AgentAdapter
from tests.builders import NOON, a_process, a_server


def _tenant(adapter: AgentAdapter) -> Tenant:
    process = a_process()
    seen = Seen(server=a_server(), pane="%1", title="", process=process, tree=(process,))
    return Tenant(adapter=adapter, seen=seen, view=None, claim=(None, False))


def test_a_title_that_turns_says_that_its_agent_is_busy() -> None:
    reading = by_title(_tenant(simulant.ADAPTER), "⠹ look into it · simulant", NOON)
    assert reading is not None
    assert (reading.source, reading.state) == (Source.SCREEN, RunState.BUSY)


@pytest.mark.parametrize("title", ["", "vm", "◈ look into it · simulant", "◈ question · simulant"])
def test_any_other_title_says_nothing_without_the_lines(title: str) -> None:
    assert by_title(_tenant(simulant.ADAPTER), title, NOON) is None
