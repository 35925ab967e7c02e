"""A copy of a damaged SQLite file in which the first page says again what it says in every database of ours.

One bit there and SQLite opens nothing of a file in which all the rest is as it was, or not all of it. So it is with the
pages to which the first one leads: together they say which tables there are, and where.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, suppress

from perdure.store import log, migrations
from perdure.store.files import cannot, private_file
from perdure.store.foreign import file_uri
from perdure.store.read_only_sqlite import NoDatabase
from perdure.store.sqlite import beside

#: How a database is opened to be read: with its log first; then without, for when the log is what is damaged.
WAYS = ("mode=ro", "mode=ro&immutable=1")

#: What is raised where a page cannot be read: it may also say that a row is longer than any memory, or be quoted.
UNREADABLE_PAGE = (sqlite3.Error, MemoryError, UnicodeDecodeError)
_SIZE = 4096
#: What SQLite writes at the beginning, by the place: what it is, page size and versions, the format of the schema, no
#: automatic vacuum, UTF-8, no vacuum in steps.
_SAME = {
    0: b"SQLite format 3\0" + bytes.fromhex("1000020200402020"),
    44: bytes.fromhex("00000004"),
    52: bytes.fromhex("0000000000000001"),
    64: bytes.fromhex("00000000"),
}
#: Where the kind of the first page stands, and what it can be: one that leads to others, or the only one.
_KIND, _KINDS = 100, (0x05, 0x0D)


def tables_of(path: str) -> frozenset[str] | None:
    """Return the tables of the database at `path`; None when it does not say which, or has none of ours."""
    # Beside an empty file SQLite would remove the log, with all that is in it.
    if not size_of(path):
        return None
    for options in WAYS:
        with (
            suppress(*UNREADABLE_PAGE),
            closing(sqlite3.connect(file_uri(path, options), uri=True)) as connection,
        ):
            found = frozenset(str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master"))
            if "snapshots" in found:
                return found
    return None


def hides_pages(path: str) -> bool:
    """Return whether the first page of a database says that it has fewer pages than there are: SQLite reads no others."""
    try:
        with open(path, "rb") as file:
            head = file.read(_KIND)
    except OSError:
        return False
    return int.from_bytes(head[28:32], "big") < size_of(path) // _SIZE


def is_log_broken(path: str) -> bool:
    """Return whether SQLite would read less of the log of a database than was committed."""
    return log.is_broken(beside(path)[1])


def is_copied_readably(path: str, copy: str) -> bool:
    """Copy a database that does not say which tables it has to one that does, and with all of its log; False when there is no way.

    Nothing is changed at `path`. Raises `StoreUnusable` where it cannot be copied.
    """
    remove(copy)
    try:
        private_file(copy)
        for old, new in zip(beside(path)[:2], beside(copy)[:2], strict=True):
            with suppress(FileNotFoundError):
                shutil.copyfile(old, new)
        if is_log_broken(copy):
            log.relink(beside(copy)[1])
            if tables_of(copy) is not None and not hides_pages(copy):
                return True
        with open(copy, "rb") as file:
            first = file.read(_SIZE)
        pages = max(1, size_of(copy) // _SIZE)
        for written in _beginnings(first, pages):
            with open(copy, "r+b") as file:
                for number, page in written.items():
                    file.seek((number - 1) * _SIZE)
                    file.write(page)
            if tables_of(copy) is not None:
                return True
    except OSError as error:
        raise cannot("The damaged database", path, "be copied", error) from error
    return False


def remove(copy: str) -> None:
    """Remove a copy, if there is one."""
    for name in beside(copy):
        with suppress(FileNotFoundError):
            os.unlink(name)


def _beginnings(first: bytes, pages: int) -> Iterator[dict[int, bytes]]:
    """What the first page may have been, and those it leads to, by their numbers, the likeliest first.

    It is the rest of the file that tells which.
    """
    head = _with_header(first.ljust(_SIZE, b"\0"), pages)
    yield {1: head}
    for kind in _KINDS:
        yield {1: head[:_KIND] + bytes([kind]) + head[_KIND + 1 :]}
    fresh = NoDatabase()
    try:
        migrations.bring_up_to_date(fresh)
        content = fresh.serialized()
    finally:
        fresh.close()
    yield {1: _with_header(content[:_SIZE], pages)}
    below = _pages_below(head)
    # Only where it leads to the same ones: elsewhere there may be anything in their places.
    if below and below == _pages_below(content) and max(below) <= pages:
        yield {1: head} | {number: content[(number - 1) * _SIZE : number * _SIZE] for number in below}


def _pages_below(first: bytes) -> tuple[int, ...]:
    """The numbers of the pages to which a first page leads; () when it is the only one that says which tables there are."""
    if first[_KIND] != _KINDS[0]:
        return ()
    count = int.from_bytes(first[_KIND + 3 : _KIND + 5], "big")
    places = [int.from_bytes(first[at : at + 2], "big") for at in range(_KIND + 12, _KIND + 12 + 2 * count, 2)]
    return tuple(int.from_bytes(first[at : at + 4], "big") for at in (*places, _KIND + 8))


def _with_header(page: bytes, pages: int) -> bytes:
    made = bytearray(page)
    for place, same in _SAME.items():
        made[place : place + len(same)] = same
    # How many pages there are counts only where it was written along with the last change.
    made[28:32] = pages.to_bytes(4, "big")
    made[92:96] = made[24:28]
    return bytes(made)


def size_of(path: str) -> int:
    """Return how long a file is; 0 for one that is not there."""
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
