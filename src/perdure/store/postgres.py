"""PostgreSQL through psycopg 3, for many hosts over one database."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b  # only here: psycopg loads OpenSSL anyway

from perdure import errors
from perdure.store import forking
from perdure.store.driver import Row, Value, for_psycopg

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
except ImportError as error:
    raise errors.StoreUnusable(
        "A PostgreSQL store needs the extra `postgres`: pip install 'perdure[postgres]'."
    ) from error

_PATIENCE = "10s"
_NUMBERED = re.compile(r"\?([0-9]+)")


class Postgres:
    """A `Driver` over one PostgreSQL connection; with `read_only` the server refuses every change."""

    dialect = "postgres"
    files: Sequence[str] = ()
    #: Who waits waits for the server.
    door = None

    def __init__(self, url: str, *, read_only: bool = False) -> None:
        self._secrets = _secrets(url)
        self._name = _name(url)
        try:
            self._connection = psycopg.connect(_with_defaults(url), autocommit=True)
            # Whatever the server's default is: what is read under a lock is as of then, not as of the wait for it.
            self._connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            self._connection.execute("SET client_encoding TO 'UTF8'")
            if read_only:
                self._connection.execute("SET default_transaction_read_only TO on")
        except psycopg.Error as error:
            # Not chained: libpq's own text may repeat parts of the address.
            raise self._unusable(error) from None
        forking.begins_anew(self)

    def begin_anew(self) -> None:
        """Have, in a child, nothing to do with the parent's session: it goes on, and is over when the parent ends."""
        with suppress(psycopg.Error, OSError):
            handle = self._connection.fileno()
            nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
            os.dup2(nothing, handle, inheritable=False)
            os.close(nothing)

    def execute(self, sql: str, **parameters: Value) -> int:
        """Run one statement and return how many rows it changed."""
        with self._translated():
            return self._connection.execute(for_psycopg(sql).encode(), parameters).rowcount

    def run(self, sql: str, *values: Value) -> int:
        """Run one statement whose parameters have numbers and return how many rows it changed."""
        return self.execute(_NUMBERED.sub(r":p\1", sql), **{f"p{place}": each for place, each in enumerate(values, 1)})

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Run one statement for each of some rows, inside a transaction."""
        with self._translated(), self._connection.cursor() as cursor:
            cursor.executemany(for_psycopg(sql).encode(), rows)

    def fetch(self, sql: str, **parameters: Value) -> list[Row]:
        """Run one query and return all rows."""
        with self._translated():
            return self._connection.execute(for_psycopg(sql).encode(), parameters).fetchall()

    def fetch_as_is(self, sql: str, **parameters: Value) -> list[Row]:
        """The same: the server takes no text that is no UTF-8."""
        return self.fetch(sql, **parameters)

    @contextmanager
    def transaction(self, server: str | None = None) -> Iterator[None]:
        """Make everything inside happen or not happen, one at a time per server; without a server, alone."""
        with self._translated(), self._connection.transaction():
            self.execute(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
            # Everyone takes the common lock first, so nobody can wait in a circle.
            if server is None:
                self._lock("pg_advisory_xact_lock", "perdure")
            else:
                self._lock("pg_advisory_xact_lock_shared", "perdure")
                self._lock("pg_advisory_xact_lock", f"perdure {server}")
            yield

    def has_table(self, name: str) -> bool:
        """Return whether there is such a table."""
        # Not to_regclass: it answers from a cache, which waiting for an advisory lock does not bring up to date.
        return bool(
            self.fetch(
                "SELECT 1 FROM pg_catalog.pg_tables"
                " WHERE tablename = :name AND schemaname = ANY (pg_catalog.current_schemas(false))",
                name=name,
            )
        )

    def integrity(self) -> Sequence[str]:
        """Return (): a PostgreSQL server looks after its own files."""
        return ()

    def close(self) -> None:
        """Let go of the database."""
        with suppress(psycopg.Error):
            self._connection.close()

    def _lock(self, function: str, name: str) -> None:
        number = int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)
        self.fetch(f"SELECT {function}(CAST(:number AS BIGINT))", number=number)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (psycopg.ProgrammingError, psycopg.IntegrityError) as error:
            # Refused by the server over rights or someone else's tables; without a code it is our own mistake.
            if error.sqlstate is None:
                raise
            raise self._unusable(error) from None
        except psycopg.Error as error:
            raise self._unusable(error) from None

    def _unusable(self, error: psycopg.Error) -> errors.StoreUnusable:
        lines = (error.diag.message_primary or str(error)).strip().splitlines()
        # What libpq guesses or asks ("Is the server running …?") stands indented behind what has happened, and is no cause.
        lines = [line for line in lines if not line[:1].isspace() and not line.endswith("?")] or lines
        cause = lines[-1].strip().rstrip(".") if lines else ""
        if not cause or any(secret in cause for secret in self._secrets):
            cause = "the server refused or could not be reached"
        return errors.StoreUnusable(f"The PostgreSQL store {self._name} cannot be used: {cause}.")


def _with_defaults(url: str) -> str:
    wanted = {"connect_timeout": "10", "application_name": "perdure"}
    given = conninfo_to_dict(url)
    return make_conninfo(url, **{name: value for name, value in wanted.items() if name not in given})


def _name(url: str) -> str:
    """The address as far as it may be shown. One that cannot be read with certainty is shown to nobody."""
    rest = url.partition("://")[2]
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    try:
        # A second "@", or one past the authority, is a password with a character that should have been quoted:
        # libpq would take part of it for a host name, and say it out loud.
        if rest.count("@") != authority.count("@") or rest.count("@") > 1:
            raise psycopg.ProgrammingError
        parts = conninfo_to_dict(url)
    except psycopg.ProgrammingError:
        raise errors.StoreUnusable(
            "The store's address is not a valid PostgreSQL URL; special characters in it are written as %XX."
        ) from None
    host, port, database = (str(parts.get(key) or "") for key in ("host", "port", "dbname"))
    return f"{host or 'localhost'}{':' + port if port else ''}/{database}"


def _secrets(url: str) -> set[str]:
    """Everything in the address that might be (a part of) a password."""
    userinfo, at, _ = url.partition("://")[2].rpartition("@")
    pieces = set(re.split(r"[:@/?#&=]", userinfo.partition(":")[2])) if at else set()
    with suppress(psycopg.ProgrammingError):
        parts = conninfo_to_dict(url)
        pieces |= {str(parts.get(key) or "") for key in ("password", "sslpassword")}
    return pieces - {""}
