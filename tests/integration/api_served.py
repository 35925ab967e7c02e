"""A daemon as people start it, asked over HTTP at a port of its own."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from tests.acceptance.watching import watching
from tests.perdure_cli import Perdure
from tests.tmux_server import PATIENCE


class ServedApi:
    """Where a daemon is, and the ways to ask it."""

    def __init__(self, perdure: Perdure, state: str) -> None:
        self._perdure = perdure
        self._state = state
        self.url = re.sub(r"/login.*", "", self.link())
        self.address = (self.url.removeprefix("http://").split(":")[0], int(self.url.rpartition(":")[2]))

    def link(self, *args: str) -> str:
        """Return an address that logs in once."""
        return self._perdure.ok("open", "--print", *args).out.strip()

    @property
    def token(self) -> str:
        """The owner's own token."""
        with open(os.path.join(self._state, "api.token"), encoding="ascii") as file:
            return file.read().strip()

    def client(self, token: str | None = None, **headers: str) -> httpx.Client:
        """Return a client with a token, the owner's own unless told otherwise; "" for none. To be used by `with`."""
        token = self.token if token is None else token
        bearer = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers={**bearer, **headers}, timeout=PATIENCE)

    @contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        """A client that has followed a link, and says which page asks."""
        with self.client("", origin=self.url) as client:
            assert client.get(self.link()).status_code == 303
            yield client

    def raw(self, said: bytes) -> bytes:
        """Say something that no client would, and return the first of what comes back."""
        with socket.create_connection(self.address, timeout=PATIENCE) as connection:
            connection.sendall(said)
            return connection.recv(65536)


@contextmanager
def serving(perdure: Perdure, state: str, *args: str) -> Iterator[ServedApi]:
    """A daemon that is asked over HTTP; it ends with the block, which has to go well."""
    with watching(perdure, *(args or ("--port", "0"))):
        yield ServedApi(perdure, state)
