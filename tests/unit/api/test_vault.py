"""The files tokens are kept in."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime

import pytest

from perdure.api import tokens
from perdure.api.caller import Scope
from perdure.api.tokens import Kind
from perdure.api.vault import Vault, fresh_secret
from perdure.errors import UsageError
from perdure.model.user import User
from tests.conftest import PrivateHome

NOW = datetime(2026, 11, 15, 12, tzinfo=UTC)
DEV = User("dev", 1000, 1000, "/home/dev")


@pytest.fixture
def vault(private_home: PrivateHome) -> Vault:
    return Vault(private_home.state, DEV)


def read_only(vault: Vault, name: str = "ci") -> str:
    secret = fresh_secret()
    made = tokens.grant(secret, kind=Kind.TOKEN, name=name, scope=Scope.READ, uid=1000, user="dev", now=NOW)
    vault.add(made, NOW)
    return secret


def test_ones_own_token_is_made_once_and_is_ones_alone(vault: Vault, private_home: PrivateHome) -> None:
    secret = vault.main()
    assert vault.main() == secret
    assert stat.S_IMODE(os.stat(vault.main_path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(private_home.state).st_mode) == 0o700
    found = vault.who(secret, NOW)
    assert found is not None
    assert (found[0].uid, found[0].scope, found[0].token) == (1000, Scope.WRITE, "main")


def test_a_token_is_known_to_whoever_reads_later_and_kept_as_a_digest(vault: Vault, private_home: PrivateHome) -> None:
    vault.main()
    assert vault.who("pdr_nobody", NOW) is None
    secret = read_only(Vault(private_home.state, DEV))
    found = vault.who(secret, NOW)
    assert found is not None
    assert (found[0].scope, found[0].may_write) == (Scope.READ, False)
    path = os.path.join(private_home.state, "api.json")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    with open(path, encoding="utf-8") as file:
        assert secret not in file.read()


def test_what_is_revoked_lets_nobody_in_any_more(vault: Vault, private_home: PrivateHome) -> None:
    secret = read_only(vault)
    assert vault.who(secret, NOW) is not None
    Vault(private_home.state, DEV).revoke("ci")
    assert vault.who(secret, NOW) is None
    main = vault.main()
    assert vault.who(main, NOW) is not None
    assert Vault(private_home.state, DEV).renew_main() != main
    assert vault.who(main, NOW) is None


def test_the_name_of_ones_own_token_is_nobody_elses(vault: Vault) -> None:
    with pytest.raises(UsageError, match="own token"):
        read_only(vault, "main")


def test_a_file_that_cannot_be_read_lets_nobody_in_but_the_owner(vault: Vault, private_home: PrivateHome) -> None:
    secret, main = read_only(vault), vault.main()
    with open(os.path.join(private_home.state, "api.json"), "w", encoding="utf-8") as file:
        file.write('{"grants": [{"id"')
    assert vault.who(secret, NOW) is None
    assert vault.who(main, NOW) is not None
    # And whoever is let in from now on does not cost what it held.
    assert vault.who(read_only(vault), NOW) is not None
    with open(os.path.join(private_home.state, "api.json.damaged"), encoding="utf-8") as file:
        assert file.read() == '{"grants": [{"id"'
