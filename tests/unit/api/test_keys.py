"""Links and tickets: good once, and for how long."""

from __future__ import annotations

import pytest
from msgspec import structs

from perdure.api.caller import Caller, Scope
from perdure.api.errors import TooMany, Unauthorized
from perdure.api.keys import LINK_LASTS, TICKET_LASTS, Keys
from perdure.api.tokens import Kind
from perdure.api.vault import Vault
from perdure.host.clock import now
from perdure.model.user import User
from tests.conftest import PrivateHome

DEV = User("dev", 1000, 1000, "/home/dev")


class Clock:
    """Seconds that pass when a test says so."""

    at = 0.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(private_home: PrivateHome, clock: Clock) -> Keys:
    made = Keys(Vault(private_home.state, DEV), now=now, ticking=clock)
    made.serve_at("http://127.0.0.1:7717", 7717, is_secure=False)
    return made


def test_a_ticket_is_good_for_half_a_minute_and_once(keys: Keys, clock: Clock) -> None:
    caller = Caller(uid=1000, user="dev", scope=Scope.READ, token="ci")
    first, second = keys.ticket(caller), keys.ticket(caller)
    clock.at = TICKET_LASTS - 0.1
    assert keys.use_ticket(first) == caller
    assert keys.use_ticket(first) is None
    clock.at = TICKET_LASTS
    assert keys.use_ticket(second) is None


def test_a_link_waits_for_an_hour_and_logs_in_as_whom_it_is_for(keys: Keys, clock: Clock) -> None:
    one, late = keys.link(1000, "dev"), keys.link(1001, "eve")
    assert one.startswith("http://127.0.0.1:7717/login?once=pdr_")
    caller = keys.follow(one.partition("=")[2])
    assert caller is not None
    assert (caller.uid, caller.user, caller.may_write) == (1000, "dev", True)
    clock.at = LINK_LASTS
    assert keys.follow(late.partition("=")[2]) is None
    session = keys.log_in(caller)
    found = keys.who(session)
    assert found is not None
    assert (structs.replace(found[0], grant=""), found[1]) == (caller, Kind.SESSION)
    assert keys.holds(found[0])
    keys.log_out(session)
    assert not keys.holds(found[0])
    assert keys.who(session) is None


def test_a_cookie_of_another_port_has_another_name(keys: Keys) -> None:
    assert keys.cookie == "perdure_session"
    keys.serve_at("http://127.0.0.1:9000", 9000, is_secure=False)
    assert keys.cookie == "perdure_session_9000"


def test_whoever_is_wrong_is_told_less_and_less(keys: Keys) -> None:
    told = [keys.refusal("127.0.0.1", "This link is too old.") for _ in range(30)]
    assert isinstance(told[0], Unauthorized)
    assert told[0].message == "This link is too old."
    assert isinstance(told[-1], TooMany)
    assert isinstance(keys.refusal("10.0.0.1"), Unauthorized)
