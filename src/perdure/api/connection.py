"""One connection, before it is known whose: what it may send, and how long it may take to, is bounded."""

from __future__ import annotations

import asyncio

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from perdure.api.admission import LARGEST_BODY

#: How much may come before a request has said what it wants, in bytes: headers without an end would be kept in memory.
LARGEST_HEAD = 256 << 10
#: How long a request may take to be said, in seconds: there is room for so many connections only.
SAID_WITHIN = 30.0


class Connection(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, for strangers."""

    _unread = 0
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Wait for the first request, but not for ever."""
        super().connection_made(transport)
        self._begin_to_wait()

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
        """A request begins: it is to be said within its time."""
        self._begin_to_wait()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        """It is known what is wanted."""
        self._unread = 0
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

    def _begin_to_wait(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(SAID_WITHIN, self.transport.close)

    def _end_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
