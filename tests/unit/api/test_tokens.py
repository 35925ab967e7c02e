"""What lets somebody in, and for how long."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.api import tokens
from perdure.api.caller import Scope
from perdure.api.tokens import Grant, Grants, Kind
from perdure.errors import NotFound, UsageError
from perdure.model.secrets import redact_text

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)


def granted(secret: str, name: str = "ci", *, kind: Kind = Kind.TOKEN, lasts: timedelta | None = None) -> Grant:
    return tokens.grant(secret, kind=kind, name=name, scope=Scope.READ, uid=1000, user="dev", now=NOW, lasts=lasts)


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_only_the_very_secret_lets_in(right: bytes, other: bytes) -> None:
    secret, tried = tokens.secret_from(right), tokens.secret_from(other)
    found = tokens.found_by(tried, [granted(secret)], NOW)
    assert (found is not None) == (right == other)


@given(st.text())
def test_no_text_is_too_strange_to_be_refused(tried: str) -> None:
    assert tokens.found_by(tried, [granted(tokens.secret_from(bytes(32)))], NOW) is None


@given(st.binary(min_size=32, max_size=32))
def test_what_is_kept_does_not_hold_the_secret_and_no_log_shows_it(random: bytes) -> None:
    secret = tokens.secret_from(random)
    kept = msgspec.json.encode(Grants(grants=(granted(secret),))).decode()
    assert secret not in kept
    assert secret.removeprefix("pdr_") not in kept
    assert secret not in redact_text(f"GET /login once {secret} x")


def test_one_whose_time_is_up_lets_nobody_in() -> None:
    secret = tokens.secret_from(b"s" * 32)
    grant = granted(secret, lasts=timedelta(minutes=1))
    assert tokens.found_by(secret, [grant], NOW + timedelta(seconds=59)) is grant
    assert tokens.found_by(secret, [grant], NOW + timedelta(minutes=1)) is None


def test_a_name_is_given_once_and_those_whose_time_is_up_make_room() -> None:
    known = tokens.added(Grants(), granted("a", "ci", lasts=timedelta(minutes=1)), NOW)
    with pytest.raises(UsageError, match="already"):
        tokens.added(known, granted("b", "ci"), NOW)
    later = tokens.added(known, granted("b", "ci"), NOW + timedelta(minutes=2))
    assert [each.digest for each in later.grants] == [tokens.digest_of_secret("b")]


def test_of_too_many_sessions_the_oldest_goes_and_no_token_does() -> None:
    known = tokens.added(Grants(), granted("t", "ci"), NOW)
    for number in range(tokens.MOST_SESSIONS + 3):
        known = tokens.added(known, granted(f"s{number}", "browser", kind=Kind.SESSION), NOW)
    assert len(known.grants) == tokens.MOST_SESSIONS + 1
    assert tokens.found_by("t", known.grants, NOW) is not None
    assert tokens.found_by("s2", known.grants, NOW) is None
    assert tokens.found_by("s3", known.grants, NOW) is not None


def test_one_is_revoked_by_id_or_by_a_name_that_is_clear() -> None:
    known = Grants()
    for number in range(2):
        known = tokens.added(known, granted(f"s{number}", "browser", kind=Kind.SESSION), NOW)
    with pytest.raises(UsageError, match="id"):
        tokens.without(known, "browser")
    rest, gone = tokens.without(known, known.grants[0].id)
    assert (gone, rest.grants) == (known.grants[0], known.grants[1:])
    assert tokens.without(rest, "browser")[1] is known.grants[1]
    with pytest.raises(NotFound, match="token ls"):
        tokens.without(rest, "nobody")


@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "\x1b[2J"])
def test_a_name_that_cannot_be_shown_is_refused(name: str) -> None:
    with pytest.raises(UsageError):
        granted("s", name)
