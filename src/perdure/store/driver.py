"""The seam between the store's verbs and a database: four calls, named parameters, our own errors."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from perdure.model import text

if TYPE_CHECKING:
    from perdure.store.door import Door

#: What a parameter may be.
Value = str | int | bytes | None
#: What a query gives back, in the order it asked.
Row = tuple[Any, ...]


class Spoilt(str):
    """Text that was read out of a database and is no UTF-8, as `model.text` writes such bytes.

    As a parameter it is the same bytes again, so that the row it came from can be found by it. Whoever writes it down
    anywhere else takes `str()` of it.
    """

    __slots__ = ()

    @property
    def raw(self) -> bytes:
        """The bytes that were read."""
        return text.encode(self)


class Driver(Protocol):
    """One connection. Everything it raises for the database's sake is `StoreUnusable` or one of its kinds."""

    @property
    def dialect(self) -> str:
        """The part of a migration's file name that says which database it is for."""

    @property
    def files(self) -> Sequence[str]:
        """The files the database lies in, as far as they are ours to look after."""

    @property
    def door(self) -> Door | None:
        """Where whoever writes waits for others who do; None where they wait for a server."""

    def execute(self, sql: str, **parameters: Value) -> int:
        """Run one statement and return how many rows it changed. Outside a transaction it is one of its own."""

    def run(self, sql: str, *values: Value) -> int:
        """The same where parameters have numbers (`?1`) instead of names, which takes SQLite half the time."""

    def execute_many(self, sql: str, rows: Sequence[Mapping[str, Value]]) -> None:
        """Run one statement for each of some rows, inside a transaction."""

    def fetch(self, sql: str, **parameters: Value) -> list[Row]:
        """Run one query and return all rows."""

    def fetch_as_is(self, sql: str, **parameters: Value) -> list[Row]:
        """The same for rows that are judged one by one: text that is no UTF-8 is `Spoilt`, and no error for all of them."""

    def transaction(self, server: str | None = None) -> AbstractContextManager[None]:
        """Make everything inside happen or not happen.

        With a server's key no other transaction of that server runs at the same time; without, none at all. Instead
        of a server's key it may be a name of something else, without a slash.
        """

    def has_table(self, name: str) -> bool:
        """Return whether there is such a table."""

    def integrity(self) -> Sequence[str]:
        """Return what the database finds wrong with its own file, () for nothing."""

    def close(self) -> None:
        """Let go of the database."""


_TOKEN = re.compile(r"'(?:[^']|'')*'|::|:([a-z_][a-z0-9_]*)|%")


def for_psycopg(sql: str) -> str:
    """Return `sql` with `:name` as psycopg writes it; casts (`::`) and quoted text stay what they are."""
    return _TOKEN.sub(_for_psycopg, sql)


def _for_psycopg(match: re.Match[str]) -> str:
    if match[1]:
        return f"%({match[1]})s"
    return match[0].replace("%", "%%")


def with_list(sql: str, name: str, values: Sequence[str | int]) -> tuple[str, dict[str, Value]]:
    """Return `sql` with the one parameter `:name` made as many as there are values, and those parameters."""
    parameters: dict[str, Value] = {f"{name}_{index}": value for index, value in enumerate(values)}
    return sql.replace(f":{name}", ", ".join(f":{key}" for key in parameters)), parameters
