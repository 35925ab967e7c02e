"""One connection, before it is known whose: what it may send, and how long it may take to say or read something, is bounded."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from litestar.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from perdure.api.admission import LARGEST_BODY
from perdure.api.errors import Crowded, failure
from perdure.api.replies import encoded

#: How much may come before a request has said what it wants, in bytes: headers without an end would be kept in memory.
LARGEST_HEAD = 256 << 10
#: How long it may take until a request has said what it wants, and all of it, in seconds: there is room for so many only.
HEAD_WITHIN, SAID_WITHIN = 10.0, 30.0
#: How long a client may read nothing of what it is told, in seconds, and how often that is looked at meanwhile: one moment tells little.
READ_WITHIN, LOOKS = 30.0, 3
#: How many may be connected at once of those who have shown that they may come in. Nobody else takes their room.
CONNECTIONS = 256
#: How many others are left alone, how long, in seconds, any of them is who has only just come, and how many there may ever be.
STRANGERS, YOUNG, CROWD = 64, 1.0, 256
#: How many are taken in before those are listened to who are there already: many fewer than `CROWD`, or a crowd that comes all
#: at once would push out whoever came a moment before, and had no time to say who they are.
AT_ONCE = 64
#: Where a request has, for `guard`, what is to be called once it is known whose connection it is.
LET_IN = "perdure_let_in"


class Connection(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, for strangers."""

    _unread = 0
    _timer: asyncio.TimerHandle | None = None
    #: Whether nobody of ours has asked anything over it, and since when it is there.
    is_stranger = True
    made_at = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self.made_at = self.loop.time()
        self._begin_to_wait(HEAD_WITHIN)
        _Reading(transport).look()
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take in some more, unless it is too much."""
        self._unread += len(data)
        if self._unread > LARGEST_HEAD + LARGEST_BODY:
            self.transport.close()
            return
        super().data_received(data)

    def on_message_begin(self) -> None:
        """A request begins: what it wants is to be said within its time."""
        self._begin_to_wait(HEAD_WITHIN)
        super().on_message_begin()
        self.scope["state"][LET_IN] = self._let_in

    def on_headers_complete(self) -> None:
        """It is known what is wanted."""
        self._unread = 0
        self._end_waiting()
        self._begin_to_wait(SAID_WITHIN)
        # Strangers do not count: they are refused in no time.
        ours = sum(1 for each in self._there() if not is_stranger(each) and each is not self)
        # What somebody has asked for who is gone may still be done.
        is_full = ours >= CONNECTIONS or len(self.tasks) > CONNECTIONS + CROWD
        self.app = cast(Any, crowded) if is_full else self.config.loaded_app
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """What has come is counted by whoever reads it."""
        self._unread = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is said; the answer may take as long as it takes."""
        self._end_waiting()
        super().on_message_complete()

    def handle_websocket_upgrade(self) -> None:
        """From here on it is a WebSocket, which stays."""
        self._end_waiting()
        super().handle_websocket_upgrade()

    def _let_in(self) -> None:
        self.is_stranger = False

    def _there(self) -> list[Any]:
        """Everybody who is connected, and stays."""
        return [each for each in self.connections if not each.transport.is_closing()]

    def _make_room(self) -> None:
        """Let go of strangers, those first that are here longest: who only connects must not crowd out who may come in."""
        strangers = sorted(filter(is_stranger, self._there()), key=lambda each: each.made_at)
        too_many, far_too_many = len(strangers) - STRANGERS, len(strangers) - CROWD
        now = self.loop.time()
        for number, each in enumerate(strangers[: max(too_many, 0)]):
            if each is not self and (number < far_too_many or now - each.made_at > YOUNG):
                each.transport.abort()

    def _begin_to_wait(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self.transport.close)

    def _end_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def is_stranger(connection: object) -> bool:
    """Return whether nobody of ours has asked anything over a connection. A WebSocket's has been seen to by `guard`."""
    return isinstance(connection, Connection) and connection.is_stranger


class _Reading:
    """Lets go of a connection whose client reads nothing, whatever it speaks: closing one waits until all is read."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._waiting = 0
        self._same = 0

    def look(self) -> None:
        """Look whether anything was read, now and then until the connection is gone."""
        waiting = self._transport.get_write_buffer_size()
        if not waiting and self._transport.is_closing():
            return
        # What is written meanwhile changes the number too, but it is written only until there is too much.
        self._same = self._same + 1 if waiting and waiting == self._waiting else 0
        self._waiting = waiting
        if self._same >= LOOKS:
            self._transport.abort()
            return
        asyncio.get_running_loop().call_later(READ_WITHIN / LOOKS, self.look)


async def crowded(scope: Scope, receive: Receive, send: Send) -> None:
    """Say that there is no room."""
    status, body = failure(Crowded())
    raw = encoded(body)
    headers = {"content-type": "application/json", "content-length": str(len(raw)), "connection": "close"}
    lines = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send(cast(Message, {"type": "http.response.start", "status": status, "headers": lines}))
    await send(cast(Message, {"type": "http.response.body", "body": raw}))
