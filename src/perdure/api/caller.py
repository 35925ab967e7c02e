"""Who asks: a person of this machine, by a token of theirs, and what that token is good for."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Scope(StrEnum):
    """What a token is good for."""

    #: Looking only.
    READ = "read"
    #: Everything its user may do.
    WRITE = "write"


class Caller(Struct, frozen=True, kw_only=True):
    """Who asks. Nobody is shown, or reaches, what is another user's (`live.whose`)."""

    uid: int
    user: str
    scope: Scope
    #: The token's name, for the logs: never the token.
    token: str
    #: The id of what let them in, by which it is known whether it still would.
    grant: str = ""

    @property
    def may_write(self) -> bool:
        """Whether anything may be changed."""
        return self.scope is Scope.WRITE
