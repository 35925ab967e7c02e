"""Everything that lets somebody in: tokens, sessions of browsers, links to begin one, tickets for a WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from math import ceil

from perdure.api import tokens
from perdure.api.caller import Caller, Scope
from perdure.api.errors import TooMany, Unauthorized
from perdure.api.one_use import OneUse
from perdure.api.tokens import SESSION_LASTS, Kind
from perdure.api.vault import Vault, fresh_secret
from perdure.api.wrong_tries import WrongTries
from perdure.errors import PerdureError

#: The cookie of a browser that is logged in, at the usual port; at others the port is part of its name, for a browser shares
#: the cookies of all ports.
COOKIE = "perdure_session"
USUAL_PORT = 7717
#: How long a link waits to be followed, and a ticket to be used, in seconds.
LINK_LASTS, TICKET_LASTS = 3600.0, 30.0
#: What a browser's session is called in the logs.
BROWSER = "browser"


class Keys:
    """Who is let in, by what. Belongs to the loop, but for `log_in` and `log_out`, which write a file."""

    def __init__(self, vault: Vault, *, now: Callable[[], datetime], ticking: Callable[[], float]) -> None:
        self.vault = vault
        self._now = now
        self._ticking = ticking
        self._links: OneUse[Caller] = OneUse(LINK_LASTS)
        self._tickets: OneUse[Caller] = OneUse(TICKET_LASTS)
        self._tries = WrongTries()
        #: What the cookie is called, and whether it is for TLS alone.
        self.cookie = COOKIE
        self.is_secure = False
        #: Where a browser finds us; "" as long as nobody listens.
        self.base = ""

    def serve_at(self, base: str, port: int, *, is_secure: bool) -> None:
        """Say where a browser finds us."""
        self.base = base
        self.is_secure = is_secure
        self.cookie = COOKIE if port == USUAL_PORT else f"{COOKIE}_{port}"

    def who(self, secret: str) -> tuple[Caller, Kind] | None:
        """Return whom a token or a session's cookie stands for."""
        return self.vault.who(secret, self._now())

    def holds(self, caller: Caller) -> bool:
        """Return whether what let somebody in still would."""
        return self.vault.holds(caller, self._now())

    def refusal(self, peer: str, why: str | None = None) -> PerdureError:
        """Return what a peer is told that was not right: the more often it is not, the less."""
        wait = self._tries.failed(peer, self._ticking())
        return Unauthorized(why) if wait is None else TooMany(retry_after=max(1, ceil(wait)))

    def link(self, uid: int, user: str) -> str:
        """Return an address that logs a browser in as this user, once."""
        caller = Caller(uid=uid, user=user, scope=Scope.WRITE, token=BROWSER)
        return f"{self.base}/login?once={self._links.issue(caller, self._ticking())}"

    def follow(self, once: str) -> Caller | None:
        """Return who a link logs in, and never again."""
        return self._links.use(once, self._ticking())

    def log_in(self, caller: Caller) -> str:
        """Begin a browser's session, and return what its cookie holds. Writes a file: for a thread."""
        secret, now = fresh_secret(), self._now()
        session = tokens.grant(
            secret,
            kind=Kind.SESSION,
            name=BROWSER,
            scope=caller.scope,
            uid=caller.uid,
            user=caller.user,
            now=now,
            lasts=SESSION_LASTS,
        )
        self.vault.add(session, now)
        return secret

    def log_out(self, secret: str) -> None:
        """End a browser's session. Writes a file: for a thread."""
        self.vault.forget(secret, self._now())

    def ticket(self, caller: Caller) -> str:
        """Return what lets the caller open one WebSocket, soon."""
        return self._tickets.issue(caller, self._ticking())

    def use_ticket(self, ticket: str) -> Caller | None:
        """Return whose ticket it is, and never again."""
        return self._tickets.use(ticket, self._ticking())
