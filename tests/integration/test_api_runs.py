"""Runs over HTTP, of real panes."""

from __future__ import annotations

import asyncio

from tests.integration.api_here import api_here, caller
from tests.integration.watching_here import await_run
from tests.tmux_server import TmuxServer


def test_the_runs_of_a_user_are_listed_and_nobody_elses(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go() -> None:
        async with api_here() as api:
            run = await await_run(api.world.daemon, "work:0.0")
            async with api.client() as client:
                listed = (await client.get("/api/runs")).json()
                assert [each["id"] for each in listed["items"]] == [run.id]
                assert listed["items"][0]["target"] == "work:0.0"
                assert listed["next"] is None
                assert (await client.get(f"/api/runs/{run.id}")).json()["run"] == run.id
                assert (await client.get("/health")).json()["status"] == "ok"
                missing = await client.get("/api/runs/r999")
                assert missing.status_code == 404
                assert missing.json()["code"] == "NOT_FOUND"
            async with api.client(caller(uid=54321)) as client:
                assert (await client.get("/api/runs")).json()["items"] == []
                assert (await client.get(f"/api/runs/{run.id}")).status_code == 404

    asyncio.run(go())


def test_a_list_that_has_not_changed_is_not_told_again(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go() -> None:
        async with api_here() as api:
            await await_run(api.world.daemon, "work:0.0")
            async with api.client() as client:
                first = await client.get("/api/runs")
                again = await client.get("/api/runs", headers={"If-None-Match": first.headers["etag"]})
                assert (again.status_code, again.content) == (304, b"")

    asyncio.run(go())
