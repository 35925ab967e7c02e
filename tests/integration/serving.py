"""A daemon's socket with nothing behind it but a list of events and an answer the test chooses."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Awaitable, Sequence
from typing import Any

import msgspec

from perdure.daemon.listen import Limits, serve
from perdure.daemon.protocol import AnyRequest, AskRun, AskStatus, Detach, Events, Save, socket_path
from perdure.errors import Refused, RunNotFound
from perdure.live.feed import Feed
from perdure.model.event import StoredEvent
from tests.tmux_server import PATIENCE
from tests.waiting import wait_for as wait_for


class Served:
    """`serve` in a thread of its own; `with` it."""

    def __init__(
        self, state_dir: str, *, limits: Limits | None = None, most: int = 1024, me: int | None = None
    ) -> None:
        self.state_dir = state_dir
        self.path = socket_path(state_dir)
        self.stored: list[StoredEvent] = []
        self.asked: list[tuple[AnyRequest, int]] = []
        self.cancelled = 0
        self.feed = Feed(most)
        self.error: BaseException | None = None
        #: Whether this is the daemon that watches.
        self.has_lease = True
        self.asked_for_lease = 0
        self._limits, self._me = limits, me
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Served:
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End it as a daemon ends."""
        if self._loop is not None and self._task is not None and self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def publish(self, *events: StoredEvent) -> None:
        """Store events and publish them, in the daemon's own thread."""
        done = threading.Event()

        def go() -> None:
            for event in events:
                self.stored.append(event)
                self.feed.publish(event)
            done.set()

        assert self._loop is not None
        self._loop.call_soon_threadsafe(go)
        assert done.wait(PATIENCE)

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except asyncio.CancelledError:
            pass
        except BaseException as error:
            self.error = error
        finally:
            self._ready.set()

    async def _main(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        await serve(
            self.path,
            self._answer,
            self.feed,
            read=self._read,
            has_lease=self._has_lease,
            ready=self._ready.set,
            me=self._me,
            limits=self._limits,
        )

    async def _has_lease(self) -> bool:
        self.asked_for_lease += 1
        return self.has_lease

    async def _read(self, request: Events) -> Sequence[StoredEvent]:
        found = [
            each
            for each in self.stored
            if each.seq > request.after
            and request.run in (None, each.event.run)
            and (not request.kinds or each.event.kind in request.kinds)
        ]
        await asyncio.sleep(0)
        return found[: request.limit]

    def _answer(self, request: AnyRequest, uid: int) -> Awaitable[object]:
        self.asked.append((request, uid))
        return self._answered(request)

    async def _answered(self, request: AnyRequest) -> object:
        if isinstance(request, AskStatus):
            return {"pid": os.getpid()}
        if isinstance(request, AskRun):
            raise RunNotFound(f"There is no run {request.run!r}.", run=request.run, where=b"\xff")
        if isinstance(request, Detach):
            raise Refused("Not this one.")
        if isinstance(request, Save):
            return {"large": "x" * (9 << 20)}
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        raise ZeroDivisionError


class Raw:
    """A client that says exactly what a test wants."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(PATIENCE)
        self.socket.connect(path)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *exc: object) -> None:
        self._file.close()
        self.socket.close()

    def send(self, *lines: bytes) -> None:
        """Send lines as they are."""
        self.socket.sendall(b"".join(line + b"\n" for line in lines))

    def line(self) -> dict[str, Any] | None:
        """Return the next answer, None at the end."""
        try:
            raw = self._file.readline()
        except ConnectionError:
            # Closed with something of ours unread.
            raw = b""
        return msgspec.json.decode(raw) if raw else None
