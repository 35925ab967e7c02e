"""Where snapshots are kept: one set of verbs over SQLite or PostgreSQL, and a manifest per server beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from perdure import errors

if TYPE_CHECKING:
    from perdure.store.driver import Driver
    from perdure.store.store import Store


def open_store(url: str, *, state_dir: str, read_only: bool = False, threads: bool = False) -> Store:
    """Return the store at `url`, made and brought up to date when necessary.

    `sqlite:///absolute/path` or `postgresql://…`. Manifests are kept under `state_dir`, which is made for the
    owner alone when it is missing. A database that has never held anything is filled from the manifests there, and goes on counting.
    Raises `StoreUnusable`, or one of its kinds, when there is no way; no message ever holds a password.

    With `read_only` no file or directory is made, changed or removed, and saving and pruning are refused. Where
    there is no database the manifests alone answer. One that was not brought up to date is refused.

    With `threads` several threads may use it at once; what was said in chats is then indexed in the background.
    """
    _refuse_emptied(url, state_dir)
    _refuse_half_mended(url)
    if read_only:
        from perdure.store.read_only import open_read_only

        return open_read_only(url, state_dir)
    from perdure.store.files import private_directory

    private_directory(state_dir)
    return store_over(_pooled(url) if threads else connect(url), state_dir)


def store_over(driver: Driver, state_dir: str) -> Store:
    """Return the store in a database, brought up to date; whoever takes it lets go of the database, too."""
    from perdure.store import migrations
    from perdure.store.store import Store

    try:
        is_new = migrations.bring_up_to_date(driver)
        store = Store(driver, state_dir)
        if is_new:
            store.begin()
    except BaseException:
        driver.close()
        raise
    return store


def _pooled(url: str) -> Driver:
    from perdure.store.pooled import Pooled
    from perdure.store.sqlite import SQLite

    path = sqlite_path(url)
    first: tuple[int, int] | None = None

    def make() -> Driver:
        nonlocal first
        _refuse_half_mended(url)
        # One that was moved away meanwhile is not made anew behind the back of whoever opened it.
        driver = connect(url) if path is None or first is None else SQLite(path, again=first)
        if isinstance(driver, SQLite):
            first = driver.file
            # Whoever indexes empties its log.
            driver.be_patient()
            driver.keep_little()
        return driver

    return Pooled(make)


def _refuse_half_mended(url: str) -> None:
    path = sqlite_path(url)
    if path is not None:
        from perdure.store.mending import refuse_half_mended

        refuse_half_mended(path)


def _refuse_emptied(url: str, state_dir: str) -> None:
    path = sqlite_path(url)
    if path is not None:
        from perdure.store.mending import refuse_emptied

        refuse_emptied(path, state_dir)


def sqlite_path(url: str) -> str | None:
    """Return the file an `sqlite:` address means, None for any other address."""
    scheme, _, rest = url.partition("://")
    if scheme != "sqlite":
        return None
    path = "/" + rest.lstrip("/")
    if not rest.startswith("/") or path == "/" or "\0" in path:
        raise errors.StoreUnusable("An SQLite store is addressed as sqlite:///absolute/path/to/file.")
    return path


def connect(url: str, *, read_only: bool = False) -> Driver:
    """Return a connection to the database at `url`, whatever a repair has yet to do there."""
    path = sqlite_path(url)
    if path is not None:
        if read_only:
            from perdure.store.read_only_sqlite import NoDatabase, ReadOnlySQLite
            from perdure.store.sqlite import refuse_lone_log

            refuse_lone_log(path)
            return ReadOnlySQLite(path) if ReadOnlySQLite.is_there(path) else NoDatabase()
        from perdure.store.sqlite import SQLite

        return SQLite(path)
    if url.startswith(("postgresql://", "postgres://")):
        from perdure.store.postgres import Postgres

        return Postgres(url, read_only=read_only)
    # The address itself is not repeated: whatever it is, it may hold a password.
    raise errors.StoreUnusable("A store is addressed as sqlite:///absolute/path or postgresql://host/database.")
