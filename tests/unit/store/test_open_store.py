"""Addresses, modes, and what is said when a store cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from urllib.parse import quote

import pytest

from perdure import errors
from perdure.store import open_store, sqlite_path
from tests.builders import a_capture
from tests.conftest import PrivateHome

SECRET = "hunter2-Zq9"


def mode(path: str) -> int:
    return os.stat(path).st_mode & 0o777


@pytest.mark.parametrize("url", ["sqlite:///tmp/x.db", "sqlite:////tmp/x.db"])
def test_an_absolute_path_needs_no_doubling(url: str) -> None:
    assert sqlite_path(url) == "/tmp/x.db"


def test_other_databases_have_no_path() -> None:
    assert sqlite_path("postgresql://host/db") is None


@pytest.mark.parametrize(
    "url", ["", "x", "/tmp/x.db", "sqlite://", "sqlite:///", "sqlite://relative", "sqlite:x", f"mysql://u:{SECRET}@h/d"]
)
def test_any_other_address_is_refused_without_repeating_it(url: str, private_home: PrivateHome) -> None:
    with pytest.raises(errors.StoreUnusable) as caught:
        open_store(url, state_dir=private_home.state)
    assert SECRET not in caught.value.message
    assert caught.value.message.endswith(".")


def test_everything_is_the_owners_alone_whatever_the_umask(private_home: PrivateHome) -> None:
    before = os.umask(0)
    try:
        store = open_store(f"sqlite://{private_home.state}/p.db", state_dir=private_home.state)
        store.save_snapshot(a_capture(scrollback={"%0": "d"}), {"d": b"x"})
        assert [os.path.basename(path) for path in store.driver.files] == ["p.db", "p.db-wal", "p.db-shm"]
        places = [private_home.state, store.shelf.directory]
        files = [os.path.join(store.shelf.directory, name) for name in os.listdir(store.shelf.directory)]
        assert len(files) == 2
        assert {mode(path) for path in places} == {0o700}
        assert {mode(path) for path in (*files, *store.driver.files)} == {0o600}
        store.close()
    finally:
        os.umask(before)


def test_a_greedy_umask_does_not_lock_us_out(private_home: PrivateHome) -> None:
    before = os.umask(0o777)
    try:
        store = open_store(f"sqlite://{private_home.state}/p.db", state_dir=private_home.state)
        store.save_snapshot(a_capture(), {})
        assert store.check() == ()
        store.close()
    finally:
        os.umask(before)
    assert mode(private_home.state) == 0o700
    assert mode(f"{private_home.state}/p.db") == 0o600


def test_a_directory_that_was_there_keeps_its_mode(private_home: PrivateHome) -> None:
    os.mkdir(private_home.state, 0o755)
    os.chmod(private_home.state, 0o755)
    open_store(f"sqlite://{private_home.state}/p.db", state_dir=private_home.state).close()
    assert mode(private_home.state) == 0o755


@pytest.mark.parametrize("name", ["with space.db", "what?.db", "per%20cent#.db", "ünïcode.db"])
def test_odd_names_are_names(name: str, private_home: PrivateHome) -> None:
    store = open_store(f"sqlite://{private_home.state}/{name}", state_dir=private_home.state)
    store.close()
    assert os.path.exists(os.path.join(private_home.state, name))


def test_importing_the_store_loads_no_database() -> None:
    program = "import sys, perdure.store; print(*{'sqlite3', 'psycopg', 'msgspec'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


def test_a_missing_extra_is_one_clear_sentence(private_home: PrivateHome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "perdure.store.postgres", raising=False)
    with pytest.raises(errors.StoreUnusable, match=r"extra `postgres`"):
        open_store("postgresql://host/db", state_dir=private_home.state)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@127.0.0.1:1/db",
        f"postgres://me:{SECRET}@nowhere.invalid/db?connect_timeout=1",
        f"postgresql://127.0.0.1:1/db?user=me&password={SECRET}",
        f"postgresql://me:{quote('p@' + SECRET)}@127.0.0.1:1/db",
        # Passwords that were not quoted, and so are not where a parser looks for them:
        f"postgresql://me:p@{SECRET}@127.0.0.1:1/db",
        f"postgresql://me:p@{SECRET}/x@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}/x@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}?x@127.0.0.1:1/db",
        f"postgresql://me:{SECRET}#x@127.0.0.1:1/db",
        f"postgresql://me:%{SECRET}@127.0.0.1:1/db",
        f"postgresql://me@127.0.0.1:1/db?{SECRET}",
    ],
)
def test_no_message_ever_holds_a_password(url: str, private_home: PrivateHome) -> None:
    with pytest.raises(errors.StoreUnusable) as caught:
        open_store(url, state_dir=private_home.state)
    error: BaseException | None = caught.value
    assert SECRET not in caught.value.message
    assert SECRET not in str(caught.value.data)
    # Not in what a traceback would show either.
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert "\n" not in caught.value.message
