"""Mending a store without ever deleting anything: what is damaged is set aside, what is readable comes back."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from datetime import datetime
from typing import TYPE_CHECKING

from msgspec.structs import replace

from perdure import errors
from perdure.model.run import number_of, run_id
from perdure.model.snapshot import CAPTURED, Problem
from perdure.store import check, open_store, sqlite_path, store_over
from perdure.store.chat_damage import adopt, damage_of, keep_aside, set_aside
from perdure.store.driver import Row
from perdure.store.files import cannot, damaged_name, locked, private_directory, private_file, sync_directory
from perdure.store.manifest import Manifest, manifest_name, read_manifests
from perdure.store.mending import Mending, is_emptied, read_note, write_note
from perdure.store.numbers import GIVING
from perdure.store.queries import queries
from perdure.store.rows import coming_from, stamp
from perdure.store.store import Store

if TYPE_CHECKING:
    from perdure.store.salvage import Wreck

#: What the tables hold that are read back.
_NOUNS = {
    "snapshots": "snapshots",
    "runs": "runs",
    "events": "events",
    "chats": "chats",
    "turns": "turns of chats",
    "jobs": "jobs",
    "job_notices": "notices of jobs",
    "chat_grants": "grants of chats",
}


def repair(url: str, state_dir: str, now: datetime) -> tuple[str, ...]:
    """Mend the store at `url` and say what was done, one sentence each; () when there was nothing to do.

    Goes on with one that was interrupted, wherever that was. Raises `StoreUnusable` when the store cannot be reached
    at all.
    """
    private_directory(state_dir)
    with locked(state_dir):
        path = sqlite_path(url)
        # SQLite, too, looks for the log beside the file itself and not beside a link to it.
        actions = [] if path is None else list(_rebuilt(os.path.realpath(path), state_dir, now))
        store = open_store(url, state_dir=state_dir)
        try:
            actions += _mend(store, now)
        finally:
            store.close()
    return tuple(actions)


def _rebuilt(path: str, state_dir: str, now: datetime) -> Iterator[str]:
    """Set a damaged database aside and bring back what can be read of it, and of those that were set aside before."""
    from perdure.store.sqlite import SQLite, lone_log

    mending = read_note(path)
    is_gone_on_with = bool(mending.left)
    if is_gone_on_with:
        yield "Went on with a repair that was interrupted."
        _move(path, _beside(path, mending.left[-1]), now)
    # One that is empty is new, where a repair was interrupted.
    if (not is_gone_on_with and is_emptied(path, state_dir)) or _is_damaged(path, state_dir):
        aside = damaged_name(path, now)
        mending = replace(mending, left=(*mending.left, os.path.basename(aside)))
        # Before anything is moved: whoever comes after a kill knows what belongs together, and what is to be read.
        write_note(path, mending)
        log = lone_log(path)
        _move(path, aside, now)
        if log is None:
            yield f"Set the damaged database aside as {aside}."
        else:
            yield (
                f"Set the log {log} aside as {aside}-wal: its database is not there. "
                f"Named {aside}, that would have with it what the log holds."
            )
    # What somebody has taken away is not asked for any more.
    short = {name: what for name, what in mending.short.items() if os.path.lexists(_beside(path, name))}
    if not mending.left:
        if short != mending.short:
            write_note(path, Mending(short=short))
        return
    store = store_over(SQLite(path), state_dir)
    try:
        # Opening a new database has filled it from the manifests, unless it was interrupted.
        store.begin()
        if not is_gone_on_with:
            yield f"Loaded {_counted(len(store.records.ids()), 'snapshot')} from the manifests."
        for name in mending.left:
            lacking = yield from _salvage(store, _beside(path, name), now)
            if lacking is not None:
                short[name] = lacking
    finally:
        store.close()
    write_note(path, Mending(short=short))


def _is_damaged(path: str, state_dir: str) -> bool:
    from perdure.store.sqlite import SQLite

    try:
        store = store_over(SQLite(path), state_dir)
    except errors.StoreDamaged:
        return True
    try:
        return bool(store.driver.integrity())
    finally:
        store.close()


def _move(path: str, aside: str, now: datetime) -> None:
    """Give a database and what belongs to it another name, as far as that is not done yet."""
    from perdure.store.sqlite import beside

    if os.path.lexists(aside):
        # The database goes last: what has its name now is the new one.
        return
    # Where it was begun, nobody is let in, and opening it without its log would make another.
    is_begun = any(map(os.path.lexists, beside(aside)))
    with nullcontext() if is_begun else _nobody_writing(path):
        for old, new in reversed(tuple(zip(beside(path), beside(aside), strict=True))):
            try:
                # A log that was made meanwhile takes the place of none.
                os.rename(old, damaged_name(old, now) if os.path.lexists(new) else new)
            except FileNotFoundError:
                continue
            except OSError as error:
                raise cannot("The damaged database", old, "be set aside", error) from error
    # Where there was nothing but a log, this stands for the database: what gets its name later is the new one.
    private_file(aside)
    try:
        sync_directory(os.path.dirname(path))
    except OSError as error:
        raise cannot("The directory", os.path.dirname(path), "be written", error) from error


@contextmanager
def _nobody_writing(path: str) -> Iterator[None]:
    """Let whoever writes to a database come to the end, and nobody begin, as far as anybody can.

    Whoever has seen that it is still where it was may commit: behind the back of whoever reads what was set aside.
    """
    import sqlite3

    from perdure.store.first_page import size_of
    from perdure.store.foreign import file_uri
    from perdure.store.sqlite import PATIENCE

    if not size_of(path):
        # Beside an empty file SQLite would remove the log.
        yield
        return
    with ExitStack() as held:
        # Where it cannot be opened, nobody else can either.
        with suppress(sqlite3.Error):
            uri = file_uri(path, "mode=rw")
            connection = sqlite3.connect(uri, uri=True, timeout=PATIENCE, isolation_level=None)
            held.enter_context(closing(connection))
            connection.execute("BEGIN IMMEDIATE")
        yield


def _beside(path: str, name: str) -> str:
    return os.path.join(os.path.dirname(path), name)


def _salvage(store: Store, aside: str, now: datetime) -> Generator[str, None, str | None]:
    """Bring everything over that can be read, and return what is to be said of the rest; None when there is none."""
    from perdure.store.salvage import wreck_of  # brings sqlite3

    with wreck_of(aside) as wreck:
        count = 0
        for snapshot, parent in wreck.snapshots():
            coming = coming_from(snapshot, snapshot.origin)
            with store.driver.transaction(snapshot.server.key):
                texts = wreck.texts(frozenset(store.records.absent(coming.digests)))
                count += store.records.insert(snapshot.id, parent, stamp(snapshot.taken_at), coming, texts)
        yield f"Read {_counted(count, 'further snapshot')} back from the damaged database."
        runs, events = _salvage_runs(store, wreck)
        if runs or events:
            yield f"Read {_counted(runs, 'run')} and {_counted(events, 'event')} back from the damaged database."
        yield from _salvage_chats(store, wreck, os.path.basename(aside), now)
        jobs = store.jobs.keep(wreck.jobs(), wreck.notices())
        if jobs:
            yield f"Read {_counted(jobs, 'job')} back from the damaged database."
        lacking = _lacking(wreck)
    yield f"{lacking or 'All snapshots, runs, events, chats and jobs in it were read.'} It is still in {aside}."
    return lacking


def _lacking(wreck: Wreck) -> str | None:
    """What is to be said of a damaged database of which not everything could be read."""
    # Grants nobody can tell of are not among those of which something is missing.
    is_all_short = {*_NOUNS} - {*wreck.short} <= {"chat_grants"}
    if (wreck.is_unreadable or is_all_short) and not any(wreck.found.values()):
        return "Nothing in the damaged database could be read."
    if not wreck.short:
        return None
    nouns = [_NOUNS[table] for table in wreck.short]
    named = " and ".join(filter(None, (", ".join(nouns[:-1]), nouns[-1])))
    came = ", ".join(_counted(wreck.found[f"{noun}s"], noun) for noun in ("snapshot", "run", "event", "chat", "job"))
    return f"Not all {named} in the damaged database could be read; what came back of it: {came}."


def _salvage_runs(store: Store, wreck: Wreck) -> tuple[int, int]:
    """Take in what is not there yet: all at once, so that one that was interrupted has done nothing or everything."""
    with store.driver.transaction(GIVING):
        there = {number for (number,) in store.driver.fetch(queries()["run_numbers"])}
        runs = [run for run in wreck.runs() if number_of(run.id) not in there]
        told = {seq for (seq,) in store.driver.fetch(queries()["event_numbers"])}
        events = [stored for stored in wreck.events() if stored.seq not in told]
        for name, number in wreck.highest().items():
            store.numbers.raise_to(name, number)
        store.keep_runs(runs)
        store.keep_events(events)
    return len(runs), len(events)


def _salvage_chats(store: Store, wreck: Wreck, name: str, now: datetime) -> Iterator[str]:
    chats, lost = wreck.chats()
    grants = wreck.grants()
    count = granted = 0
    for number, saved in chats.items():
        # What is nobody's any more was not granted by anybody either.
        owners = grants.get(number, frozenset()) if saved.chat is not None else frozenset()
        if adopt(store.chats, saved, number, now, owners):
            count += 1
            granted += len(owners)
            if saved.chat is None:
                yield f"The record of chat {saved.id} is lost; what is left of it is kept, for whoever runs the store."
    _keep_turns_aside(store, lost, name, now)
    if chats or lost:
        yield f"Read {_counted(count, 'chat')} back from the damaged database."
    if granted:
        yield f"Read {_counted(granted, 'grant')} of chats back from the damaged database."
    if lost:
        yield f"Set {_counted(len(lost), 'turn')} of chats that cannot be read aside."


def _keep_turns_aside(store: Store, rows: Sequence[Row], name: str, now: datetime) -> None:
    """Keep turns that belong to no chat, those of one database once."""
    kept = f"turns of {name} that belong to no chat"
    with store.chats.changing():
        if store.records.fact(kept) is None:
            for row in rows:
                keep_aside(store.chats, row, now)
            store.records.remember(kept, str(len(rows)))


def _mend(store: Store, now: datetime) -> Iterator[str]:
    yield from _rows(store, now)
    yield from _bad_manifests(store, now)
    loaded = store.load_manifests()
    if loaded:
        yield f"Loaded {_counted(len(loaded), 'snapshot')} from the manifests: {', '.join(loaded)}."
    yield from _missing_scrollback(store)
    yield from _modes(store)


def _rows(store: Store, now: datetime) -> Iterator[str]:
    for id in list(check.damaged_snapshots(store)):
        with store.driver.transaction():
            store.records.set_aside(id, stamp(now))
        yield f"Set the damaged snapshot {id} aside."
    for digest in list(check.damaged_scrollbacks(store)):
        with store.driver.transaction():
            store.records.set_scrollback_aside(digest, stamp(now))
        yield f"Set the damaged scrollback {digest} aside."
    for number in list(store.damaged_runs()):
        store.set_run_aside(number, now)
        yield f"Set the damaged run {run_id(number)} aside."
    for seq in list(store.damaged_events()):
        store.set_event_aside(seq, now)
        yield f"Set the damaged event {seq} aside."
    for job in list(store.jobs.damaged()):
        store.jobs.set_aside(job, now)
        yield f"Set the damaged record of job {job} aside."
    for lost in list(damage_of(store.chats)):
        done = set_aside(store.chats, lost, now) if lost.is_repairable else None
        if done is not None:
            yield done
    for damage in list(store.damage()):
        store.set_aside(damage, now)
        if damage.pane is None:
            yield f"Set the damaged restore {damage.restore} aside."
        else:
            yield f"Set the damaged outcome of pane {damage.pane} in restore {damage.restore} aside."


def _missing_scrollback(store: Store) -> Iterator[str]:
    missing = set(store.records.missing())
    for manifest in read_manifests(store.state_dir) if missing else ():
        if isinstance(manifest, Manifest):
            found = store.shelf.texts(manifest, missing)
            with store.driver.transaction():
                for digest, text in sorted(found.items()):
                    store.records.keep_scrollback(digest, text)
            missing -= found.keys()
            if found:
                yield f"Loaded {_counted(len(found), 'scrollback')} from the manifests."
    with store.driver.transaction():
        for digest in missing:
            store.records.give_up_scrollback(digest)
    if missing:
        yield f"Gave up {_counted(len(missing), 'scrollback')} that can be found nowhere."


def _bad_manifests(store: Store, now: datetime) -> Iterator[str]:
    """Set unreadable manifests aside and write them anew from the database, where it knows the server."""
    bad = [found.where for found in read_manifests(store.state_dir) if isinstance(found, Problem) and found.repairable]
    for path in bad:
        aside = damaged_name(path, now)
        with store.shelf.held(now):
            os.rename(path, aside)
        yield f"Set the damaged manifest aside as {aside}."
    if bad:
        yield from _rewritten(store, {os.path.basename(path) for path in bad}, now)


def _rewritten(store: Store, names: set[str], now: datetime) -> Iterator[str]:
    for key in store.records.servers(CAPTURED):
        with store.driver.transaction(key), store.shelf.held(now):
            snapshot = store.newest_readable(key)
            if snapshot is None or f"{manifest_name(snapshot.server)}.json" not in names:
                continue
            standing = store.records.standing(snapshot.id)
            parent = None if standing is None else standing.parent
            store.shelf.put(Manifest(parent=parent, snapshot=snapshot), store.packed_scrollback)
        yield f"Wrote the manifest of {key} anew from snapshot {snapshot.id}."


def _modes(store: Store) -> Iterator[str]:
    for path, mode in list(check.open_to_others(store)):
        # A directory with the sticky bit is everybody's on purpose (/tmp): not ours to close.
        if not mode & 0o1000:
            with suppress(OSError):
                os.chmod(path, mode & 0o700)
                yield f"Closed {path} to other users."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
