"""Each way in, and each way that is none: a daemon as people start it, over HTTP."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Iterator

import httpx
import msgspec
import pytest
from litestar import Litestar
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from perdure.api.admission import LARGEST_BODY
from perdure.api.jobs import NewJob
from tests.acceptance.kit import wait_for
from tests.conftest import PrivateHome
from tests.integration.api_here import api_here
from tests.integration.api_served import ServedApi, serving
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE, TmuxServer

#: What everybody may ask for: that somebody is there, to log in, and the dashboard's own files.
PUBLIC = ("/health", "/login", "/", "/assets/", "/icon.svg", "/look.js", "/{rest:path}")
SCREENS = ("/runs", "/time-machine", "/chats", "/jobs", "/events", "/settings")


@pytest.fixture
def served(perdure: Perdure, private_home: PrivateHome, tmux: TmuxServer) -> Iterator[ServedApi]:
    tmux.run("new-session", "-d", "-s", "work", "-n", "one")
    with serving(perdure, private_home.state) as api:
        yield api


def code(answer: httpx.Response) -> tuple[int, str]:
    body = answer.json()
    assert set(body) == {"code", "message", "data"}
    return answer.status_code, body["code"]


def is_cut_off(connection: socket.socket) -> bool:
    """Return whether nobody reads any more, after many megabytes."""
    try:
        for _ in range(400):
            connection.sendall(b"x" * 65536)
        return not connection.recv(1)
    except ConnectionError:
        return True


def test_a_link_logs_a_browser_in_once(served: ServedApi, private_home: PrivateHome) -> None:
    link = served.link()
    with served.client("", origin=served.url) as client:
        assert client.get("/health").json()["status"] == "ok"
        assert code(client.get("/api/me")) == (401, "UNAUTHORIZED")
        # Whoever only looks where a link leads, as chats do with what is written in them, does not spend it.
        looked = client.head(link)
        assert (looked.status_code, "set-cookie" in looked.headers) == (405, False)
        came = client.get(link)
        assert (came.status_code, came.headers["location"]) == (303, "/")
        cookie = came.headers["set-cookie"]
        assert {"HttpOnly", "Path=/", "SameSite=strict"} <= set(cookie.split("; "))
        me = client.get("/api/me").json()
        assert (me["scope"], me["host"]) == ("write", os.uname().nodename)
        assert [each["target"] for each in client.get("/api/runs").json()["items"]] == ["work:0.0"]
        assert client.post("/api/logout").status_code == 204
        assert code(client.get("/api/me")) == (401, "UNAUTHORIZED")
    with served.client("") as another:
        assert code(another.get(link)) == (401, "UNAUTHORIZED")
        assert code(another.get("/login")) == (401, "UNAUTHORIZED")
        # A person is shown how to get in; whoever is in already goes on.
        shown = another.get(link, headers={"accept": "text/html,*/*;q=0.8"})
        assert (shown.status_code, "set-cookie" in shown.headers) == (401, False)
        assert shown.headers["content-type"].startswith("text/html")
        with served.browser() as known:
            again = known.get(link, headers={"accept": "text/html,*/*;q=0.8"})
            assert (again.status_code, again.headers["location"]) == (303, "/")
        # Who was logged out is not logged in again by what the cookie held.
        another.cookies.set(*cookie.split(";")[0].split("=", 1))
        assert code(another.get("/api/me")) == (401, "UNAUTHORIZED")
    for name in ("api.token", "api.json", "access.log", "audit.log"):
        path = os.path.join(private_home.state, name)
        wait_for(lambda path=path: os.path.exists(path), name)  # type: ignore[misc]
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
        with open(path, encoding="utf-8") as file:
            assert link.partition("=")[2] not in file.read()


def test_a_wrong_token_a_wrong_name_and_another_page_are_refused(served: ServedApi) -> None:
    with served.client("") as nobody:
        for path in ("/api/runs", "/api/nowhere", "/schema/openapi.json", "/metrics"):
            refused = nobody.get(path)
            assert code(refused) == (401, "UNAUTHORIZED")
            assert refused.headers["www-authenticate"] == "Bearer"
    with served.client("pdr_wrong") as wrong:
        assert code(wrong.get("/api/runs")) == (401, "UNAUTHORIZED")
    with served.client() as client:
        assert client.get("/api/runs").status_code == 200
        # A name that leads here by another's doing: DNS rebinding.
        assert code(client.get("/health", headers={"host": "evil.example"})) == (403, "WRONG_HOST")
        assert code(client.get("/api/runs", headers={"host": "evil.example"})) == (403, "WRONG_HOST")
        assert code(client.post("/api/tickets", headers={"origin": "http://evil.example"})) == (403, "WRONG_ORIGIN")
        assert code(client.get("/api/nowhere")) == (404, "NOT_FOUND")
        assert code(client.put("/api/runs")) == (405, "METHOD_NOT_ALLOWED")
        assert "access-control-allow-origin" not in client.get("/api/runs", headers={"origin": served.url}).headers
    with served.browser() as browser:
        assert browser.post("/api/runs/r1/seen").status_code == 200
        # A form of another page: the browser sends the cookie along, if it did not know better.
        for origin in ("http://evil.example", "http://127.0.0.1:1", "null"):
            forged = browser.post("/api/runs/r1/seen", headers={"origin": origin})
            assert code(forged) == (403, "WRONG_ORIGIN")
        del browser.headers["origin"]
        assert code(browser.post("/api/runs/r1/seen")) == (403, "WRONG_ORIGIN")


def test_whoever_guesses_is_sent_away_and_locks_nobody_out(served: ServedApi) -> None:
    with served.client("pdr_wrong") as wrong:
        answers = [wrong.get("/api/runs") for _ in range(30)]
        assert code(answers[0]) == (401, "UNAUTHORIZED")
        assert code(answers[-1]) == (429, "TOO_MANY")
        assert int(answers[-1].headers["retry-after"]) > 0
        assert code(wrong.get("/login?once=pdr_wrong")) == (429, "TOO_MANY")
        # A person who followed a link too often is shown a page, which says what to do.
        shown = wrong.get("/login?once=pdr_wrong", headers={"accept": "text/html,*/*;q=0.8"})
        assert (shown.status_code, shown.headers["content-type"]) == (429, "text/html; charset=utf-8")
        assert int(shown.headers["retry-after"]) > 0
    with served.client() as client:
        assert client.get("/api/runs").status_code == 200
    with served.browser() as browser:
        assert browser.get("/api/me").status_code == 200


def test_a_token_for_looking_only_looks_until_it_is_revoked(served: ServedApi, perdure: Perdure) -> None:
    token = perdure.ok("token", "new", "--read-only", "--name", "ci").out.strip()
    taken = perdure("token", "new", "--name", "ci")
    assert (taken.code, "already" in taken.err) == (2, True)
    with served.client(token) as client:
        assert client.get("/api/me").json()["scope"] == "read"
        assert client.get("/api/runs").status_code == 200
        for refused in (
            client.post("/api/runs/r1/input", json={"text": "x"}),
            client.post("/api/runs", json={}),
            client.delete("/api/runs/r1", params={"mode": "kill"}),
        ):
            assert code(refused) == (403, "READ_ONLY")
        assert client.post("/api/tickets").status_code == 201
        listed = perdure.ok("token", "ls", "--json").json["tokens"]
        assert [(each["name"], each["scope"]) for each in listed] == [("main", "write"), ("ci", "read")]
        assert token not in perdure.ok("token", "ls", "--json").out
        perdure.ok("token", "revoke", "ci")
        assert code(client.get("/api/runs")) == (401, "UNAUTHORIZED")
    assert perdure("token", "revoke", "ci").code == 3
    before = served.token
    perdure.ok("token", "revoke", "main")
    with served.client(before) as old, served.client() as new:
        assert code(old.get("/api/runs")) == (401, "UNAUTHORIZED")
        assert new.get("/api/runs").status_code == 200


@pytest.mark.parametrize("path", ["/api/events?wait=60&after=99999999", "/api/runs/{run}/wait?until=done&timeout=600"])
def test_whoever_waits_is_told_nothing_once_the_token_is_revoked(
    served: ServedApi, perdure: Perdure, path: str
) -> None:
    token = perdure.ok("token", "new", "--read-only", "--name", "ci").out.strip()
    with served.client() as owner, socket.create_connection(served.address, timeout=PATIENCE) as waiting:
        path = path.format(run=owner.get("/api/runs").json()["items"][0]["id"])
        said = f"GET {path} HTTP/1.1\r\nhost: {served.address[0]}\r\nauthorization: Bearer {token}\r\n\r\n"
        waiting.sendall(said.encode())
        # Whoever asks later is answered later: by then it waits.
        assert owner.get("/health").status_code == 200
        perdure.ok("token", "revoke", "ci")
        assert waiting.recv(65536).startswith(b"HTTP/1.1 401 ")


def test_what_is_too_large_or_means_something_else_is_refused(served: ServedApi) -> None:
    with served.client() as client:
        large = client.post("/api/runs/r1/input", json={"text": "x" * (LARGEST_BODY + 1)})
        assert code(large) == (413, "TOO_LARGE")

        def pieces() -> Iterator[bytes]:
            for _ in range(40):
                yield b" " * 65536

        unsaid = client.post("/api/runs/r1/input", content=pieces(), headers={"content-type": "application/json"})
        assert code(unsaid) == (413, "TOO_LARGE")
        assert unsaid.json()["message"] == large.json()["message"]
        garbled = client.post("/api/runs/r1/input", content=b"{", headers={"content-type": "application/json"})
        assert code(garbled) == (400, "USAGE_ERROR")
        unknown = client.post("/api/runs/r1/input", json={"text": "x", "sudo": True})
        assert code(unknown) == (400, "USAGE_ERROR")
    bearer = f"authorization: Bearer {served.token}\r\nhost: {served.address[0]}\r\nconnection: close\r\n\r\n".encode()
    for path in (
        b"/assets/../api/runs",
        b"/assets/%2e%2e/api/runs",
        b"//api/runs",
        b"/api%2fruns",
        b"/assets/..%2f..%2fapi.token",
    ):
        answer = served.raw(b"GET " + path + b" HTTP/1.1\r\n" + bearer)
        assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 ")), (path, answer)
        assert b"pdr_" not in answer
    assert served.raw(b"nonsense\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_headers_without_an_end_are_not_kept(served: ServedApi) -> None:
    with socket.create_connection(served.address, timeout=PATIENCE) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ")
        assert is_cut_off(connection)
    with served.client() as client:
        assert client.get("/health").status_code == 200


def test_a_head_is_that_of_what_would_be_got(served: ServedApi) -> None:
    with served.client() as client:
        for path in ("/health", "/api/runs", "/api/me", "/schema/openapi.json", "/"):
            got, head = client.get(path), client.head(path)
            assert (head.status_code, head.content) == (got.status_code, b""), path
            assert head.headers.get("content-type") == got.headers.get("content-type")
        assert client.head("/api/nowhere").status_code == 404
        assert client.head("/api/tickets").status_code == 405
    with served.client("") as stranger:
        assert stranger.head("/api/runs").status_code == 401


def test_what_is_wrong_is_said_in_words_and_by_its_public_name(served: ServedApi) -> None:
    with served.client() as client:
        for path, said in (
            ("/api/runs?state=bogus", "`state` has to be one of idle, busy, attention, error, exited, unknown."),
            ("/api/events?after=-1", "`after` has to be at least 0."),
            ("/api/runs/r1/wait", "`until` is missing."),
            ("/api/nowhere", "There is nothing at this path."),
        ):
            assert client.get(path).json()["message"] == said
        for body, said in (
            ({"x": 1}, f"There is no field `x`; there are {', '.join(NewJob.__struct_fields__)}."),
            ([], "The body has to be an object, not a list."),
        ):
            assert client.post("/api/jobs", json=body).json()["message"] == said
        assert client.post("/api/jobs").json()["message"] == "A body is needed, which is JSON."


def test_every_answer_says_what_a_page_may_do(served: ServedApi) -> None:
    with served.client() as client:
        for answer in (client.get("/api/runs"), client.get("/api/nowhere"), client.get("/", headers={"host": "evil"})):
            headers = answer.headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert headers["x-content-type-options"] == "nosniff"
            assert headers["referrer-policy"] == "no-referrer"
            assert "server" not in headers


def test_a_websocket_needs_a_ticket_of_its_own(served: ServedApi) -> None:
    address = served.url.replace("http", "ws") + "/api/socket"

    async def refused(url: str, status: int, **headers: str) -> None:
        with pytest.raises(InvalidStatus) as failed:
            async with connect(url, additional_headers=headers):
                pass
        assert failed.value.response.status_code == status
        assert failed.value.response.body is not None
        assert set(msgspec.json.decode(failed.value.response.body)) == {"code", "message", "data"}

    async def go(ticket: str, cookie: str) -> None:
        await refused(address, 401, origin=served.url)
        await refused(address, 401, origin=served.url, cookie=cookie)
        await refused(f"{address}?ticket=pdr_wrong", 401, origin=served.url)
        await refused(f"{address}?ticket={ticket}", 403, origin="http://evil.example")
        await refused(f"{address}?ticket={ticket}", 403)
        async with connect(f"{address}?ticket={ticket}", additional_headers={"origin": served.url}) as opened:
            await opened.send('{"op":"ping"}')
            assert msgspec.json.decode(await opened.recv())["type"] == "pong"
        await refused(f"{address}?ticket={ticket}", 401, origin=served.url)

    with served.browser() as browser:
        ticket = browser.post("/api/tickets").json()["ticket"]
        [(name, value)] = browser.cookies.items()
        asyncio.run(go(ticket, f"{name}={value}"))


def test_what_was_revoked_is_cut_off_where_it_is_open(served: ServedApi, perdure: Perdure) -> None:
    address = served.url.replace("http", "ws") + "/api/socket"
    token = perdure.ok("token", "new", "--read-only", "--name", "ci").out.strip()

    async def go() -> None:
        headers = {"authorization": f"Bearer {token}"}
        async with connect(address, additional_headers=headers) as opened, asyncio.timeout(PATIENCE):
            await opened.send('{"op":"ping"}')
            assert msgspec.json.decode(await opened.recv())["type"] == "pong"
            perdure.ok("token", "revoke", "ci")
            with pytest.raises(ConnectionClosed) as closed:
                await opened.recv()
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1008

    asyncio.run(go())


def test_who_asked_for_what_is_written_down(served: ServedApi, private_home: PrivateHome) -> None:
    with served.client() as client:
        client.get("/api/runs", params={"q": "a-secret-word"})
    path = os.path.join(private_home.state, "access.log")

    def lines() -> list[dict[str, object]]:
        # A line that is half written has no end yet.
        with open(path, "rb") as file:
            return [msgspec.json.decode(line) for line in file if line.endswith(b"\n")]

    # The first line, and with it the file, comes when the answer is out.
    wait_for(
        lambda: os.path.exists(path) and any(each["path"] == "/api/runs" for each in lines()),
        "the line",
    )
    line = next(each for each in lines() if each["path"] == "/api/runs")
    assert (line["token"], line["method"], line["status"], line["peer"]) == ("main", "GET", 200, "127.0.0.1")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    assert "a-secret-word" not in text
    assert served.token not in text


def test_no_route_is_forgotten_by_the_guard() -> None:
    """What is not said to be for everybody lies where the guard looks."""

    async def paths() -> list[str]:
        async with api_here() as api:
            app: Litestar = api.app
            return [route.path for route in app.routes]

    for path in asyncio.run(paths()):
        is_guarded = path.startswith(("/api/", "/schema")) or path == "/metrics"
        is_public = path in PUBLIC or path.startswith(("/assets/", *(f"{screen}" for screen in SCREENS)))
        assert is_guarded != is_public, path
