"""Hooks on disk: all files of an agent together, each in one step, each only when all of them can be edited."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from msgspec import Struct

from perdure.agents.hooking import Format, HookFacts, HookFile
from perdure.errors import Conflict, PerdureError, Refused
from perdure.hooks import leftovers, marks, merge
from perdure.hooks.merge import State
from perdure.hooks.problems import Edited, Unreadable, Unsuitable
from perdure.host import spool
from perdure.model.text import decode
from perdure.store.files import private_directory, sync_directory, write_atomically

#: Nobody's settings are larger; what is should not be taken apart here.
_LARGEST = 16 << 20


class Place(Struct, frozen=True, kw_only=True):
    """An agent of the user's, and where everything of it is."""

    agent: str
    facts: HookFacts
    #: The agent's config home.
    home: str
    #: The directory of its records.
    records: str

    @property
    def is_there(self) -> bool:
        """Whether the agent has a config home."""
        return os.path.isdir(self.home) and not self.is_relative

    @property
    def is_relative(self) -> bool:
        """Whether the config home depends on where the agent is started, so that nobody else can know it."""
        return not os.path.isabs(self.home)


class Change(Struct, frozen=True, kw_only=True):
    """What becomes of one file. None is a file that is not there."""

    path: str
    before: str | None
    after: str | None
    #: Whether the directory came with the file, and goes with it.
    directory: bool = False
    #: What could not be done because somebody edited it, in a sentence or two; the text may then be the same.
    left: str | None = None


def place(agent: str, facts: HookFacts, environ: Mapping[str, str], user_home: str, state_dir: str) -> Place:
    """Return where an agent's files are. Raises Refused when the way to the records cannot be written down."""
    records = os.path.join(spool.spool_dir(state_dir), agent)
    try:
        records.encode()
    except UnicodeEncodeError:
        shown = decode(os.fsencode(state_dir))
        raise Refused(f"The state directory {shown} is no text and cannot be named in a file.") from None
    return Place(agent=agent, facts=facts, home=facts.home(environ, user_home), records=records)


def states(where: Place) -> list[tuple[str, State]]:
    """Return every file of the agent's with what it holds of ours."""
    found = []
    for file in where.facts.files(where.records):
        path = os.path.join(where.home, file.path)
        try:
            found.append((path, merge.state(file, read_text(path))))
        except PerdureError:
            found.append((path, State.UNREADABLE))
    if where.facts.records and not os.path.isdir(where.records):
        # Uninstalled for another config home of the agent's: the hooks are there and do nothing.
        return [(path, State.OUTDATED if state is State.INSTALLED else state) for path, state in found]
    return found


def plan_install(where: Place) -> list[Change]:
    """Return what installing would change. Raises Refused."""
    return _plan(where, _installed)


def plan_uninstall(where: Place) -> list[Change]:
    """Return what uninstalling would change. Raises Refused."""
    return _plan(where, _uninstalled)


def install(where: Place) -> list[Change]:
    """Install, and return what was changed; nothing, when everything was there.

    Raises PerdureError, in whose data `changed` names the files that were changed all the same.
    """
    changes = plan_install(where)
    if where.facts.records:
        # The hooks do nothing without it.
        spool_path = os.path.dirname(where.records)
        for directory in (os.path.dirname(spool_path), spool_path, where.records):
            private_directory(directory)
    _carry_out_all(where, changes)
    return changes


def uninstall(where: Place) -> list[Change]:
    """Uninstall, with all records, and return what was changed. Raises as `install` does."""
    changes = plan_uninstall(where)
    # The last first: consent goes when nothing needs it any more.
    _carry_out_all(where, changes[::-1])
    if not where.facts.records:
        return changes
    try:
        is_gone = spool.clear(where.records)
    except OSError as error:
        raise _with(changes, _failed(where.records, "removed", error)) from error
    if not is_gone:
        message = f"{where.records} is not a directory of records alone; it was left, and agents that run write to it."
        raise _with(changes, PerdureError(message, path=where.records))
    return changes


def _carry_out_all(where: Place, changes: Sequence[Change]) -> None:
    for file in where.facts.files(where.records):
        leftovers.remove(os.path.realpath(os.path.join(where.home, file.path)))
    for number, change in enumerate(changes):
        try:
            if change.before != change.after:
                carry_out(change)
        except PerdureError as error:
            raise _with(changes[:number], error) from error.__cause__


def _with(changes: Sequence[Change], error: PerdureError) -> PerdureError:
    """Return the error, saying what was changed before it came."""
    error.data["changed"] = changed_in(changes)
    return error


def _plan(where: Place, work: Callable[[HookFile, str, str | None], Change]) -> list[Change]:
    if os.stat(where.home).st_uid != os.geteuid():
        # What we make would be ours, and the agent could not use it.
        raise Refused(f"{where.home} belongs to another user; do this as that user.", path=where.home)
    changes = []
    for file in where.facts.files(where.records):
        path = os.path.join(where.home, file.path)
        text = read_text(path)
        try:
            change = work(file, path, text)
        except Edited as problem:
            raise Refused(f"{path} {problem}; it was left as it is. {problem.way}", path=path) from None
        except (Unreadable, Unsuitable) as problem:
            raise Refused(f"{path} {problem}; it was left as it is.", path=path) from None
        if change.before != change.after or change.left:
            changes.append(change)
    if not changed_in(changes) and (lefts := lefts_of(changes)):
        raise Refused(lefts)
    return changes


def changed_in(changes: Sequence[Change]) -> tuple[str, ...]:
    """Return the files these change."""
    return tuple(change.path for change in changes if change.before != change.after)


def lefts_of(changes: Sequence[Change]) -> str:
    """Return what could not be done in all of these, empty when everything could."""
    return " ".join(change.left for change in changes if change.left)


def _left(path: str, places: Sequence[str]) -> str | None:
    if not places:
        return None
    return f"{path} has entries of perdure's that were edited: {', '.join(places)}. Delete them by hand and try again."


def _installed(file: HookFile, path: str, text: str | None) -> Change:
    made = not os.path.isdir(os.path.dirname(path))
    after = merge.install(file, text, made_directory=made)
    return Change(path=path, before=text, after=after, directory=made, left=_left(path, merge.edited(file, text)))


def _uninstalled(file: HookFile, path: str, text: str | None) -> Change:
    if text is None or merge.state(file, text) is State.ABSENT:
        return Change(path=path, before=text, after=text)
    made = file.format is Format.OWN and bool(marks.made_around(text))
    left = _left(path, merge.edited(file, text))
    return Change(path=path, before=text, after=merge.uninstall(file, text), directory=made, left=left)


def read_text(path: str) -> str | None:
    """Return a file's text, None when there is no such file. Raises Refused for what cannot be edited as text."""
    try:
        with open(path, "rb", opener=_open) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refused(f"{path} is not a regular file; it was left as it is.", path=path)
            raw = file.read(_LARGEST + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failed(path, "read", error) from error
    if len(raw) > _LARGEST:
        raise Refused(f"{path} is too large for settings; it was left as it is.", path=path)
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Refused(f"{path} is not UTF-8 at byte {error.start}; it was left as it is.", path=path) from None


def _open(path: str, flags: int) -> int:
    # Whoever opens a fifo would wait for somebody to write.
    return os.open(path, flags | os.O_NONBLOCK)


def carry_out(change: Change) -> None:
    """Make of one file what it is to become. Raises `Conflict` when it is not what it was any more, and `PerdureError`."""
    # Links stay links: people keep such files elsewhere.
    target = os.path.realpath(change.path)
    directory = os.path.dirname(target)
    seen = _seen(target)
    if seen.text != change.before:
        raise _changed(change.path)
    try:
        if change.after is None:
            os.unlink(target)
            if change.directory:
                with suppress(OSError):  # somebody else's files are in it now
                    os.rmdir(directory)
            return
        if change.directory:
            private_directory(directory)
        _replace(target, change, seen)
    except OSError as error:
        raise _failed(change.path, "written", error) from error


class _Seen(NamedTuple):
    """A file at one moment; the same again when nobody has saved it since."""

    text: str | None
    inode: int = 0
    written: int = 0
    size: int = 0


def _seen(path: str) -> _Seen:
    text = read_text(path)
    if text is None:
        return _Seen(None)
    try:
        status = os.stat(path)
    except OSError as error:
        raise _failed(path, "read", error) from error
    return _Seen(text, status.st_ino, status.st_mtime_ns, status.st_size)


def _replace(target: str, change: Change, seen: _Seen) -> None:
    """Put the new text there, unless somebody has saved the file meanwhile."""
    staged = leftovers.staged(target)
    write_atomically(staged, (change.after or "").encode(), like=None if seen.text is None else os.stat(target))
    try:
        # Writing takes as long as the disk does; whoever saved in that time must not lose it.
        if _seen(target) != seen:
            raise _changed(change.path)
        os.replace(staged, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(staged)
        raise
    sync_directory(os.path.dirname(target))


def _changed(path: str) -> Conflict:
    return Conflict(f"{path} changed while it was looked at; try again.", path=path)


def _failed(path: str, verb: str, error: OSError) -> PerdureError:
    return PerdureError(f"{path} could not be {verb}: {error.strerror}.", path=path)
