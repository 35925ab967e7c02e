"""Snapshots and restores over HTTP: what is kept, what changed, what would be done, and a server brought back."""

from __future__ import annotations

import asyncio
import os
from datetime import datetime
from typing import Any

import httpx
import msgspec

from perdure.model.event import Event, EventKind
from perdure.model.snapshot import Capture
from tests.builders import a_capture, a_pane, a_server, a_text
from tests.conftest import PrivateHome
from tests.integration.api_here import Api, api_here, caller
from tests.integration.looking import until_at_rest
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer

OTHER = 54321


def kept(api: Api, *captures: Capture, **texts: bytes) -> list[str]:
    """Keep captures in the store of an interface; return the ids of their snapshots."""
    store = api.world.store()
    return [store.save_snapshot(each, texts).id for each in captures]


async def all_pages(client: httpx.AsyncClient, path: str, **asked: Any) -> list[list[dict[str, Any]]]:
    """Return every page of a list."""
    pages, cursor = [], None
    while True:
        params = {**asked, **({"cursor": cursor} if cursor else {})}
        answer = await client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        pages.append(answer.json()["items"])
        cursor = answer.json()["next"]
        if cursor is None:
            return pages


async def ended(client: httpx.AsyncClient, id: str) -> dict[str, Any]:
    """Return a restore once it has come to its end."""
    loop = asyncio.get_running_loop()
    until = loop.time() + PATIENCE
    while True:
        found: dict[str, Any] = (await client.get(f"/api/restores/{id}")).json()
        if found["state"] != "running":
            return found
        assert loop.time() < until, found
        await asyncio.sleep(0.05)


def test_the_history_is_given_in_pages_and_nobody_elses(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            panes = [[a_pane(number) for number in range(count)] for count in range(1, 8)]
            # Several of them at the same moment, on servers of their own.
            seen = (a_capture(each, server=a_server(f"s{n % 3}"), seconds=n // 3) for n, each in enumerate(panes))
            ids = kept(api, *seen)
            pages = await all_pages(client, "/api/snapshots", limit=2)
            assert [len(page) for page in pages] == [2, 2, 2, 1]
            listed = [row for page in pages for row in page]
            assert sorted(row["id"] for row in listed) == sorted(ids)
            assert [row["last_seen_at"] for row in listed] == sorted(
                (row["last_seen_at"] for row in listed), reverse=True
            )
            mine = await all_pages(client, "/api/snapshots", limit=1, socket=a_server("s1").socket)
            assert {row["socket"] for page in mine for row in page} == {a_server("s1").socket}
            assert sum(map(len, mine)) == 2
            async with api.client(caller(uid=1000)) as theirs:
                assert len((await theirs.get("/api/snapshots")).json()["items"]) == 7
            async with api.client(caller(uid=OTHER)) as theirs:
                assert (await theirs.get("/api/snapshots")).json()["items"] == []
                refused = await theirs.get(f"/api/snapshots/{ids[0]}")
                assert (refused.status_code, refused.json()["code"]) == (404, "NOT_FOUND")
            nonsense = await client.get("/api/snapshots", params={"cursor": "nonsense"})
            assert (nonsense.status_code, nonsense.json()["code"]) == (400, "USAGE_ERROR")
            again = await client.get("/api/snapshots")
            unchanged = await client.get("/api/snapshots", headers={"If-None-Match": again.headers["etag"]})
            assert unchanged.status_code == 304

    asyncio.run(go())


def test_a_snapshot_is_shown_without_its_secrets_and_with_what_a_pane_showed(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            digest, text = a_text("one\ntwo\nthree\n")
            secret = "sk-" + "ant-api03-" + "x1Y" * 10
            panes = [a_pane(0, title=f"token {secret}")]
            (id,) = kept(api, a_capture(panes, scrollback={"%0": digest}), **{digest: text})
            shown = await client.get(f"/api/snapshots/{id[:6]}")
            assert shown.json()["id"] == id
            assert secret not in shown.text
            screen = (await client.get(f"/api/snapshots/{id}/scrollback", params={"pane": "%0", "lines": 2})).json()
            assert screen == {"snapshot": id, "pane_id": "%0", "scrollback": "two\nthree", "truncated": True}
            missing = await client.get(f"/api/snapshots/{id}/scrollback", params={"pane": "%9"})
            assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")
            for wrong in ("?pane=nonsense", "?pane=%250&lines=0", ""):
                assert (await client.get(f"/api/snapshots/{id}/scrollback{wrong}")).status_code == 400

    asyncio.run(go())


def test_what_changed_between_two_and_until_now(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "sleep", "1000")
    until_at_rest(tmux)
    first = perdure.ok("save", "--json").json["servers"][0]["snapshot"]
    tmux.run("new-window", "-d", "-t", "work:5", "-n", "two", "sleep", "1000")
    until_at_rest(tmux)
    second = perdure.ok("save", "--json").json["servers"][0]["snapshot"]

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            changed = (await client.get(f"/api/snapshots/{first}/diff/{second}")).json()
            assert (changed["a"], changed["b"]) == (first, second)
            assert {"kind": "window", "target": "work:5", "change": "new"}.items() <= changed["changes"][0].items()
            now = (await client.get(f"/api/snapshots/{second}/diff/now")).json()
            assert now == {"a": second, "b": None, "changes": []}
            missing = await client.get(f"/api/snapshots/{first}/diff/0000")
            assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")

    asyncio.run(go())


def test_a_server_is_brought_back_step_by_step(tmux: TmuxServer, perdure: Perdure) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "-x", "80", "-y", "24", "sleep", "1001")
    tmux.run("split-window", "-d", "-t", "work:0", "sleep", "1002")
    until_at_rest(tmux)
    id = perdure.ok("save", "--json").json["servers"][0]["snapshot"]
    tmux.kill9()

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            order = {"snapshot": id[:8], "programs": "all"}
            plan = (await client.post("/api/restores/plan", json=order)).json()
            assert [(step["target"], step["action"], step["result"]) for step in plan["steps"]] == [
                ("work:0.0", "run", "planned"),
                ("work:0.1", "run", "planned"),
            ]
            assert not tmux.alive
            begun = await client.post("/api/restores", json=order)
            assert begun.status_code == 202
            assert begun.headers["location"] == f"/api/restores/{begun.json()['id']}"
            second = await client.post("/api/restores", json=order)
            assert (second.status_code, second.json()["code"]) == (409, "CONFLICT")
            done = await ended(client, begun.json()["id"])
            assert (done["state"], done["settled"], done["total"], done["message"]) == ("done", 2, 2, "")
            assert [step["result"] for step in done["steps"]] == ["done", "done"]
            assert done["summary"]["created"] == 2
            assert len(tmux.run("list-panes", "-a").splitlines()) == 2
            listed = (await client.get("/api/restores")).json()["items"]
            assert [(row["id"], row["here"]) for row in listed] == [(done["id"], True)]
            async with api.client(caller(uid=OTHER)) as theirs:
                assert (await theirs.get("/api/restores")).json()["items"] == []
                assert (await theirs.get(f"/api/restores/{done['id']}")).status_code == 404
                assert (await theirs.post("/api/restores", json={})).status_code == 400
                assert (await theirs.post("/api/restores", json=order)).status_code == 404
            told = [e.event for e in api.world.store().read_events(limit=1000) if e.event.kind is EventKind.RESTORING]
            assert {event.data["restore"] for event in told} == {done["id"]}
            assert told[-1].data["settled"] == 2
            (end,) = (e.event for e in api.world.store().read_events(limit=1000) if e.event.kind is EventKind.RESTORED)
            assert (end.data["restore"], end.data["exit_code"]) == (done["id"], 0)
        # Another daemon has it from the journal.
        async with api_here() as api, api.client() as client:
            (row,) = (await client.get("/api/restores")).json()["items"]
            assert (row["here"], row["state"], row["snapshot"]) == (False, "done", id)
            shown = (await client.get(f"/api/restores/{row['id']}")).json()
            assert [step["target"] for step in shown["steps"]] == ["work:0.0", "work:0.1"]
            # And by the id under which it was begun, too.
            again = (await client.get(f"/api/restores/{done['id']}")).json()
            same = ("id", "state", "snapshot", "began_at", "settled", "total", "summary", "message")
            assert [again[name] for name in same] == [done[name] for name in same]
            assert [(step["n"], step["target"]) for step in again["steps"]] == [(1, "work:0.0"), (2, "work:0.1")]
            async with api.client(caller(uid=OTHER)) as theirs:
                assert (await theirs.get(f"/api/restores/{done['id']}")).status_code == 404

    asyncio.run(go())


def test_a_restore_whose_daemon_was_killed_was_interrupted(private_home: PrivateHome) -> None:
    id = "x0123456789abcdef"

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            at = api.world.now()
            data = {"restore": id, "began_at": at.isoformat(), "settled": 0, "total": 2, "steps": []}
            await api.world.note(Event(kind=EventKind.RESTORING, at=at, data=data))
        async with api_here() as api, api.client() as client:
            shown = (await client.get(f"/api/restores/{id}")).json()
            assert (shown["id"], shown["state"], shown["ended_at"], shown["steps"]) == (id, "interrupted", None, [])
            assert datetime.fromisoformat(shown["began_at"]) == at
            unknown = await client.get("/api/restores/x0000000000000000")
            assert (unknown.status_code, unknown.json()["code"]) == (404, "NOT_FOUND")
            async with api.client(caller(uid=OTHER)) as theirs:
                assert (await theirs.get(f"/api/restores/{id}")).status_code == 404

    asyncio.run(go())


def test_a_restore_that_cannot_be_done_says_why(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api, api.client() as client:
            begun = (await client.post("/api/restores", json={"targets": ["-x", "nowhere"]})).json()
            failed = await ended(client, begun["id"])
            assert (failed["state"], failed["steps"]) == ("failed", [])
            assert failed["message"].startswith("Nothing is saved")
            planned = await client.post("/api/restores/plan", json={})
            assert (planned.status_code, planned.json()["code"]) == (404, "NOT_FOUND")
            mistakes: list[object] = [
                {"snapshot": "../.."},
                {"socket": "relative"},
                {"targets": [""]},
                {"targets": ["a\0b"]},
                {"max_parallel": 65},
                {"programs": "some"},
                {"bogus": 1},
                [],
            ]
            for wrong in mistakes:
                refused = await client.post("/api/restores", json=wrong)
                assert refused.status_code == 400, wrong
                assert refused.json()["message"]
            unknown = await client.post("/api/restores", json={"snapshot": "abc"})
            assert (unknown.status_code, unknown.json()["code"]) == (404, "NOT_FOUND")

    asyncio.run(go())


def test_nobody_has_a_socket_made_for_them_elsewhere(private_home: PrivateHome) -> None:
    async def go() -> None:
        async with api_here() as api:
            (id,) = kept(api, a_capture(server=a_server(uid=OTHER)))
            async with api.client(caller(uid=OTHER)) as theirs:
                order = {"snapshot": id, "socket": os.path.join(private_home.root, "elsewhere", "s")}
                for path in ("/api/restores", "/api/restores/plan"):
                    refused = await theirs.post(path, json=order)
                    assert (refused.status_code, refused.json()["code"]) == (403, "REFUSED")
            assert not os.path.exists(os.path.join(private_home.root, "elsewhere"))

    asyncio.run(go())


def test_whoever_restores_is_in_the_audit_log(private_home: PrivateHome) -> None:
    async def go() -> str:
        async with api_here() as api, api.client() as client:
            id: str = (await client.post("/api/restores", json={})).json()["id"]
            await ended(client, id)
            return id

    id = asyncio.run(go())
    with open(os.path.join(private_home.state, "audit.log"), "rb") as file:
        (line,) = (msgspec.json.decode(each) for each in file)
    assert (line["action"], line["restore"], line["token"]) == ("restore", id, "test")
