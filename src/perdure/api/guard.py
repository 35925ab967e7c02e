"""What stands before the application: nobody gets to a route but through here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any, cast

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from perdure.api.admission import FOR_READERS, SAFE, Approach, admit
from perdure.api.caller import Caller
from perdure.api.connection import LET_IN
from perdure.api.errors import TooMany, Unauthorized, failure
from perdure.api.keys import Keys
from perdure.api.lasting import Lasting, Waiting
from perdure.api.logs import Logs
from perdure.api.replies import encoded
from perdure.errors import NoDaemon, PerdureError

#: What a page of ours may do: nothing but what comes from here, and nothing written into it.
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    )
)
#: Where links lead that log a browser in.
LOGIN = "/login"
#: What every answer says; a route may say otherwise.
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Guard:
    """An ASGI application that lets in who may come in to another, and writes down who asked for what."""

    def __init__(
        self, app: ASGIApp, keys: Keys, logs: Logs, *, hosts: Collection[str], ticking: Callable[[], float]
    ) -> None:
        self._app = app
        self._keys = keys
        self._logs = logs
        self._hosts = frozenset(host.lower() for host in hosts)
        self._ticking = ticking

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        approach = approach_of(cast(dict[str, Any], scope))
        seen = _Seen(self._logs, approach, peer_of(scope), self._ticking)
        try:
            caller = admit(approach, self._keys, self._hosts)
        except PerdureError as error:
            await self._refuse(error, approach, seen, receive, seen.watching(send))
            return
        seen.caller = caller
        if caller is not None:
            cast(dict[str, Any], scope)["user"] = caller
            _note_let_in(scope)
        if approach.is_websocket and caller is not None:
            lasting = Lasting(receive, send, lambda: self._keys.holds(caller))
            try:
                await self._app(scope, lasting.receive, seen.watching(send))
            finally:
                lasting.close()
            return
        if caller is None or approach.path in FOR_READERS:
            await self._answer(None, scope, approach, seen, receive, send)
            return
        with Waiting(lambda: self._keys.holds(caller), may_end=approach.method in SAFE) as waiting:
            await self._answer(waiting, scope, approach, seen, receive, send)

    async def _answer(
        self, waiting: Waiting | None, scope: Scope, approach: Approach, seen: _Seen, receive: Receive, send: Send
    ) -> None:
        """Have a request answered; one that has waited only if what let it in still would."""
        watched = seen.watching(send)
        is_refused = False

        async def tell(message: Message) -> None:
            nonlocal is_refused
            if waiting is not None and message["type"] == "http.response.start" and waiting.is_over():
                is_refused = True
                await self._refuse(Unauthorized(), approach, seen, receive, watched)
            if not is_refused:
                await watched(message)

        # A link is spent when it is followed, not when somebody looks where it leads.
        if approach.method == "HEAD" and approach.path != LOGIN:
            # What would be got is found out; whoever sends the answer leaves out all but its head.
            scope = cast(Scope, {**scope, "method": "GET"})
        try:
            await self._app(scope, receive, tell)
        except asyncio.CancelledError:
            # The daemon ends, and has waited for long enough; or the caller may not wait. What was begun may still be done.
            if not seen.is_answered:
                is_out = waiting is not None and waiting.is_ended
                error = Unauthorized() if is_out else NoDaemon("The daemon ends.")
                await self._refuse(error, approach, seen, receive, watched)

    async def _refuse(self, error: PerdureError, approach: Approach, seen: _Seen, receive: Receive, send: Send) -> None:
        more: dict[str, str] = {}
        if isinstance(error, Unauthorized):
            error = self._keys.refusal(seen.peer)
            more["www-authenticate"] = "Bearer"
        if isinstance(error, TooMany):
            more["retry-after"] = str(error.data["retry_after"])
        status, body = failure(error)
        raw = encoded(body)
        headers = {"content-type": "application/json", "content-length": str(len(raw)), **more}
        kind = "websocket.http.response" if approach.is_websocket else "http.response"
        if approach.is_websocket:
            await receive()  # that somebody wants to connect
        lines = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send(cast(Message, {"type": f"{kind}.start", "status": status, "headers": lines}))
        await send(cast(Message, {"type": f"{kind}.body", "body": b"" if approach.method == "HEAD" else raw}))


class _Seen:
    """One request as the access log has it."""

    def __init__(self, logs: Logs, approach: Approach, peer: str, ticking: Callable[[], float]) -> None:
        self.peer = peer
        self.caller: Caller | None = None
        #: Whether an answer was begun.
        self.is_answered = False
        self._logs = logs
        self._approach = approach
        self._ticking = ticking
        self._began_at = ticking()

    def watching(self, send: Send) -> Send:
        """Return `send`, with what every answer says, and written down."""

        async def watched(message: Message) -> None:
            kind = message["type"]
            if kind in ("http.response.start", "websocket.http.response.start"):
                start = cast(dict[str, Any], message)
                start["headers"] = _with_ours(start.get("headers", ()))
                self._write(start["status"])
            elif kind == "websocket.accept":
                self._write(101)
            await send(message)

        return watched

    def _write(self, status: int) -> None:
        self.is_answered = True
        caller = self.caller
        self._logs.access(
            peer=self.peer,
            user=caller.user if caller else None,
            token=caller.token if caller else None,
            method="WEBSOCKET" if self._approach.is_websocket else self._approach.method,
            path=self._approach.path,
            status=status,
            ms=round((self._ticking() - self._began_at) * 1000, 1),
        )


def approach_of(scope: dict[str, Any]) -> Approach:
    """Return what a request says of itself."""
    return Approach(
        method=scope.get("method", "GET"),
        path=scope["path"],
        raw_path=scope.get("raw_path") or scope["path"].encode(errors="replace"),
        scheme=scope.get("scheme", "http"),
        query=scope.get("query_string", b""),
        headers=tuple((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]),
        is_websocket=scope["type"] == "websocket",
    )


def _note_let_in(scope: Scope) -> None:
    let_in = cast(dict[str, Any], scope).get("state", {}).get(LET_IN)
    if let_in is not None:
        let_in()


def peer_of(scope: Scope) -> str:
    """Return where a request comes from."""
    client = cast(dict[str, Any], scope).get("client")
    return str(client[0]) if client else "unix"


def _with_ours(headers: Any) -> list[tuple[bytes, bytes]]:
    said = [(bytes(name).lower(), bytes(value)) for name, value in headers]
    names = {name for name, _ in said} | {b"server"}
    return [*said, *((name.encode(), value.encode()) for name, value in HEADERS.items() if name.encode() not in names)]
