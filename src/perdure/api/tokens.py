"""Tokens: what stands for a person, and how long. Pure: secrets and moments are handed in, nothing is read or written.

Of a token only its digest is kept. Secrets here are 256 random bits: a plain digest cannot be turned back, and is compared in
the same time whatever was tried.
"""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from hashlib import sha256

from msgspec import Struct, structs

from perdure.api.caller import Caller, Scope
from perdure.errors import NotFound, UsageError

#: How many random bytes a secret is made of.
SECRET_BYTES = 32
#: How long somebody who logged in by a link stays so.
SESSION_LASTS = timedelta(days=30)
#: How many may be logged in at once; beyond, the oldest is let go of.
MOST_SESSIONS = 200
_LONGEST_NAME = 64


class Kind(StrEnum):
    """Where a grant came from."""

    #: Made on the command line, for a program.
    TOKEN = "token"
    #: A browser that followed a link.
    SESSION = "session"


class Grant(Struct, frozen=True, kw_only=True):
    """Something that lets somebody in. Whoever reads it cannot get in by it."""

    id: str
    kind: Kind
    name: str
    digest: str
    scope: Scope
    uid: int
    user: str
    created_at: datetime
    #: None: until it is revoked.
    expires_at: datetime | None = None

    @property
    def caller(self) -> Caller:
        """Who asks when it is shown."""
        return Caller(uid=self.uid, user=self.user, scope=self.scope, token=self.name, grant=self.id)

    def is_over(self, now: datetime) -> bool:
        """Whether its time is up."""
        return self.expires_at is not None and now >= self.expires_at


class Grants(Struct, frozen=True, kw_only=True):
    """All of them, as they are kept."""

    grants: tuple[Grant, ...] = ()


def secret_from(random: bytes) -> str:
    """Return random bytes as a secret one can put into a header, a cookie or an address."""
    return "pdr_" + urlsafe_b64encode(random).decode().rstrip("=")


def digest_of_secret(secret: str) -> str:
    """Return what is kept of a secret."""
    return sha256(secret.encode(errors="surrogatepass")).hexdigest()


def is_same(secret: str, digest: str) -> bool:
    """Return whether a secret has this digest, in a time that tells nothing about how much of it is right."""
    return hmac.compare_digest(digest_of_secret(secret), digest)


def id_of(digest: str) -> str:
    """Return what a token is named by: the end of its digest, which is of no use to anybody."""
    return digest[-8:]


def grant(
    secret: str,
    *,
    kind: Kind,
    name: str,
    scope: Scope,
    uid: int,
    user: str,
    now: datetime,
    lasts: timedelta | None = None,
) -> Grant:
    """Return what lets in whoever shows `secret`. Raises `UsageError` for a name that cannot be one."""
    if not name or len(name) > _LONGEST_NAME or not name.isprintable():
        raise UsageError(f"A token's name has 1 to {_LONGEST_NAME} characters that can be printed.")
    digest = digest_of_secret(secret)
    return Grant(
        id=id_of(digest),
        kind=kind,
        name=name,
        digest=digest,
        scope=scope,
        uid=uid,
        user=user,
        created_at=now,
        expires_at=None if lasts is None else now + lasts,
    )


def added(known: Grants, new: Grant, now: datetime) -> Grants:
    """Return the grants with one more, and without those whose time is up. Raises `UsageError` for a name that is taken."""
    living = [each for each in known.grants if not each.is_over(now)]
    if new.kind is Kind.TOKEN and any(each.kind is Kind.TOKEN and each.name == new.name for each in living):
        raise UsageError(f"There is a token called {new.name!r} already.")
    living.append(new)
    sessions = [each for each in living if each.kind is Kind.SESSION]
    surplus = {each.id for each in sessions[: max(0, len(sessions) - MOST_SESSIONS)]}
    return structs.replace(known, grants=tuple(each for each in living if each.id not in surplus))


def without(known: Grants, which: str) -> tuple[Grants, Grant]:
    """Return the grants without the one of this id or name, and that one. Raises `NotFound` and `UsageError`."""
    found = [each for each in known.grants if which == each.id]
    found = found or [each for each in known.grants if which == each.name]
    if not found:
        raise NotFound(f"There is no token {which!r}; `perdure token ls` shows those there are.")
    if len(found) > 1:
        raise UsageError(f"{which!r} is the name of {len(found)}; say which by its id.")
    return structs.replace(known, grants=tuple(each for each in known.grants if each is not found[0])), found[0]


def found_by(secret: str, grants: Iterable[Grant], now: datetime) -> Grant | None:
    """Return what this secret is good for, None when for nothing. All of them are compared, whichever fits."""
    digest, found = digest_of_secret(secret), None
    for each in grants:
        if hmac.compare_digest(digest, each.digest):
            found = each
    return None if found is None or found.is_over(now) else found
