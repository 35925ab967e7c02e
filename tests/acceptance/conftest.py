"""Agents for acceptance tests."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.acceptance.fake_agent import FakeAgent
from tests.conftest import PrivateHome
from tests.tmux_server import TmuxServer


@pytest.fixture
def fake_agent(private_home: PrivateHome) -> Callable[..., FakeAgent]:
    """Makes agents that only wait: on a server, or, with None, for the test to start itself."""

    def make(tmux: TmuxServer | None, name: str, *args: str, cwd: str | None = None) -> FakeAgent:
        agent = FakeAgent(private_home, name)
        return agent if tmux is None else agent.start(tmux, *args, cwd=cwd)

    return make
