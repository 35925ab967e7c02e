"""What is left to do, and what cannot be done, of mending an SQLite database: noted beside it.

    <database>.mending                 {"left":["perdure.db.damaged-20260101T120000Z"],"short":{}}

A database that was set aside is read back step by step, and whoever does that may be killed at any of them. The note is
on disk before anything is moved, and goes when all that can be read is in the new database. Until then nobody else
opens it: half of what was kept would be taken for all of it, and somebody who has a chat would be given a new one.
"""

from __future__ import annotations

import os
from contextlib import suppress
from time import sleep

import msgspec
from msgspec import Struct

from perdure import errors
from perdure.model.decoding import decoder_of
from perdure.store.files import cannot, sync_directory, write_atomically
from perdure.store.numbers import numbers_file

#: How long a database may be empty that somebody else is about to make: so often, with as many seconds in between.
_TRIES, _PAUSE = 20, 0.05
#: How long a database is in which there is no table yet.
_PAGE = 4096


class Mending(Struct, frozen=True, kw_only=True):
    """What the note says. Files are named without their directory, which may be moved as a whole."""

    #: What was set aside, or is about to be, and is yet to be read back; the first that was set aside first.
    left: tuple[str, ...] = ()
    #: What could not all be read back, and what is known of that.
    short: dict[str, str] = {}


def note_of(path: str) -> str:
    """Return the name of the note beside a database: the file itself, where `path` is a link to it."""
    return f"{os.path.realpath(path)}.mending"


def read_note(path: str) -> Mending:
    """Return what is noted beside the database at `path`; nothing where there is no note. Raises `StoreUnusable`."""
    note = note_of(path)
    try:
        with open(note, "rb") as file:
            return decoder_of(Mending).decode(file.read())
    except FileNotFoundError:
        return Mending()
    except OSError as error:
        raise cannot("The file", note, "be read", error) from error
    except (msgspec.MsgspecError, UnicodeError) as error:
        # Which file is yet to be read back stands nowhere else, and a wrong one would bring back what was forgotten.
        raise errors.StoreUnusable(
            f"A repair of {path} was interrupted, and its note {note} cannot be read: "
            f"it has to say which of the files beside it is to be read back.",
            path=note,
        ) from error


def write_note(path: str, mending: Mending) -> None:
    """Let the note say this, on disk, or be gone where there is nothing to say. Raises `StoreUnusable`."""
    note = note_of(path)
    try:
        if mending == Mending():
            with suppress(FileNotFoundError):
                os.unlink(note)
                sync_directory(os.path.dirname(note))
        else:
            write_atomically(note, msgspec.json.encode(mending))
    except OSError as error:
        raise cannot("The file", note, "be written", error) from error


def refuse_half_mended(path: str) -> None:
    """Raise `StoreDamaged` while the database at `path` lacks what is yet to be read back."""
    # Nearly always there is none, and whoever opens a store does not pay for more than that.
    if os.path.exists(note_of(path)) and read_note(path).left:
        raise errors.StoreDamaged(
            f"The database {path} cannot be used: a repair is at work, or was interrupted; "
            "`perdure check --repair` goes on with it.",
            path=path,
        )


def is_emptied(path: str, state_dir: str) -> bool:
    """Return whether the database at `path` holds nothing, with no log, and numbers were given by one that was there."""
    for _ in range(_TRIES):
        if not _seems_emptied(path, state_dir):
            return False
        sleep(_PAUSE)
    # With one, more is to be said of an empty file than that.
    return not _has_log(path)


def _seems_emptied(path: str, state_dir: str) -> bool:
    """Whether it looks so at this moment. No file is opened: closing one would cost this process its locks on it."""
    try:
        size = os.path.getsize(path)
        # Every table has a page of its own behind the first. All of them may still be in the log.
        if size not in (0, _PAGE) or (size and _has_log(path)):
            return False
        return bool(os.path.getsize(numbers_file(state_dir)))
    except OSError:
        return False


def _has_log(path: str) -> bool:
    try:
        return bool(os.path.getsize(f"{os.path.realpath(path)}-wal"))
    except OSError:
        return False


def refuse_emptied(path: str, state_dir: str) -> None:
    """Raise `StoreDamaged` for a database that has lost everything: a new one there would say that all is well."""
    if is_emptied(path, state_dir):
        raise errors.StoreDamaged(
            f"The database {path} cannot be used: it is empty, and {numbers_file(state_dir)} says that it was not; "
            "`perdure check --repair` sets it aside and rebuilds it from the manifests.",
            path=path,
        )
