"""A gateway's side of chats, for tests of what the command line makes of them."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from perdure.chats.service import Chats
from perdure.model.chat import Source, Turn
from perdure.model.config import Config
from perdure.store import open_store
from tests.conftest import PrivateHome
from tests.contract.store.chats import Clock, a_source, a_turn

ANN = a_source("ann", chat_id="99", user_name="Ann")


class Gateway:
    """A gateway that used the store some time ago, and lets go of it whenever it has done something."""

    def __init__(self, home: PrivateHome) -> None:
        self._state = home.state
        self.clock = Clock()
        self.clock.time = datetime.now(UTC) - timedelta(hours=3)

    def __call__(self, work: Callable[[Chats], Any]) -> Any:
        """Return what becomes of the chats."""
        url = os.environ.get("PERDURE_STORE") or f"sqlite://{self._state}/perdure.db"
        store = open_store(url, state_dir=self._state)
        try:
            return work(Chats(store.chats, Config(), self.clock))
        finally:
            store.close()

    def open(self, source: Source = ANN, *said: str | Turn, title: str = "", **more: Any) -> str:
        """Return the id of a chat in which something was said."""

        def work(chats: Chats) -> str:
            chat = chats.open(source, **more)
            for each in said:
                chats.append(chat.id, a_turn(each, at=self.clock()) if isinstance(each, str) else each)
            if title:
                chats.set_title(source, chat.id, title)
            return chat.id

        return str(self(work))
