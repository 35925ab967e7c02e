"""Runs over HTTP, of real panes."""

from __future__ import annotations

import asyncio
import os
import re
from datetime import datetime, timedelta

import pytest
from msgspec import structs

from perdure.cli.daemon_status import DaemonStatus
from perdure.daemon import protocol
from perdure.daemon.rounds import Rounds
from perdure.errors import StoreUnusable
from perdure.host import places
from perdure.model.decoding import converted
from perdure.model.run import Run, RunState
from perdure.store import open_store
from perdure.store.store import Store
from tests.conftest import PrivateHome
from tests.integration.api_here import api_here, caller
from tests.integration.watching_here import await_run
from tests.tmux_server import PATIENCE, TmuxServer


def is_at_rest(run: Run) -> bool:
    return run.status.state is RunState.IDLE


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
            await await_run(api.world.daemon, "work:0.0", is_at_rest)
            async with api.client() as client, asyncio.timeout(PATIENCE):
                while True:
                    first = await client.get("/api/runs")
                    again = await client.get("/api/runs", headers={"If-None-Match": first.headers["etag"]})
                    # Something may have changed just then.
                    if again.status_code == 304:
                        break
                    assert again.headers["etag"] != first.headers["etag"]
                assert again.content == b""

    asyncio.run(go())


def test_a_store_that_was_put_in_the_place_of_another_is_the_one_that_is_read(
    private_home: PrivateHome, tmux: TmuxServer
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go() -> None:
        async with api_here() as api:
            # Nothing more is written of it then.
            await await_run(api.world.daemon, "work:0.0", is_at_rest)
            assert await api.world.read(lambda store: store.last_event()) > 0
            for name in os.listdir(private_home.state):
                if name.startswith("perdure.db"):
                    os.rename(os.path.join(private_home.state, name), os.path.join(private_home.home, name))
            open_store(places.store_url(os.environ, private_home.state), state_dir=private_home.state).close()
            assert await api.world.read(lambda store: store.list_runs()) == ()

    asyncio.run(go())


def test_runs_and_numbers_are_told_while_the_store_cannot_be_used(
    private_home: PrivateHome, tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            await await_run(api.world.daemon, "work:0.0")

            def unusable() -> Store:
                raise StoreUnusable("The disk is full.")

            monkeypatch.setattr(api.world, "store", unusable)
            assert len((await client.get("/api/runs")).json()["items"]) == 1
            assert "perdure_store_up 0" in (await client.get("/metrics")).text
            refused = await client.get("/api/runs", params={"over": True})
            assert (refused.status_code, refused.json()["code"]) == (503, "STORE_UNUSABLE")
            assert refused.json()["message"] == "The disk is full."

    asyncio.run(go())


def test_it_is_told_that_the_store_cannot_be_written_and_since_when(
    tmux: TmuxServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    def full(*_: object, **__: object) -> None:
        raise StoreUnusable("The disk under /home/dev is full.")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            await await_run(api.world.daemon, "work:0.0")
            fine = (await client.get("/health")).json()
            assert (fine["status"], fine["problem"], fine["since"]) == ("ok", None, None)

            async def until(status: str) -> dict[str, str]:
                async with asyncio.timeout(PATIENCE):
                    while (said := (await client.get("/health")).json())["status"] != status:
                        await asyncio.sleep(0.05)
                return dict(said)

            before = api.world.now()
            with monkeypatch.context() as patch:
                for verb in ("record", "new_runs"):
                    patch.setattr(Store, verb, full)
                tmux.run("new-session", "-d", "-s", "more", "-n", "two")
                said = await until("degraded")
                assert before <= datetime.fromisoformat(said["since"]) <= api.world.now()
                # What it is that is wrong is told to nobody who may not know.
                assert "store cannot be written" in said["problem"]
                assert "/home/dev" not in said["problem"]
                status = await api.world.answers.answer(protocol.AskStatus(), os.getuid())
                assert "The disk under /home/dev is full." in status["problem"]
                assert status["problem_since"] == datetime.fromisoformat(said["since"])
                told = converted(status, DaemonStatus, strict=False).sentence(status["problem_since"])
                assert told.endswith("The disk under /home/dev is full (for 0 s)")
                assert [run.place.session for run in api.world.daemon.rounds.current.runs] == ["work"]
            await until("ok")
            await await_run(api.world.daemon, "more:0.0")

    asyncio.run(go())


def test_of_those_that_are_over_only_the_latest_are_told(tmux: TmuxServer) -> None:
    """Three months of them are kept; whoever shows the last day asks for that."""
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = await await_run(api.world.daemon, "work:0.0")
            now = api.world.now()

            def note(rounds: Rounds) -> None:
                over = [
                    structs.replace(run, id=f"r{number}", ended_at=now - timedelta(days=days))
                    for number, days in ((50, 80), (51, 2), (52, 0.5))
                ]
                rounds.world.store.record(over, [])

            await api.world.daemon.in_order(note)

            async def told(**params: str | bool) -> list[str]:
                answer = await client.get("/api/runs", params=params)
                assert answer.status_code == 200, answer.text
                return [each["id"] for each in answer.json()["items"]]

            yesterday = (now - timedelta(days=1)).isoformat()
            assert await told() == [run.id]
            assert await told(over=True) == [run.id, "r50", "r51", "r52"]
            assert await told(over=True, ended_after=yesterday) == [run.id, "r52"]
            # Whoever asks for some of them wants them.
            assert await told(ended_after=yesterday.replace("+00:00", "Z")) == [run.id, "r52"]
            assert await told(ended_after=(now - timedelta(days=3)).isoformat(), session="other") == []
            for wrong in ("yesterday", "", "2026-11-15T18:30:00", "0001-01-01T00:00:00+14:00", "2026-13-01T00:00:00Z"):
                refused = await client.get("/api/runs", params={"ended_after": wrong})
                assert (refused.status_code, refused.json()["code"]) == (400, "USAGE_ERROR"), wrong
                assert refused.json()["message"].endswith(".")

    asyncio.run(go())


def test_how_everything_stands_can_be_measured(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", 'a "name"', "-n", "one", "exec cat")

    async def go() -> None:
        async with api_here() as api:
            await await_run(api.world.daemon, 'a "name":0.0')
            async with api.client() as client:
                told = await client.get("/metrics")
                assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
                lines = told.text.splitlines()
                assert all(
                    re.fullmatch(
                        r'# (HELP|TYPE) \S+ .+|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? [-+.e0-9]+', line
                    )
                    for line in lines
                )
                values = {line.split(" ")[0]: float(line.split(" ")[1]) for line in lines if not line.startswith("#")}
                assert sum(value for name, value in values.items() if name.startswith("perdure_runs{")) == 1
                assert values["perdure_resident_memory_bytes"] > 1 << 20
                assert "name" not in told.text
            async with api.client(caller(uid=54321)) as client:
                others = (await client.get("/metrics")).text
                assert "perdure_runs{" not in others
                assert "resident" not in others

    asyncio.run(go())


def test_the_description_of_all_routes_is_openapi_3_1_and_names_every_failure() -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            schema = (await client.get("/schema/openapi.json")).json()
            assert schema["openapi"].startswith("3.1")
            assert {"/api/runs", "/api/runs/{id}/answer", "/api/snapshots", "/metrics", "/health"} <= set(
                schema["paths"]
            )
            assert schema["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
            assert schema["security"] == [{"token": []}]
            assert schema["paths"]["/health"]["get"]["security"] == [{}]
            for path, operations in schema["paths"].items():
                for method, operation in operations.items():
                    said = operation["responses"]
                    assert operation.get("summary"), (method, path)
                    if path == "/health":
                        continue
                    for status in ("400", "401", "403", "500"):
                        body = said[status]["content"]["application/json"]["schema"]
                        assert body["$ref"].endswith("Failure"), (method, path, status)

    asyncio.run(go())
