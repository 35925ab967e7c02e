"""What is wrong with a request is told in words that help whoever made it over HTTP."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from perdure.api.app import ROUTES
from perdure.api.wrong import LOOKS
from tests.integration.api_here import Api, api_here
from tests.integration.watching_here import await_run
from tests.tmux_server import PATIENCE, TmuxServer


async def refused(client: httpx.AsyncClient, method: str, path: str, body: Any = None) -> str:
    """Return what is said of a request that cannot be followed."""
    answer = await client.request(method, path, json=body) if body is not None else await client.request(method, path)
    told = answer.json()
    assert (answer.status_code, told["code"]) == (400, "USAGE_ERROR"), answer.text
    message: str = told["message"]
    return message


def in_it(description: Any, name: str) -> Iterator[Any]:
    """Every value of that name, wherever it is."""
    if isinstance(description, dict):
        if name in description:
            yield description[name]
        for each in description.values():
            yield from in_it(each, name)
    elif isinstance(description, list):
        for each in description:
            yield from in_it(each, name)


def test_what_is_wrong_is_said_with_what_would_be_right(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "cat")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = (await await_run(api.world.daemon, "work:0.0")).id
            said = {
                (
                    "GET",
                    "/api/runs?state=xyz",
                ): "`state` has to be one of idle, busy, attention, error, exited, unknown.",
                ("GET", "/api/chats?state=xyz"): "`state` has to be one of open, closed, all.",
                ("DELETE", f"/api/runs/{run}?mode=xyz"): "`mode` has to be detach or kill.",
                ("DELETE", f"/api/runs/{run}"): "`mode` is missing; it has to be detach or kill.",
                ("GET", "/api/snapshots/x/scrollback?pane=3"): "`pane` has to be a pane's id, such as %3.",
                ("GET", "/api/events?cursor=x"): "`cursor` has to be what `next` of the page before says.",
                ("GET", "/api/runs?ended_after=x"): (
                    "`ended_after` has to be a moment with its zone, such as 2026-01-31T12:00:00Z."
                ),
            }
            for (method, path), sentence in said.items():
                assert await refused(client, method, path) == sentence, path
            # It was followed no longer by none of them.
            assert (await client.get(f"/api/runs/{run}")).json()["detached"] is False
            plan = "/api/restores/plan"
            assert await refused(client, "POST", plan, {"programs": "x"}) == "`programs` has to be all or none."
            snapshot = await refused(client, "POST", plan, {"snapshot": "nope"})
            assert snapshot == "`snapshot` has to be a snapshot's id, or how it begins: digits and the letters a to f."
            assert await refused(client, "POST", plan, {"socket": "x"}) == "`socket` has to be a path from the root on."

    asyncio.run(go())


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/runs", {"prompt": "x"}),
        ("/api/runs/{run}/input", {}),
        ("/api/runs/{run}/input", {"text": "a\x1bb"}),
    ],
)
def test_nobody_who_asks_over_http_is_told_of_the_command_lines_options(
    tmux: TmuxServer, path: str, body: dict[str, Any]
) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "cat")

    async def go() -> None:
        async with api_here() as api, api.client() as client:
            run = (await await_run(api.world.daemon, "work:0.0")).id
            said = await refused(client, "POST", path.format(run=run), body)
            assert "--" not in said, said

    asyncio.run(go())


def test_a_parameter_that_is_not_known_is_refused_wherever_it_is_given(tmux: TmuxServer) -> None:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one", "cat")

    async def go() -> None:
        async with api_here() as api, api.client() as client, asyncio.timeout(PATIENCE):
            run = (await await_run(api.world.daemon, "work:0.0")).id
            known = "limit, cursor, state, reason, agent, session, q, over, ended_after"
            asked = await client.get("/api/runs", params={"states": "idle", "limit": 1})
            assert asked.json() == {
                "code": "USAGE_ERROR",
                "message": f"There is no parameter `states`; there are {known}.",
                "data": {
                    "wrong": [{"key": "states", "message": f"There is no parameter `states`; there are {known}."}]
                },
            }
            said = await refused(client, "DELETE", f"/api/runs/{run}?mode=kill&anyways=true")
            assert said == "There is no parameter `anyways`; there are mode, anyway, who."
            assert tmux.alive
            assert await refused(client, "GET", "/api/me?x=1") == "There is no parameter `x`; it takes none."
            for method, path in routes(api):
                answer = await client.request(method, f"{path}?nobody_knows=1", json={})
                assert answer.status_code == 400, (method, path, answer.text)
                assert "There is no parameter `nobody_knows`; " in answer.json()["message"], (method, path)
            # A page's address is nobody's to spoil.
            assert (await client.get("/?from=a-bookmark")).status_code in (200, 503)

    asyncio.run(go())


def routes(api: Api) -> list[tuple[str, str]]:
    """Every route that is described, each with an id that is nobody's."""
    paths = api.app.openapi_schema.to_schema()["paths"]
    found = [(method.upper(), re.sub(r"\{[^}]+\}", "r999", path)) for path, item in paths.items() for method in item]
    assert len(found) > 40
    assert len(ROUTES) > 40
    return found


def test_every_form_that_is_asked_for_can_be_said_in_words(tmux: TmuxServer) -> None:
    async def go() -> None:
        async with api_here() as api:
            assert set(in_it(api.app.openapi_schema.to_schema()["paths"], "pattern")) <= set(LOOKS)
            assert set(in_it(api.app.openapi_schema.to_schema(), "pattern")) == set(LOOKS)

    asyncio.run(go())
