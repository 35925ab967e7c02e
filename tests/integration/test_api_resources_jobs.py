"""Jobs over HTTP: started, followed, told something, ended."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx
import msgspec

from perdure.jobs.service import Jobs
from tests.conftest import PrivateHome
from tests.integration.api_here import Api, api_here, caller
from tests.integration.test_api_resources_snapshots import OTHER, all_pages
from tests.tmux_server import PATIENCE


async def spawned(client: httpx.AsyncClient, *argv: str, **more: Any) -> str:
    """Start a job and return its id."""
    answer = await client.post("/api/jobs", json={"argv": argv, **more})
    assert answer.status_code == 201, answer.text
    id: str = answer.json()["job"]["job"]
    return id


async def end_all(api: Api) -> None:
    """End whatever runs."""

    def work() -> None:
        jobs: Jobs = api.world.jobs()
        for job in jobs.list(is_running=True):
            jobs.kill(job.id)

    await api.world.do(work)


async def followed(client: httpx.AsyncClient, id: str) -> str:
    """Return everything a job printed, piece by piece, until its end."""
    text: str = ""
    start: int = 0
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while loop.time() < until:
        piece = (await client.get(f"/api/jobs/{id}/output", params={"start": start})).json()
        assert piece["start"] == start
        text += piece["output"]
        start = piece["end"]
        if piece["over"]:
            return text
        await asyncio.sleep(0.02)
    raise AssertionError(text)


def test_a_job_is_started_told_something_read_and_forgotten_by_nobody(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            id = await spawned(client, "cat", owner="r7", cwd=private_home.home)
            row = (await client.get(f"/api/jobs/{id}")).json()
            # That it runs on is no change.
            while (await client.get(f"/api/jobs/{id}")).json()["uptime"] == row["uptime"]:
                await asyncio.sleep(0.01)
            tags = [(await client.get("/api/jobs")).headers["etag"], (await client.get("/api/jobs")).headers["etag"]]
            assert tags[0] == tags[1]
            row = (await client.get(f"/api/jobs/{id}")).json()
            assert (row["status"], row["argv"], row["owner"], row["cwd"]) == (
                "running",
                ["cat"],
                "r7",
                private_home.home,
            )
            assert (await client.post(f"/api/jobs/{id}/submit", json={"text": "höre"})).json() == {
                "job": id,
                "bytes_written": 6,
            }
            assert (await client.post(f"/api/jobs/{id}/write", json={"text": "no end"})).json()["bytes_written"] == 6
            still = (await client.post(f"/api/jobs/{id}/wait", params={"timeout": 0})).json()
            assert (still["status"], "still running" in still["note"]) == ("running", True)
            assert (await client.post(f"/api/jobs/{id}/close")).json() == {"job": id, "result": "closed"}
            assert await followed(client, id) == "höre\nno end"
            waited = (await client.post(f"/api/jobs/{id}/wait")).json()
            assert (waited["status"], waited["exit_code"], waited["output"]) == ("exited", 0, "höre\nno end")
            assert (await client.post(f"/api/jobs/{id}/poll")).json()["output"] == "höre\nno end"
            assert (await client.post(f"/api/jobs/{id[:9]}/poll")).json()["output"] == ""
            log = (await client.get(f"/api/jobs/{id}/log", params={"tail": 1})).json()
            assert (log["output"], log["total_lines"], log["streams"]) == (
                "no end",
                2,
                [{"stream": "stdout", "text": "no end"}],
            )
            assert (await client.get(f"/api/jobs/{id}/log", params={"offset": 0, "limit": 1})).json()[
                "output"
            ] == "höre\n"
            for what, body in (("write", {"text": "x"}), ("close", None), ("resize", {"rows": 1, "columns": 1})):
                over = await client.post(f"/api/jobs/{id}/{what}", json=body)
                assert (over.status_code, over.json()["code"]) == (409, "JOB_OVER"), what
            assert (await client.post(f"/api/jobs/{id}/kill")).json()["result"] == "already_ended"

    asyncio.run(go())


def test_jobs_are_listed_ended_and_given_a_size(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            try:
                ids = [await spawned(client, "sleep", "1000", terminal={"rows": 10}) for _ in range(3)]
                done = await spawned(client, "true", owner="r1")
                await client.post(f"/api/jobs/{done}/wait")
                pages = await all_pages(client, "/api/jobs", limit=2, running=True)
                assert [row["job"] for page in pages for row in page] == ids[::-1]
                assert (await client.get("/api/jobs", params={"owner": "r1"})).json()["items"][0]["status"] == "exited"
                resized = await client.post(f"/api/jobs/{ids[0]}/resize", json={"rows": 50, "columns": 90})
                assert resized.json() == {"job": ids[0], "rows": 50, "columns": 90}
                assert (await client.post(f"/api/jobs/{ids[0]}/kill")).json()["result"] == "killed"
                owned = [await spawned(client, "sleep", "1000", owner="r9") for _ in range(2)]
                killed = (await client.post("/api/jobs/kill", json={"owner": "r9"})).json()["jobs"]
                assert {(each["job"], each["result"]) for each in killed} == {(id, "killed") for id in owned}
                assert (await client.post("/api/jobs/kill", json={"owner": " "})).status_code == 400
                async with api.client(caller(uid=OTHER)) as theirs:
                    assert (await theirs.get("/api/jobs")).json()["items"] == []
                    for path in (f"/api/jobs/{ids[1]}", f"/api/jobs/{ids[1]}/log"):
                        assert (await theirs.get(path)).status_code == 403
                    assert (await theirs.post("/api/jobs", json={"argv": ["true"]})).status_code == 403
                    for path in (f"/api/jobs/{ids[1]}/kill", f"/api/jobs/{ids[1]}/poll"):
                        assert (await theirs.post(path)).status_code == 403
            finally:
                await end_all(api)
        with open(os.path.join(private_home.state, "audit.log"), "rb") as file:
            actions = [msgspec.json.decode(line)["action"] for line in file]
        assert actions == ["job_spawn"] * 4 + ["job_kill"] + ["job_spawn"] * 2 + ["job_kill"]

    asyncio.run(go())


def test_a_job_may_be_started_below_the_home(private_home: PrivateHome) -> None:
    async def go() -> None:
        os.mkdir(os.path.join(private_home.home, "below"))
        async with api_here() as api, api.client() as client:
            for asked, place in (("~/below", "/below"), ("~", "")):
                id = await spawned(client, "pwd", cwd=asked)
                assert await followed(client, id) == f"{os.path.realpath(private_home.home)}{place}\n"
            away = await client.post("/api/jobs", json={"argv": ["pwd"], "cwd": "~nobody/x"})
            assert away.status_code == 400
            await end_all(api)

    asyncio.run(go())


def test_what_cannot_be_run_is_said(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            mistakes: list[object] = [
                {},
                {"argv": ["true"], "shell": "true"},
                {"argv": []},
                {"argv": [""]},
                {"argv": ["true"], "cwd": "relative"},
                {"argv": ["a\0b"]},
                {"argv": ["true"], "env": {"": "x"}},
                {"argv": ["true"], "backend": "nowhere"},
                {"argv": ["true"], "terminal": {"rows": 0}},
                {"argv": ["true"], "notify": {"every_seconds": -1}},
                {"argv": "true"},
                {"bogus": 1},
                "true",
            ]
            for wrong in mistakes:
                refused = await client.post("/api/jobs", json=wrong)
                assert (refused.status_code, refused.json()["code"]) == (400, "USAGE_ERROR"), (wrong, refused.text)
            secret = "hunter2hunter2"
            failed = await client.post(
                "/api/jobs", json={"argv": ["/nowhere", "--token", secret], "env": {"X": secret}}
            )
            assert failed.status_code == 201
            assert failed.json()["job"]["why"]
            assert secret not in failed.text
            missing = await client.get("/api/jobs/jffff")
            assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")
            for path in ("/api/jobs/x/log?offset=0&tail=1", "/api/jobs/x/log?offset=-1", "/api/jobs?limit=1001"):
                assert (await client.get(path)).status_code in (400, 404)

    asyncio.run(go())
