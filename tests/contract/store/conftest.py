"""One body of tests over both databases."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from perdure.chats.mirror import Mirror
from perdure.chats.service import Chats
from perdure.model.config import ChatKeysConfig, Config
from perdure.store import open_store
from perdure.store.store import Store
from tests.conftest import PrivateHome
from tests.contract.store.chats import Clock
from tests.postgres import PostgresServer


class Place(NamedTuple):
    """Where a store is."""

    url: str
    state_dir: str

    def open(self) -> Store:
        """Open it."""
        return open_store(self.url, state_dir=self.state_dir)


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A server that the whole run shares."""
    server = PostgresServer()
    yield server
    server.close()


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, private_home: PrivateHome) -> Iterator[Place]:
    """A store with nothing in it; with the mark `unmade`, one that does not exist yet."""
    if request.param == "sqlite":
        yield Place(f"sqlite://{os.path.join(private_home.state, 'perdure.db')}", private_home.state)
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.new_database(empty=request.node.get_closest_marker("unmade") is not None)
    yield Place(url, private_home.state)
    server.drop(url)


@pytest.fixture
def opened(place: Place) -> Iterator[Callable[[], Store]]:
    """Opens the store as often as asked, and closes all of them."""
    stores: list[Store] = []

    def open_one() -> Store:
        stores.append(place.open())
        return stores[-1]

    yield open_one
    for store in stores:
        store.close()


@pytest.fixture
def store(opened: Callable[[], Store]) -> Store:
    """A new store."""
    return opened()


@pytest.fixture
def threaded(place: Place) -> Iterator[Store]:
    """A new store for several threads."""
    store = open_store(place.url, state_dir=place.state_dir, threads=True)
    yield store
    store.close()


@pytest.fixture
def clock() -> Clock:
    """When it is: noon, until somebody says otherwise."""
    return Clock()


@pytest.fixture
def chats(store: Store, clock: Clock) -> Chats:
    """The chats of a new store, which never go stale."""
    return Chats(store.chats, Config(), clock)


@pytest.fixture
def mirror(store: Store, tmp_path: Path) -> Mirror:
    """Its mirror, which nobody has written yet."""
    return Mirror(store.chats, str(tmp_path / "sessions"), ChatKeysConfig())
