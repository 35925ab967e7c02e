"""Chats over HTTP: which there are, what was said in them, finding it, naming them, beginning anew."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.acceptance.gateway import ANN, Gateway
from tests.conftest import PrivateHome
from tests.contract.store.chats import a_source
from tests.integration.api_here import api_here, caller
from tests.integration.test_api_resources_snapshots import OTHER, all_pages

BOB = a_source("bob", chat_id="77", user_name="Bob")
SECRET = "sk-" + "ant-api03-" + "x1Y" * 10


@pytest.fixture
def gateway(private_home: PrivateHome) -> Gateway:
    return Gateway(private_home)


def test_chats_are_listed_found_and_read_and_nobody_elses(gateway: Gateway) -> None:
    anns = gateway.open(ANN, *(f"word{n} of {SECRET}" for n in range(7)), title="My Project")
    gateway.clock.time += timedelta(minutes=1)
    bobs = gateway.open(BOB, "the quick brown fox")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            pages = await all_pages(client, "/api/chats", limit=1)
            assert [row["id"] for page in pages for row in page] == [bobs, anns]
            assert (await client.get("/api/chats", params={"user": "Bob"})).json()["items"][0]["id"] == bobs
            assert (await client.get("/api/chats", params={"state": "closed"})).json()["items"] == []
            shown = (await client.get(f"/api/chats/{anns}")).json()
            assert (shown["chat"]["title"], shown["chat"]["turns"], shown["lineage"]) == ("My Project", 7, [])
            assert (await client.get("/api/chats/My Project")).json()["chat"]["id"] == anns
            pages = await all_pages(client, f"/api/chats/{anns}/transcript", limit=3)
            assert [[turn["position"] for turn in page] for page in pages] == [[1, 2, 3], [4, 5, 6], [7]]
            assert all(SECRET not in turn["content"] and "word" in turn["content"] for page in pages for turn in page)
            last = (await client.get(f"/api/chats/{anns}/transcript", params={"last": True, "limit": 2})).json()
            assert [turn["position"] for turn in last["items"]] == [6, 7]
            assert (last["next"], last["before"]) == (None, 6)
            earlier = (await client.get(f"/api/chats/{anns}/transcript", params={"before": 3, "limit": 5})).json()
            assert [turn["position"] for turn in earlier["items"]] == [1, 2]
            assert (earlier["next"] is not None, earlier["before"]) == (True, None)
            found = (await client.get("/api/chats/search", params={"q": "quick fox"})).json()["items"]
            assert [(row["chat"], row["position"]) for row in found] == [(bobs, 1)]
            start, end = found[0]["marks"][0]
            assert found[0]["snippet"][start:end] == "quick"
            async with api.client(caller(uid=OTHER)) as theirs:
                assert (await theirs.get("/api/chats")).json()["items"] == []
                assert (await theirs.get("/api/chats/search", params={"q": "fox"})).json()["items"] == []
                for path in (f"/api/chats/{anns}", f"/api/chats/{anns}/transcript"):
                    refused = await theirs.get(path)
                    assert (refused.status_code, refused.json()["code"]) == (403, "REFUSED")

    asyncio.run(go())


def test_a_chat_is_named_and_begun_anew(gateway: Gateway) -> None:
    id = gateway.open(ANN, "hello")
    other = gateway.open(ANN, "again", force_new=True)

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            named = await client.put(f"/api/chats/{id}/title", json={"title": "  One \n"})
            assert named.json() == {"id": id, "title": "One"}
            taken = await client.put(f"/api/chats/{other}/title", json={"title": "One"})
            assert (taken.status_code, taken.json()["code"]) == (409, "TITLE_TAKEN")
            assert (await client.put(f"/api/chats/{id}/title", json={"title": None})).json()["title"] is None
            for wrong in ({"title": "x" * 101}, {"title": "\u200b"}, {}, {"title": 3}):
                assert (await client.put(f"/api/chats/{id}/title", json=wrong)).status_code == 400
            closed = await client.post(f"/api/chats/{id}/reset")
            assert (closed.status_code, closed.json()["code"]) == (409, "CONFLICT")
            renewed = (await client.post(f"/api/chats/{other}/reset")).json()
            assert (renewed["closed"]["id"], renewed["closed"]["close_reason"]) == (other, "asked")
            assert renewed["begun"]["follows"] == other
            assert (await client.get("/api/chats")).json()["items"][0]["id"] == renewed["begun"]["id"]
            lineage = (await client.get(f"/api/chats/{renewed['begun']['id']}")).json()["lineage"]
            assert [each["id"] for each in lineage] == [other, id]

    asyncio.run(go())


def test_what_makes_no_sense_is_said(gateway: Gateway) -> None:
    id = gateway.open(ANN, "hello")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            for path in (
                "/api/chats?state=bogus",
                "/api/chats?limit=0",
                "/api/chats?active=0",
                "/api/chats/search",
                "/api/chats/search?q=%22%22",
                "/api/chats/search?q=x&since=2026-01-02T00:00:00Z&until=2026-01-01T00:00:00Z",
                "/api/chats/search?q=x&since=2026-01-02T00:00:00",
                f"/api/chats/{id}/transcript?limit=501",
                f"/api/chats/{id}/transcript?last=true&cursor=MQ",
                f"/api/chats/{id}/transcript?cursor=bogus",
            ):
                answer = await client.get(path)
                assert (answer.status_code, answer.json()["code"]) == (400, "USAGE_ERROR"), path
                assert answer.json()["message"].strip()
            missing = await client.get("/api/chats/nothing")
            assert (missing.status_code, missing.json()["code"]) == (404, "NOT_FOUND")

    asyncio.run(go())
