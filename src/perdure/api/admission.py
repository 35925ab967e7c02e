"""Whether a request is let in, by what it says of itself. No I/O of its own: whom a secret stands for, `Keys` tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from urllib.parse import parse_qs

from msgspec import Struct

from perdure.api.caller import Caller
from perdure.api.errors import BadPath, ReadOnly, TooLarge, Unauthorized, WrongHost, WrongOrigin
from perdure.api.tokens import Kind

#: What a body may be, in bytes.
LARGEST_BODY = 1 << 20
#: What changes nothing.
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
#: What only those with a token may see; everything else is the dashboard's own files, the same for everybody, and `/health`.
GUARDED = frozenset({"api", "schema", "metrics"})
#: What somebody who may only look may ask for all the same: it is about themselves.
FOR_READERS = frozenset({"/api/logout", "/api/tickets"})
LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_ENCODED = (b"%2f", b"%5c", b"%00", b"%2e")
_LONGEST_PATH = 4096


class KnowsWho(Protocol):
    """What is asked whom a secret stands for."""

    cookie: str

    def who(self, secret: str) -> tuple[Caller, Kind] | None:
        """Return whom a token or a session's cookie stands for."""

    def use_ticket(self, ticket: str) -> Caller | None:
        """Return whose ticket it is, and never again."""


class Approach(Struct, frozen=True, kw_only=True):
    """What a request says of itself, before anything of it is believed."""

    method: str
    path: str
    raw_path: bytes
    scheme: str
    query: bytes
    headers: tuple[tuple[str, str], ...]
    is_websocket: bool = False

    def all(self, name: str) -> list[str]:
        """Return every value of a header."""
        return [value for key, value in self.headers if key == name]

    def one(self, name: str) -> str | None:
        """Return the only value of a header, None when there is none, "" when there are several."""
        found = self.all(name)
        return found[0] if len(found) == 1 else ("" if found else None)


def parts_of(path: str) -> list[str]:
    """Return the parts of a path as routing sees them: empty ones do not count."""
    return [part for part in path.split("/") if part]


def check_path(approach: Approach) -> None:
    """Raises `BadPath` for a path that means another one than it says."""
    path, raw = approach.path, approach.raw_path.split(b"?")[0].lower()
    tricky = (
        not path.startswith("/")
        or len(raw) > _LONGEST_PATH
        or "//" in path
        or "\\" in path
        or not path.isprintable()
        or any(part in (".", "..") for part in path.split("/"))
        or any(each in raw for each in _ENCODED)
    )
    if tricky:
        raise BadPath


def check_host(approach: Approach, hosts: Iterable[str]) -> None:
    """Raises `WrongHost` unless the request is for one of our names, at whatever port: a page of another name is another's."""
    host = approach.one("host")
    name = host.rpartition(":")[0] if host and _has_port(host) else host
    if not name or name.lower() not in hosts:
        raise WrongHost


def check_origin(approach: Approach, *, is_needed: bool) -> None:
    """Raises `WrongOrigin` when another page asks; when `is_needed`, also when it is not said which page does."""
    origin, host = approach.one("origin"), approach.one("host")
    if origin is None and not is_needed:
        return
    scheme = {"ws": "http", "wss": "https"}.get(approach.scheme, approach.scheme)
    if origin is None or origin.lower() != f"{scheme}://{host}".lower():
        raise WrongOrigin


def check_body(approach: Approach) -> None:
    """Raises `TooLarge` for a body that says so itself; one that does not is counted as it is read."""
    length = approach.one("content-length")
    if length is None:
        return
    # Not every number of digits can be made a number.
    if not (length.isascii() and length.isdigit() and len(length) <= 12 and int(length) <= LARGEST_BODY):
        raise too_large()


def too_large() -> TooLarge:
    """Return what is said of a body that is too large, whenever that is noticed."""
    return TooLarge(f"A body may have {LARGEST_BODY} bytes.")


def admit(approach: Approach, keys: KnowsWho, hosts: Iterable[str]) -> Caller | None:
    """Return who asks, None for what everybody may see. Raises what stands against it."""
    check_host(approach, hosts)
    check_path(approach)
    check_body(approach)
    parts = parts_of(approach.path)
    is_guarded = bool(parts) and parts[0] in GUARDED
    if not is_guarded:
        if approach.is_websocket or approach.method not in SAFE:
            raise BadPath("Nothing can be changed here.")
        return None
    if approach.is_websocket:
        return _of_websocket(approach, keys)
    caller, by_cookie = _known(approach, keys)
    is_unsafe = approach.method not in SAFE
    check_origin(approach, is_needed=by_cookie and is_unsafe)
    if is_unsafe and not caller.may_write and approach.path not in FOR_READERS:
        raise ReadOnly
    return caller


def _of_websocket(approach: Approach, keys: KnowsWho) -> Caller:
    """By a ticket, or a program's token; never by a cookie: a browser sends that along for whichever page asks."""
    bearer = bearer_of(approach)
    check_origin(approach, is_needed=bearer is None)
    if bearer is not None:
        found = keys.who(bearer)
        caller = found[0] if found is not None and found[1] is Kind.TOKEN else None
    else:
        ticket = ticket_of(approach)
        caller = None if ticket is None else keys.use_ticket(ticket)
    if caller is None:
        raise Unauthorized
    return caller


def _known(approach: Approach, keys: KnowsWho) -> tuple[Caller, bool]:
    """Who asks, and whether by a cookie."""
    bearer = bearer_of(approach)
    secret = cookie_of(approach, keys.cookie) if bearer is None else bearer
    found = keys.who(secret) if secret else None
    wanted = Kind.SESSION if bearer is None else Kind.TOKEN
    if found is None or found[1] is not wanted:
        raise Unauthorized
    return found[0], bearer is None


def bearer_of(approach: Approach) -> str | None:
    """Return the token a program shows, "" for one that is none, None when it shows none."""
    said = approach.one("authorization")
    if said is None:
        return None
    scheme, _, token = said.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def ticket_of(approach: Approach) -> str | None:
    """Return the ticket of whoever wants a WebSocket, None when there is none, or more than one."""
    try:
        found = parse_qs(approach.query.decode("ascii", "replace"), max_num_fields=10).get("ticket", [])
    except ValueError:
        return None
    return found[0] if len(found) == 1 else None


def cookie_of(approach: Approach, name: str) -> str | None:
    """Return the value of a cookie; None when there is none, or more than one: another page may have put it there."""
    found = []
    for line in approach.all("cookie"):
        for each in line.split(";"):
            key, _, value = each.strip().partition("=")
            if key == name:
                found.append(value)
    return found[0] if len(found) == 1 else None


def _has_port(host: str) -> bool:
    _, colon, port = host.rpartition(":")
    return bool(colon) and port.isascii() and port.isdigit()
