"""The named statements in `sql/`."""

from __future__ import annotations

import os.path
from functools import cache

_DIRECTORY = os.path.join(os.path.dirname(__file__), "sql")
_FILES = (
    "schema",
    "snapshots",
    "scrollbacks",
    "restores",
    "numbers",
    "runs",
    "events",
    "leases",
    "chats",
    "turns",
    "search",
    "jobs",
)
_MARK = "-- name: "


@cache
def queries() -> dict[str, str]:
    """Return every named statement."""
    found: dict[str, str] = {}
    for file in _FILES:
        for block in read_sql(f"{file}.sql").split(_MARK)[1:]:
            name, _, text = block.partition("\n")
            found[name.strip()] = without_comments(text)
    return found


@cache
def read_sql(name: str) -> str:
    """Return a file below `sql/`. Plain files: importlib.resources costs more than the rest of opening a store."""
    with open(os.path.join(_DIRECTORY, name), encoding="utf-8") as file:
        return file.read()


@cache
def names_below(folder: str) -> tuple[str, ...]:
    """Return the names in a folder below `sql/`, in order."""
    return tuple(sorted(os.listdir(os.path.join(_DIRECTORY, folder))))


def without_comments(text: str) -> str:
    """Return SQL without its comment lines."""
    return "\n".join(line for line in text.splitlines() if not line.startswith("--")).strip()
