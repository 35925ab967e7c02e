"""Bringing a database up to what this program knows, one numbered step after the other."""

from __future__ import annotations

from perdure import errors
from perdure.store.driver import Driver
from perdure.store.queries import names_below, queries, read_sql, without_comments

_FOLDER = "migrations"


def bring_up_to_date(driver: Driver) -> bool:
    """Apply what is missing, each step with its number in one transaction; return whether there was nothing before.

    Raises `StoreTooNew`, and changes nothing, when the database knows steps this program does not.
    """
    before = version(driver)
    steps = known(driver.dialect)
    _refuse_newer(before, max(steps))
    for number in sorted(steps):
        if number > before:
            _apply(driver, number, steps[number], max(steps))
    return before == 0


def is_in_use(driver: Driver) -> bool:
    """Return whether the database holds our tables, as this program knows them; False for one that never did.

    Changes nothing. Raises `StoreTooNew`, and `StoreUnusable` when steps are missing.
    """
    found, newest = version(driver), max(known(driver.dialect))
    _refuse_newer(found, newest)
    if found < newest and (found or driver.has_table("snapshots")):
        raise errors.StoreUnusable(
            f"The store has to be brought up to date first (schema {found}, this perdure reads {newest}); "
            "any command does that where the store can be written."
        )
    return found == newest


def version(driver: Driver) -> int:
    """Return the number of the last step the database has seen, 0 for none."""
    if not driver.has_table("schema_versions"):
        return 0
    return int(driver.fetch(queries()["schema_version"])[0][0] or 0)


def known(dialect: str) -> dict[int, str]:
    """Return this program's steps for a database: number to file name."""
    suffix = f".{dialect}.sql"
    return {int(name[:4]): name for name in names_below(_FOLDER) if name.endswith(suffix)}


def _apply(driver: Driver, number: int, name: str, newest: int) -> None:
    with driver.transaction():
        # Looked at again under the lock: another process may have done this step, or more, in the meantime.
        now_at = version(driver)
        _refuse_newer(now_at, newest)
        if now_at >= number:
            return
        for statement in without_comments(read_sql(f"{_FOLDER}/{name}")).split(";\n"):
            if statement.strip():
                driver.execute(statement.strip().rstrip(";"))
        driver.execute(queries()["record_version"], version=number)


def _refuse_newer(found: int, newest: int) -> None:
    if found > newest:
        raise errors.StoreTooNew(
            f"The store was written by a newer perdure (schema {found}, this one knows {newest}); it was left alone."
        )
