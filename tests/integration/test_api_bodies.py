"""Bodies nobody can make sense of, or that never end: said to whoever sent them, and nothing for the daemon's log."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from tests.acceptance.kit import wait_for
from tests.acceptance.watching import Watching, watching
from tests.conftest import PrivateHome
from tests.integration.api_served import ServedApi
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE


@pytest.fixture
def served(perdure: Perdure, private_home: PrivateHome) -> Iterator[tuple[ServedApi, Watching]]:
    with watching(perdure, "--port", "0") as watcher:
        yield ServedApi(perdure, private_home.state), watcher


@pytest.mark.parametrize("path", ["/api/runs", "/api/runs/r1/input", "/api/restores/plan", "/api/jobs"])
def test_what_is_nested_too_deeply_is_said_so(served: tuple[ServedApi, Watching], path: str) -> None:
    api, watcher = served
    json = {"content-type": "application/json"}
    with api.client() as client:
        for body in (b"[" * 1000, b"[" * 100_000, b'{"a":' * 1000, b'{"env":' + b"[" * 5000):
            answer = client.post(path, content=body, headers=json)
            assert (answer.status_code, answer.json()["code"]) == (400, "USAGE_ERROR"), answer.text
            assert answer.json()["message"].endswith(".")
    assert watcher.log == ""


@pytest.mark.parametrize(
    ("path", "fine"),
    [
        ("/api/tickets", 201),
        ("/api/logout", 204),
        ("/api/runs/r1/seen", 404),
        ("/api/runs/r1/follow", 404),
        ("/api/jobs/abc/kill", 404),
    ],
)
def test_a_body_with_something_in_it_is_refused_where_none_is_read(
    served: tuple[ServedApi, Watching], path: str, fine: int
) -> None:
    api, watcher = served
    with api.client() as client:
        for body in (b"", b"{}", b"null"):
            assert client.post(path, content=body).status_code == fine
        for body, said in (
            (b'{"bogus": 1}', "There is no field `bogus`; it takes none."),
            (b"{", "The body is no JSON that can be read; none is needed."),
            (b"bogus=1", "The body is no JSON that can be read; none is needed."),
            (b"[1]", "The body has to be an object, or left out."),
        ):
            answer = client.post(path, content=body)
            assert (answer.status_code, answer.json()["code"]) == (400, "USAGE_ERROR"), answer.text
            assert answer.json()["message"] == said
    assert watcher.log == ""


@pytest.mark.parametrize(
    ("method", "path", "body", "said"),
    [
        (
            "POST",
            "/api/runs/r1/input",
            {"text": "hello", "timeout": "1"},
            "`timeout` has to be a number, not a text.",
        ),
        (
            "PATCH",
            "/api/settings",
            {"version": "", "restore": {"verify_seconds": "5"}},
            "`restore.verify_seconds` has to be a number or null, not a text.",
        ),
        ("POST", "/api/jobs/abc/resize", {"rows": "9", "columns": 9}, "`rows` has to be a whole number, not a text."),
        (
            "POST",
            "/api/jobs",
            {"argv": ["true"], "notify": {"on_exit": 1}},
            "`notify.on_exit` has to be true or false, not a whole number.",
        ),
        ("POST", "/api/jobs/abc/resize", {"rows": 9, "cols": 9}, "There is no field `cols`; there are rows, columns."),
    ],
)
def test_a_field_is_of_its_own_kind_and_one_that_is_not_known_is_told_which_are(
    served: tuple[ServedApi, Watching], method: str, path: str, body: object, said: str
) -> None:
    api, _ = served
    with api.client() as client:
        answer = client.request(method, path, json=body)
        assert (answer.status_code, answer.json()["code"]) == (400, "USAGE_ERROR"), answer.text
        assert answer.json()["message"] == said
        [wrong] = answer.json()["data"]["wrong"]
        assert wrong["message"] == said
        # What stands behind the `?` is always a text.
        assert client.get("/api/runs", params={"limit": "5", "over": "true"}).status_code == 200


def test_whoever_hangs_up_within_a_body_is_no_failure(
    served: tuple[ServedApi, Watching], private_home: PrivateHome
) -> None:
    api, watcher = served
    head = f"POST /api/runs HTTP/1.1\r\nhost: {api.address[0]}\r\nauthorization: Bearer {api.token}\r\n"
    with socket.create_connection(api.address, timeout=PATIENCE) as connection:
        connection.sendall(head.encode() + b"content-type: application/json\r\ncontent-length: 100\r\n\r\n{")
        # Reset, not only closed: nobody is there any more for certain.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    path = os.path.join(private_home.state, "access.log")

    def asked() -> list[str]:
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [line for line in file if '"path":"/api/runs"' in line]

    wait_for(lambda: asked(), "the request")
    assert '"status":408' in asked()[0]
    assert watcher.log == ""


def test_a_text_frame_that_is_none_ends_the_connection_and_nothing_else(served: tuple[ServedApi, Watching]) -> None:
    api, watcher = served
    address = api.url.replace("http", "ws") + "/api/socket"
    with connect(address, additional_headers={"authorization": f"Bearer {api.token}"}, proxy=None) as opened:
        opened.protocol.send_text(b"\xff\xfe")
        opened.socket.sendall(b"".join(opened.protocol.data_to_send()))
        with pytest.raises(ConnectionClosed) as closed:
            opened.recv(PATIENCE)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1007
    with api.client() as client:
        assert client.get("/health").status_code == 200
    assert watcher.log == ""
