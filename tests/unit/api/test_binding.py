"""Where the HTTP interface listens."""

from __future__ import annotations

import os
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from perdure.api.binding import chosen, listen
from perdure.errors import PerdureError, Refused, UsageError
from perdure.model.config import ApiConfig
from tests.conftest import PrivateHome

ANY = ApiConfig(port=0)


def test_the_environment_says_where_or_that_nobody_listens() -> None:
    assert chosen(ANY, None) is ANY
    assert chosen(ANY, "") is ANY
    assert chosen(ANY, "8000") == ApiConfig(port=8000)
    assert not chosen(ANY, "off").enabled


@given(st.text().filter(lambda text: text and text != "off" and not (text.isascii() and text.isdigit())))
def test_anything_else_in_the_environment_is_a_mistake(said: str) -> None:
    with pytest.raises(UsageError, match="PERDURE_PORT"):
        chosen(ANY, said)


@pytest.mark.parametrize(
    ("host", "base"),
    [("127.0.0.1", "http://127.0.0.1:"), ("localhost", "http://localhost:"), ("127.0.0.2", "http://127.0.0.2:")],
)
def test_this_machine_alone_reaches_the_loopback(host: str, base: str) -> None:
    found = listen(structs.replace(ANY, host=host, hosts=("Box.Example",)))
    try:
        assert found.base == f"{base}{found.port}"
        assert found.socket.getsockname()[0].startswith("127.")
        assert {"127.0.0.1", "localhost", "[::1]", "box.example"} <= found.hosts
        with pytest.raises(PerdureError, match="in use"):
            listen(structs.replace(ANY, host=host, port=found.port))
    finally:
        found.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])
def test_whoever_can_be_reached_from_elsewhere_has_to_say_so(host: str) -> None:
    if host:
        with pytest.raises(Refused, match="insecure-bind"):
            listen(structs.replace(ANY, host=host))
    else:
        with pytest.raises((Refused, UsageError)):
            listen(structs.replace(ANY, host=host))


def test_a_socket_that_was_left_behind_is_replaced_and_one_that_answers_is_not(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.home, "deep", "http.sock")
    os.mkdir(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)
    found = listen(structs.replace(ANY, unix_socket=path))
    with pytest.raises(PerdureError, match="already"):
        listen(structs.replace(ANY, unix_socket=path))
    found.close()
    assert not os.path.exists(path)


def test_a_file_is_not_taken_for_a_socket(private_home: PrivateHome) -> None:
    path = os.path.join(private_home.home, "notes.txt")
    with open(path, "w") as file:
        file.write("mine")
    with pytest.raises(PerdureError):
        listen(structs.replace(ANY, unix_socket=path))
    with open(path) as file:
        assert file.read() == "mine"
