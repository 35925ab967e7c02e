"""Looking at what is kept where the store cannot be written, and saying what cannot be looked at."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from perdure.cli.render import printable
from perdure.errors import StoreUnusable
from perdure.store import open_store

if TYPE_CHECKING:
    from perdure.model.snapshot import SnapshotSummary
    from perdure.store.store import Store


def open_for_reading(url: str, state_dir: str, failure: StoreUnusable) -> tuple[Store, str]:
    """Return the store at `url`, which could not be opened for writing, to be read, and the sentence that says so.

    Raises that failure when it is not about a file, or when nothing is kept.
    """
    if "path" not in failure.data:
        raise failure
    store = open_store(url, state_dir=state_dir, read_only=True)
    if not store.list_snapshots(limit=1) and not store.chats.count_chats():
        store.close()
        raise failure
    cause = str(failure.data.get("cause", "the store says no more"))
    cause = cause[:1].lower() + cause[1:]
    return store, printable(f"{failure.data['path']} cannot be written ({cause}); showing what is kept.")


def name_unreadable(store: Store, listed: Iterable[SnapshotSummary]) -> bool:
    """Name the manifests of servers that are not listed and cannot be read; return whether there are any."""
    unreadable = store.shelf.unreadable(but=[each.server for each in listed])
    for path in unreadable:
        print(f"perdure: The manifest {printable(path)} cannot be read.", file=sys.stderr)
    return bool(unreadable)
