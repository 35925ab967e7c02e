"""Who is let in, by what a request says of itself."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api.admission import GUARDED, LARGEST_BODY, Approach, admit, parts_of
from perdure.api.caller import Caller, Scope
from perdure.api.errors import BadPath, ReadOnly, TooLarge, Unauthorized, WrongHost, WrongOrigin
from perdure.api.tokens import Kind
from perdure.errors import PerdureError

HOSTS = frozenset({"127.0.0.1", "localhost", "[::1]"})
WRITER = Caller(uid=1000, user="dev", scope=Scope.WRITE, token="main")
READER = Caller(uid=1000, user="dev", scope=Scope.READ, token="ci")
HERE = "127.0.0.1:7717"


class SomeKeys:
    """A token, a token for looking, a browser's session and a ticket."""

    cookie = "perdure_session"

    def __init__(self) -> None:
        self.tickets = {"ticket": WRITER}

    def who(self, secret: str) -> tuple[Caller, Kind] | None:
        known = {"token": (WRITER, Kind.TOKEN), "look": (READER, Kind.TOKEN), "session": (WRITER, Kind.SESSION)}
        return known.get(secret)

    def use_ticket(self, ticket: str) -> Caller | None:
        return self.tickets.pop(ticket, None)


def asks(
    path: str = "/api/runs",
    method: str = "GET",
    *,
    host: str | None = HERE,
    headers: Sequence[tuple[str, str]] = (),
    raw: bytes | None = None,
    query: bytes = b"",
    websocket: bool = False,
) -> Approach:
    named = (("host", host),) if host is not None else ()
    return Approach(
        method=method,
        path=path,
        raw_path=path.encode() if raw is None else raw,
        scheme="ws" if websocket else "http",
        query=query,
        headers=(*named, *headers),
        is_websocket=websocket,
    )


BEARER = ("authorization", "Bearer token")
COOKIE = ("cookie", "perdure_session=session")
OURS = ("origin", f"http://{HERE}")


def test_a_program_by_its_token_and_a_browser_by_its_cookie() -> None:
    keys = SomeKeys()
    assert admit(asks(headers=[BEARER]), keys, HOSTS) == WRITER
    assert admit(asks(headers=[COOKIE]), keys, HOSTS) == WRITER
    assert admit(asks(method="POST", headers=[BEARER]), keys, HOSTS) == WRITER
    assert admit(asks(method="POST", headers=[COOKIE, OURS]), keys, HOSTS) == WRITER
    assert admit(asks("/api/logout", "POST", headers=[("authorization", "Bearer look")]), keys, HOSTS) == READER


@pytest.mark.parametrize("path", ["/health", "/", "/login", "/assets/app.js", "/runs/r7"])
def test_what_is_the_same_for_everybody_needs_no_token(path: str) -> None:
    assert admit(asks(path), SomeKeys(), HOSTS) is None
    with pytest.raises(BadPath):
        admit(asks(path, "POST", headers=[BEARER]), SomeKeys(), HOSTS)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("authorization", "Bearer wrong")],
        [("authorization", "Bearer ")],
        [("authorization", "Basic dG9rZW4=")],
        [("authorization", "token")],
        [BEARER, BEARER],
        [("cookie", "perdure_session=wrong")],
        [("cookie", "other=session")],
        # One of them is another page's doing.
        [("cookie", "perdure_session=session; perdure_session=other")],
        # What is good as a token is no cookie, and the other way round.
        [("cookie", "perdure_session=token")],
        [("authorization", "Bearer session")],
        # A wrong token is not made up for by a cookie.
        [("authorization", "Bearer wrong"), COOKIE],
    ],
)
@pytest.mark.parametrize("path", ["/api/runs", "/api", "/schema/openapi.json", "/metrics"])
def test_without_the_right_secret_nobody_is_let_in(headers: Sequence[tuple[str, str]], path: str) -> None:
    with pytest.raises(Unauthorized):
        admit(asks(path, headers=headers), SomeKeys(), HOSTS)


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:7717", "127.0.0.1.evil.example:7717", "0.0.0.0:7717", "::1"]
)
def test_another_name_is_another_machine(host: str | None) -> None:
    with pytest.raises(WrongHost):
        admit(asks(host=host, headers=[BEARER]), SomeKeys(), HOSTS)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost:7717", "LOCALHOST:9000", "[::1]:7717", "[::1]"])
def test_our_own_names_are_known_at_any_port(host: str) -> None:
    assert admit(asks(host=host, headers=[BEARER]), SomeKeys(), HOSTS) == WRITER


def test_two_hosts_are_none() -> None:
    with pytest.raises(WrongHost):
        admit(asks(headers=[("host", "evil.example"), BEARER]), SomeKeys(), HOSTS)


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1:8000",
        "http://127.0.0.1",
        "https://127.0.0.1:7717",
        "http://localhost:7717",
        "null",
        "",
        "http://127.0.0.1:7717.evil.example",
    ],
)
@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_another_page_changes_nothing(origin: str, method: str) -> None:
    for secret in (COOKIE, BEARER):
        with pytest.raises(WrongOrigin):
            admit(asks(method=method, headers=[secret, ("origin", origin)]), SomeKeys(), HOSTS)


def test_a_browser_that_does_not_say_which_page_asks_changes_nothing() -> None:
    with pytest.raises(WrongOrigin):
        admit(asks(method="POST", headers=[COOKIE]), SomeKeys(), HOSTS)


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_who_may_only_look_changes_nothing(method: str) -> None:
    with pytest.raises(ReadOnly):
        admit(asks(method=method, headers=[("authorization", "Bearer look")]), SomeKeys(), HOSTS)


@pytest.mark.parametrize("length", [str(LARGEST_BODY + 1), "9" * 30, "9" * 5000, "-1", "x", ""])
def test_a_body_that_is_too_large_is_not_read(length: str) -> None:
    with pytest.raises(TooLarge):
        admit(asks(method="POST", headers=[BEARER, ("content-length", length)]), SomeKeys(), HOSTS)


@pytest.mark.parametrize(
    ("path", "raw"),
    [
        ("//api/runs", None),
        ("/x//api/runs", None),
        ("/assets/../api/runs", None),
        ("/./api/runs", None),
        ("/assets/..", None),
        ("/assets\\..\\api", None),
        ("api/runs", None),
        ("/assets/../api/runs", b"/assets/%2e%2e/api/runs"),
        ("/assets/api", b"/assets%2fapi"),
        ("/assets/x", b"/assets%5Cx"),
        ("/assets/\0", b"/assets/%00"),
        ("/assets/\x1b[2J", b"/assets/%1b[2J"),
        ("/" + "a" * 5000, None),
    ],
)
def test_a_path_that_means_another_is_refused(path: str, raw: bytes | None) -> None:
    for headers in ([], [BEARER]):
        with pytest.raises(BadPath):
            admit(asks(path, headers=headers, raw=raw), SomeKeys(), HOSTS)


@given(st.text(alphabet="/.apischemtrcx%\\AI", max_size=20), st.sampled_from(["GET", "HEAD", "POST", "OPTIONS"]))
def test_however_a_path_is_written_nobody_gets_to_what_is_guarded(path: str, method: str) -> None:
    try:
        caller = admit(asks(path, method), SomeKeys(), HOSTS)
    except PerdureError:
        return
    assert caller is None
    assert method in ("GET", "HEAD", "OPTIONS")
    assert not parts_of(path) or parts_of(path)[0] not in GUARDED


def test_a_websocket_needs_a_ticket_that_is_good_once() -> None:
    keys = SomeKeys()
    wants = asks("/api/socket", headers=[OURS, COOKIE], query=b"ticket=ticket", websocket=True)
    assert admit(wants, keys, HOSTS) == WRITER
    with pytest.raises(Unauthorized):
        admit(wants, keys, HOSTS)


@pytest.mark.parametrize(
    ("headers", "query", "kind"),
    [
        ([OURS, COOKIE], b"", Unauthorized),
        ([OURS], b"ticket=wrong", Unauthorized),
        ([OURS], b"ticket=ticket&ticket=ticket", Unauthorized),
        ([OURS], b"&".join([b"x=1"] * 50), Unauthorized),
        ([OURS], b"ticket=\xff%ff", Unauthorized),
        ([COOKIE], b"ticket=ticket", WrongOrigin),
        ([("origin", "http://evil.example")], b"ticket=ticket", WrongOrigin),
        ([("origin", "http://evil.example"), BEARER], b"", WrongOrigin),
        ([("authorization", "Bearer wrong")], b"ticket=ticket", Unauthorized),
        ([("authorization", "Bearer session")], b"", Unauthorized),
    ],
)
def test_a_websocket_of_anybody_else_is_refused(
    headers: Sequence[tuple[str, str]], query: bytes, kind: type[PerdureError]
) -> None:
    keys = SomeKeys()
    with pytest.raises(kind):
        admit(asks("/api/socket", headers=headers, query=query, websocket=True), keys, HOSTS)
    # What was refused for another reason used up nothing.
    assert (kind is not WrongOrigin) or keys.tickets


def test_a_program_opens_a_websocket_by_its_token() -> None:
    assert admit(asks("/api/socket", headers=[BEARER], websocket=True), SomeKeys(), HOSTS) == WRITER
