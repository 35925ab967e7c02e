"""Chats and turns to write down, and a clock to say when."""

from __future__ import annotations

from datetime import datetime, timedelta

import msgspec

from perdure.model.chat import Chat, Source, Turn
from tests.builders import NOON, at


def a_source(user: str | None = "alice", **changes: object) -> Source:
    """A direct message on Telegram, where a chat has the id of its person."""
    source = Source(platform="telegram", chat_id=f"chat-{user}", user_id=user, user_name=user)
    return msgspec.structs.replace(source, **changes)


def a_chat(id: str = "c1", **changes: object) -> Chat:
    """An open chat that was begun at noon; its key is made of its id."""
    chat = Chat(id=id, key=f"key-{id}", source=a_source(), opened_at=at(0), touched_at=at(0))
    return msgspec.structs.replace(chat, **changes)


def a_turn(content: object = "hello", role: str = "user", **changes: object) -> Turn:
    """Something that was said at noon."""
    return msgspec.structs.replace(Turn(position=0, role=role, content=content, at=at(0)), **changes)


def nested(levels: int, shape: type = list) -> object:
    """Something within so many lists or mappings."""
    value: object = "core"
    for _ in range(levels):
        value = {"a": value} if shape is dict else [value]
    return value


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time

    def later(self, **by: float) -> datetime:
        """Let some time pass."""
        self.time += timedelta(**by)
        return self.time
