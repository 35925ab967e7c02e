"""Hooks on disk: all files of an agent together, each in one step, each only when all of them can be edited."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Mapping
from contextlib import suppress

from msgspec import Struct

from perdure.agents.hooking import Format, HookFacts, HookFile
from perdure.errors import PerdureError, Refused
from perdure.hooks import marks, merge
from perdure.hooks.merge import State
from perdure.hooks.problems import Edited, Unreadable, Unsuitable
from perdure.host import spool
from perdure.model.text import decode
from perdure.store.files import private_directory, write_atomically

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
        return os.path.isdir(self.home)


class Change(Struct, frozen=True, kw_only=True):
    """What becomes of one file. None is a file that is not there."""

    path: str
    before: str | None
    after: str | None
    #: Whether the directory came with the file, and goes with it.
    directory: bool = False


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
            found.append((path, merge.state(file, _read(path))))
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
    """Install, and return what was changed; nothing, when everything was there. Raises PerdureError."""
    changes = plan_install(where)
    if where.facts.records:
        # The hooks do nothing without it.
        spool_path = os.path.dirname(where.records)
        for directory in (os.path.dirname(spool_path), spool_path, where.records):
            private_directory(directory)
    for change in changes:
        _carry_out(change)
    return changes


def uninstall(where: Place) -> list[Change]:
    """Uninstall, with all records, and return what was changed. Raises PerdureError."""
    changes = plan_uninstall(where)
    # The last first: consent goes when nothing needs it any more.
    for change in reversed(changes):
        _carry_out(change)
    try:
        spool.clear(where.records)
    except OSError as error:
        raise _failed(where.records, "removed", error) from error
    return changes


def _plan(where: Place, work: Callable[[HookFile, str, str | None], Change]) -> list[Change]:
    if os.stat(where.home).st_uid != os.geteuid():
        # What we make would be ours, and the agent could not use it.
        raise Refused(f"{where.home} belongs to another user; do this as that user.", path=where.home)
    changes = []
    for file in where.facts.files(where.records):
        path = os.path.join(where.home, file.path)
        text = _read(path)
        try:
            change = work(file, path, text)
        except (Unreadable, Unsuitable, Edited) as problem:
            raise Refused(f"{path} {problem}; it was left as it is.", path=path) from None
        if change.before != change.after:
            changes.append(change)
    return changes


def _installed(file: HookFile, path: str, text: str | None) -> Change:
    made = not os.path.isdir(os.path.dirname(path))
    return Change(path=path, before=text, after=merge.install(file, text, made_directory=made), directory=made)


def _uninstalled(file: HookFile, path: str, text: str | None) -> Change:
    if text is None or merge.state(file, text) is State.ABSENT:
        return Change(path=path, before=text, after=text)
    made = file.format is Format.OWN and bool(marks.made_around(text))
    return Change(path=path, before=text, after=merge.uninstall(file, text), directory=made)


def _read(path: str) -> str | None:
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


def _carry_out(change: Change) -> None:
    # Links stay links: people keep such files elsewhere.
    target = os.path.realpath(change.path)
    directory = os.path.dirname(target)
    if _read(target) != change.before:
        raise PerdureError(f"{change.path} changed while it was looked at; try again.", path=change.path)
    try:
        if change.after is None:
            os.unlink(target)
            if change.directory:
                with suppress(OSError):  # somebody else's files are in it now
                    os.rmdir(directory)
            return
        if change.directory:
            private_directory(directory)
        like = None if change.before is None else os.stat(target)
        write_atomically(target, change.after.encode(), like=like)
    except OSError as error:
        raise _failed(change.path, "written", error) from error


def _failed(path: str, verb: str, error: OSError) -> PerdureError:
    return PerdureError(f"{path} could not be {verb}: {error.strerror}.", path=path)
