"""Who is in a pane, over HTTP and in `perdure ls --json`: the same of both, also when an agent is there no more."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from perdure.model.run import Run, RunState
from tests.acceptance.kit import only_json
from tests.acceptance.simulants import Simulants
from tests.conftest import PrivateHome
from tests.integration.api_here import api_here
from tests.integration.watching_here import await_run
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

#: What both tell of who is in a pane.
BOTH = (
    *("agent", "conversation", "certain", "evidence", "profile", "prompted", "conversation_title", "transcript"),
    *("model", "task", "context_used", "began_at", "pane_id", "pid"),
)


def told(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in BOTH}


@pytest.mark.parametrize("how", ["a shell is started in its pane", "it ends"])
def test_a_shell_that_is_left_is_not_the_agent_that_was_there(
    perdure: Perdure, tmux: TmuxServer, private_home: PrivateHome, how: str
) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "bash --norc")
    tmux.run("send-keys", "-t", "work:0", str(agents.path), "Enter")
    agents.await_running(1, 0)
    [conversation] = agents.running()

    async def go() -> None:
        async with api_here() as api, api.client() as client:

            async def row(run: Run) -> dict[str, Any]:
                found: dict[str, Any] = msgspec.json.decode((await client.get(f"/api/runs/{run.id}")).content)
                return found

            def is_there(run: Run) -> bool:
                return run.program is not None and run.status.state is RunState.IDLE

            run = await await_run(api.world.daemon, "work:0.0", is_there)
            there = await row(run)
            assert (there["agent"], there["conversation"], there["certain"]) == ("simulant", conversation, True)
            assert (there["last_agent"], there["last_conversation"]) == (None, None)
            if how == "it ends":
                tmux.run("send-keys", "-t", "work:0", "/quit", "Enter")
            else:
                tmux.run("respawn-pane", "-k", "-t", "work:0", "bash --norc")
            run = await await_run(api.world.daemon, "work:0.0", lambda run: run.program is None)
            left = await row(run)
            for name in ("agent", "conversation", "certain", "evidence", "prompted", "transcript"):
                assert left[name] is None, name
            assert (left["last_agent"], left["last_conversation"]) == ("simulant", conversation)
            [shown] = only_json(await asyncio.to_thread(perdure.ok, "ls", "--json"))["panes"]
            assert told(shown) == told(await row(run))
            by_agent = await client.get("/api/runs", params={"agent": "simulant"})
            assert by_agent.json()["items"] == []

    asyncio.run(go())
    agents.end_all()


def test_of_a_run_that_is_over_it_is_told_who_was_in_it(tmux: TmuxServer, private_home: PrivateHome) -> None:
    agents = Simulants(private_home)
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", agents.path)
    tmux.run("new-session", "-d", "-s", "other", "-n", "one")
    agents.await_running(1, 0)
    [conversation] = agents.running()

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = await await_run(api.world.daemon, "work:0.0", lambda run: run.program is not None)
            tmux.run("kill-session", "-t", "work")
            async with asyncio.timeout(30):
                while (over := (await client.get(f"/api/runs/{run.id}")).json())["ended_at"] is None:
                    await asyncio.sleep(0.05)
            told = (over["agent"], over["conversation"], over["last_agent"])
            assert told == ("simulant", conversation, None)

    asyncio.run(go())
    agents.end_all()
