"""Reading everything back and saying what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from perdure import errors
from perdure.model.run import run_id
from perdure.model.snapshot import Problem
from perdure.store import scrollback_file
from perdure.store.driver import Spoilt
from perdure.store.manifest import Manifest, read_manifests

if TYPE_CHECKING:
    from perdure.store.store import Store


def problems(store: Store) -> Iterator[Problem]:
    """Yield everything that is wrong with a store. A snapshot whose parent was pruned is not."""
    if store.unseen is not None:
        yield store.unseen
    for line in store.driver.integrity():
        yield Problem(where="database", what=line, repairable=True)
    try:
        yield from _rows(store)
    except errors.StoreDamaged as error:
        yield Problem(where="database", what=error.message, repairable=True)
    yield from _manifests(store)
    yield from _not_read_back(store)
    for path, mode in open_to_others(store):
        yield Problem(where=path, what=f"Others may use it (mode {mode:04o}).", repairable=True)


def damaged_snapshots(store: Store) -> Iterator[str]:
    """Yield the id of every snapshot that cannot be read back."""
    for id in store.records.ids():
        try:
            store.records.snapshot(id)
        except (errors.SnapshotDamaged, errors.StoreDamaged):
            yield id


def damaged_scrollbacks(store: Store) -> Iterator[str]:
    """Yield the digest of every text that cannot be read back."""
    for digest in store.records.digests():
        try:
            if isinstance(digest, Spoilt):
                raise ValueError("no digest")
            store.records.scrollback(digest)
        except (ValueError, TypeError, errors.StoreDamaged):
            yield digest


def manifests_ahead(store: Store) -> Iterator[Manifest]:
    """Yield every manifest whose snapshot the database does not know, or knows less of."""
    for manifest in read_manifests(store.state_dir):
        if isinstance(manifest, Manifest) and _is_ahead(store, manifest):
            # A save writes the manifest before it commits: looked at again when none is at work.
            with store.driver.transaction(manifest.snapshot.server.key):
                confirmed = _is_ahead(store, manifest)
            if confirmed:
                yield manifest


def open_to_others(store: Store) -> Iterator[tuple[str, int]]:
    """Yield (path, mode) of everything that other users may read or write."""
    directory = store.shelf.directory
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    manifests = (os.path.join(directory, name) for name in names)
    places = [store.state_dir, store.numbers.path, directory, *manifests, *store.driver.files]
    for path in places:
        try:
            mode = os.stat(path).st_mode & 0o7777
        except OSError:
            continue
        if mode & 0o077:
            yield path, mode


def _rows(store: Store) -> Iterator[Problem]:
    from perdure.store.chat_damage import damage_of

    for id in damaged_snapshots(store):
        yield Problem(where=f"snapshot {id}", what="It cannot be read back.", repairable=True)
    for digest in damaged_scrollbacks(store):
        yield Problem(where=f"scrollback {digest}", what="It cannot be read back.", repairable=True)
    for digest in store.records.missing():
        yield Problem(
            where=f"scrollback {digest}", what="A snapshot refers to it, and it is not there.", repairable=True
        )
    for number in store.damaged_runs():
        yield Problem(where=f"run {run_id(number)}", what="It cannot be read back.", repairable=True)
    for seq in store.damaged_events():
        yield Problem(where=f"event {seq}", what="It cannot be read back.", repairable=True)
    for job in store.jobs.damaged():
        yield Problem(where=f"job {job}", what="It cannot be read back.", repairable=True)
    for lost in damage_of(store.chats):
        yield Problem(where=lost.where, what=lost.what, repairable=lost.is_repairable)
    for damage in store.damage():
        what = "It" if damage.pane is None else f"What came of its pane {damage.pane}"
        yield Problem(where=f"restore {damage.restore}", what=f"{what} cannot be read back.", repairable=True)


def _manifests(store: Store) -> Iterator[Problem]:
    for found in read_manifests(store.state_dir):
        if isinstance(found, Problem):
            yield found
    # What could not be looked at may well have what the rest lacks.
    for manifest in manifests_ahead(store) if store.unseen is None else ():
        what = f"The database does not have all of snapshot {manifest.snapshot.id}."
        yield Problem(where=store.shelf.path(manifest.snapshot.server), what=what, repairable=True)
    directory = store.shelf.directory
    for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
        path = os.path.join(directory, name)
        if name.endswith(".scrollback") and scrollback_file.unreadable(path):
            yield Problem(where=path, what="Some scrollback in it cannot be read.", repairable=True)


def _not_read_back(store: Store) -> Iterator[Problem]:
    """What a repair has set aside and could not all read, as long as it is there."""
    from perdure.store.mending import note_of, read_note

    for path in store.driver.files[:1]:
        for name, what in sorted(read_note(path).short.items()):
            aside = os.path.join(os.path.dirname(note_of(path)), name)
            if os.path.lexists(aside):
                yield Problem(where=aside, what=f"{what} This is said as long as the file is there.", repairable=False)


def _is_ahead(store: Store, manifest: Manifest) -> bool:
    return store.is_ahead(manifest.snapshot.id, manifest.snapshot.last_seen_at)
