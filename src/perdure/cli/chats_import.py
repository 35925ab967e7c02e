"""`perdure chats import PATH…`: chats that earlier programs, or we ourselves, have written down."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator

from perdure.chats.importing import Taken, import_chats
from perdure.chats.jsonl import is_export, read_export
from perdure.chats.service import Chats
from perdure.cli._setup import Setup, path_argument, with_setup
from perdure.cli.chats_mirror import follow_in_mirror
from perdure.cli.render import counted, print_json, printable
from perdure.compat.hermes_database import read_database
from perdure.compat.hermes_sessions import ENDING, INDEX, read_directory
from perdure.errors import ImportFailed, NotFound
from perdure.host.clock import now
from perdure.host.regular import open_regular
from perdure.model.chat_import import Arrival, Incoming, Mishap
from perdure.store.foreign import query

#: Where a home of Hermes has its database, and its files.
DATABASE, SESSIONS = "state.db", "sessions"
_SQLITE = b"SQLite format 3\0"


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "paths",
        nargs="+",
        type=path_argument,
        metavar="PATH",
        help=f"a {DATABASE}, a directory with {INDEX} or with a {DATABASE}, a {INDEX}, or a file `chats export` wrote",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be taken over")


def _run(setup: Setup, args: argparse.Namespace) -> int:
    store = (setup.readable if args.dry_run else setup.store).chats
    chats = Chats(store, setup.config, now)
    incoming = [each for path in args.paths for each in _read(os.path.abspath(path))]
    taken = import_chats(chats, incoming, dry_run=args.dry_run)
    if not args.dry_run:
        # Everything: what came in may not have been used for years.
        follow_in_mirror(setup, everything=True)
    if args.json:
        print_json(_as_json(taken, is_dry=args.dry_run))
    else:
        _say(taken, is_dry=args.dry_run)
    return 4 if taken.mishaps else 0


run = with_setup(_run)


def _read(path: str) -> Iterator[Incoming | Mishap]:
    """What a path holds. Raises `NotFound` and `ImportFailed` when it is nothing that could be imported."""
    if os.path.isdir(path):
        return _read_directory(path)
    try:
        with open_regular(path) as file:
            first = file.readline()
    except FileNotFoundError:
        raise NotFound(f"There is nothing at {path}.") from None
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror or error}.") from error
    if first.startswith(_SQLITE):
        return read_database(path, query)
    if os.path.basename(path) == INDEX:
        return read_directory(os.path.dirname(path))
    if is_export(first):
        return iter([read_export(path)])
    raise ImportFailed(f"{path} is none of the files that can be imported: {DATABASE}, {INDEX}, or an exported chat.")


def _read_directory(path: str) -> Iterator[Incoming | Mishap]:
    """A directory of sessions, or a whole home: what both its database and its files tell of comes in once."""
    database = os.path.join(path, DATABASE)
    found = [read_database(database, query)] if os.path.isfile(database) else []
    found += [read_directory(each) for each in (path, os.path.join(path, SESSIONS)) if _holds_sessions(each)]
    if not found:
        raise ImportFailed(f"There is neither a {DATABASE} nor a {INDEX} in {path}.")
    return (each for part in found for each in part)


def _holds_sessions(directory: str) -> bool:
    names = os.listdir(directory) if os.path.isdir(directory) else ()
    return any(name == INDEX or name.endswith(ENDING) for name in names)


def _as_json(taken: Taken, *, is_dry: bool) -> dict[str, object]:
    return {
        "dry_run": is_dry,
        "chats": [
            {
                "chat": each.chat.id,
                "result": each.result,
                "added": each.added,
                "open": each.chat.is_open,
                "platform": each.chat.source.platform,
            }
            for each in taken.arrived
        ],
        "problems": [{"where": each.where, "what": f"{each.what}."} for each in taken.mishaps],
    }


def _say(taken: Taken, *, is_dry: bool) -> None:
    for each in taken.mishaps:
        print(f"perdure: {printable(each.where)}: {printable(each.what)}.", file=sys.stderr)
    results = Counter(each.result for each in taken.arrived)
    turns = sum(each.added for each in taken.arrived)
    words = {
        Arrival.NEW: "new",
        Arrival.GREW: "went on",
        Arrival.UNCHANGED: "already here",
        Arrival.CHANGED: "left as they are",
    }
    parts = [f"{results[result]} {what}" for result, what in words.items() if results[result]]
    would = "This would import" if is_dry else "Imported"
    print(
        f"{would} {counted(turns, 'turn')}; {counted(len(taken.arrived), 'chat')}{': ' if parts else ''}{', '.join(parts)}."
    )
