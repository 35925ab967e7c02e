"""A restore that was interrupted and gone on with: whatever was done is counted once."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime, timedelta

import httpx
import pytest
from msgspec import structs

from perdure.host.lock import held
from perdure.model.plan import Restore
from tests.conftest import PrivateHome
from tests.integration.api_here import Api, api_here
from tests.integration.looking import until_at_rest
from tests.integration.test_api_resources_snapshots import ended
from tests.perdure_cli import Perdure
from tests.tmux_server import TmuxServer

PROGRAMS = ("--programs", "all")


@pytest.fixture
def saved(tmux: TmuxServer, perdure: Perdure) -> str:
    """A snapshot of two panes whose server is gone."""
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "-x", "80", "-y", "24", "sleep", "1001")
    tmux.run("split-window", "-d", "-t", "work:0", "sleep", "1002")
    until_at_rest(tmux)
    id: str = perdure.ok("save", "--json").json["servers"][0]["snapshot"]
    tmux.kill9()
    perdure.ok("restore", "--from", id, *PROGRAMS)
    return id


async def interrupted(api: Api) -> Restore:
    """The restore of before, as it is when it is killed in the moment before its end is written down."""

    def reopen() -> Restore:
        store = api.world.daemon.rounds.world.store
        (restore,) = store.list_restores()
        store.begin_restore(structs.replace(restore, ended_at=None))
        return restore

    return await api.world.daemon.in_order(lambda rounds: reopen())


async def bring_back(client: httpx.AsyncClient, snapshot: str) -> dict[str, object]:
    begun = await client.post("/api/restores", json={"snapshot": snapshot, "programs": "all"})
    assert begun.status_code == 202, begun.text
    return dict(await ended(client, begun.json()["id"]))


def test_what_was_interrupted_and_gone_on_with_is_told_once(saved: str, tmux: TmuxServer) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            before = await interrupted(api)
            done = await bring_back(client, saved)
            assert done["state"] == "done"
            (row,) = (await client.get("/api/restores")).json()["items"]
            assert (row["id"], row["summary"]["panes"], row["summary"]["created"]) == (done["id"], 2, 2)
            (whole,) = api.world.store().list_restores()
            assert (whole.id, whole.ended_at is not None) == (before.id, True)
        # By another daemon it is told from the journal, once and with the same numbers.
        async with api_here() as api, api.client() as client:
            (told,) = (await client.get("/api/restores")).json()["items"]
            assert (told["id"], told["summary"]) == (before.id, row["summary"])
            again = (await client.get(f"/api/restores/{done['id']}")).json()
            assert (again["summary"], again["settled"], again["total"]) == (row["summary"], 2, 2)

    asyncio.run(go())
    assert len(tmux.run("list-panes", "-a").splitlines()) == 2


def test_what_was_interrupted_and_lost_with_its_server_is_told_for_itself(saved: str, tmux: TmuxServer) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            before = await interrupted(api)
            tmux.kill9()
            done = await bring_back(client, saved)
            rows = (await client.get("/api/restores")).json()["items"]
            assert [row["id"] for row in rows] == [done["id"], before.id]

    asyncio.run(go())


def test_one_that_could_not_begin_beside_another_does_not_hide_that(saved: str, private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            with held(os.path.join(private_home.state, f"restore-{os.getuid()}.lock"), "restore for somebody"):
                begun = (await client.post("/api/restores", json={"snapshot": saved})).json()
                began_at = datetime.fromisoformat(begun["began_at"]) + timedelta(microseconds=1)

                def at_work() -> Restore:
                    """Somebody in a terminal was first."""
                    store = api.world.daemon.rounds.world.store
                    (before,) = store.list_restores()
                    other = structs.replace(before, id="other", began_at=began_at, ended_at=None)
                    store.begin_restore(other)
                    return other

                await api.world.daemon.in_order(lambda rounds: at_work())
                failed = await ended(client, begun["id"])
            assert (failed["state"], failed["steps"]) == ("failed", [])
            rows = (await client.get("/api/restores")).json()["items"]
            assert {"other", failed["id"]} <= {row["id"] for row in rows}
        # Nor is what that has done told of it by the next daemon.
        async with api_here() as api, api.client() as client:
            told = (await client.get(f"/api/restores/{failed['id']}")).json()
            assert (told["state"], told["steps"], told["message"]) == ("failed", [], failed["message"])

    asyncio.run(go())
