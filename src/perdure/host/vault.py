"""Copies of transcripts that their own agent may delete, and their way back.

`<vault>/<agent>/<conversation>/<a file's digest>/` has `path`, which says where the file was, and its last copies as
`<number>-<digest of the content>`. The longest of them is always among those that are kept: transcripts only grow, so
a shorter one has lost something.

Nothing here raises: what goes wrong is said, as a clause for the outcome of a step.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256

from msgspec import Struct

from perdure.errors import PerdureError
from perdure.host.users import run_as
from perdure.model.identity import AgentDetails
from perdure.model.text import decode, encode
from perdure.model.user import User
from perdure.ports import AgentAdapter, DeletesTranscripts

#: How many copies of a file are kept.
COPIES = 3
_LARGEST = 1 << 28
_COPY = re.compile(rb"([0-9]{6})-([0-9a-f]{64})")
_WHERE, _NEW = b"path", b".new"
_SAFE = re.compile(r"[0-9A-Za-z_-]{1,100}")


def vault_dir(state_dir: str) -> str:
    """Return the directory of all copies."""
    return os.path.join(state_dir, "vault")


def keep_copies(conversation: str, details: AgentDetails, adapter: AgentAdapter, user: User, vault: str) -> str:
    """Copy the files of a conversation before its agent is started; return why it must not be, "" when it may.

    `details` is what the agent's files tell now. An agent that deletes nothing needs no copy. Everything is done as
    `user`, whose files these are; by root too.
    """
    if not isinstance(adapter, DeletesTranscripts):
        return ""
    folder = _folder(vault, adapter.name, conversation)

    def work() -> str:
        paths = _known(details, folder)
        whole = [found for path in paths if (found := _read(path)) and adapter.is_whole(found.data)]
        for found in whole:
            _add(folder, found)
        return "" if whole else f"no whole transcript of {conversation} was found to be copied first"

    why = _as_user(user, work)
    return f"{why}; {adapter.name} deletes transcripts when it starts, so it was not started" if why else ""


def put_back(conversation: str, details: AgentDetails, adapter: AgentAdapter, user: User, vault: str) -> str | None:
    """Put a copy where the transcript was, when the agent would find nothing to resume; say so, None when all is well.

    `details` is what the agent's files tell now. Nothing is overwritten: what is left of a broken transcript gets
    another name beside it. Whatever is said, `keep_copies` tells whether there is a whole transcript now.
    """
    if not isinstance(adapter, DeletesTranscripts):
        return None
    folder = _folder(vault, adapter.name, conversation)

    def work() -> str:
        if any((found := _read(path)) and adapter.is_whole(found.data) for path in _known(details, folder)):
            return ""
        best = _best_copy(folder, adapter.is_whole)
        return "" if best is None else _restore(best, adapter.is_whole)

    return _as_user(user, work) or None


class _File(Struct, frozen=True, kw_only=True):
    """A file's content, where it belongs, and when it was last written."""

    path: bytes
    data: bytes
    written: int


def _known(details: AgentDetails, folder: bytes) -> list[bytes]:
    """Where the files of a conversation are, or were when they were copied: those may have been put back since."""
    told = [encode(path) for path in (details.transcript, *details.companions) if path]
    copied = [where.data for name in _names(folder) if (where := _read(os.path.join(folder, name, _WHERE)))]
    return list(dict.fromkeys((*told, *copied)))


def _folder(vault: str, agent: str, conversation: str) -> bytes:
    """The conversation's folder; an id that is no good name is known by its digest."""
    name = conversation if _SAFE.fullmatch(conversation) else sha256(encode(conversation)).hexdigest()
    return os.path.join(encode(vault), encode(agent), encode(name))


def _as_user(user: User, work: Callable[[], str]) -> str:
    """Return what `work` says, or what kept it from its end."""

    def answer() -> bytes:
        try:
            return encode(work())
        except OSError as error:
            where = error.filename
            name = decode(where) if isinstance(where, bytes) else str(where or "a transcript")
            return encode(f"{name} cannot be read or written ({error.strerror or error})")

    try:
        return decode(answer() if os.geteuid() == user.uid else run_as(user, answer))
    except PerdureError:
        return f"nothing could be copied as {user.name}"


def _read(path: bytes) -> _File | None:
    """Return a file, None when there is none. Raises OSError for one that is there and cannot be had."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", path)
        if status.st_size > _LARGEST:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), path)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return _File(path=path, data=file.read(), written=status.st_mtime_ns)
    finally:
        os.close(handle)


def _add(folder: bytes, found: _File) -> None:
    """Keep a copy, unless one of the same content is there, and let go of the oldest."""
    place = os.path.join(folder, sha256(found.path).hexdigest()[:16].encode())
    _make_private(place)
    where = _read(os.path.join(place, _WHERE))
    if where is None or where.data != found.path:
        _write(place, _WHERE, _File(path=found.path, data=found.path, written=found.written))
    digest = sha256(found.data).hexdigest().encode()
    names = _copies(place)
    if any(name.endswith(digest) and _intact(place, name) for name in names):
        return
    last = int(names[-1][:6]) if names else 0
    _write(place, b"%06d-%s" % (last + 1, digest), found)
    _prune(place)


def _prune(place: bytes) -> None:
    names = _copies(place)
    sizes = {name: os.stat(os.path.join(place, name)).st_size for name in names}
    longest = max(names, key=lambda name: (sizes[name], name))
    for name in [name for name in names if name != longest][: -(COPIES - 1)]:
        os.unlink(os.path.join(place, name))


def _copies(place: bytes) -> list[bytes]:
    """The copies of a file, oldest first."""
    return sorted(name for name in os.listdir(place) if _COPY.fullmatch(name))


def _intact(place: bytes, name: bytes) -> _File | None:
    """Return a copy when it still is what it was."""
    found = _read(os.path.join(place, name))
    is_same = found is not None and name.endswith(sha256(found.data).hexdigest().encode())
    return found if is_same else None


def _best_copy(folder: bytes, is_whole: Callable[[bytes], bool]) -> _File | None:
    """Return the longest copy that is whole, of several the latest, as the file it is a copy of."""
    whole = (each for each in _good_copies(folder) if is_whole(each.data))
    return max(whole, key=lambda each: (len(each.data), each.written), default=None)


def _good_copies(folder: bytes) -> Iterator[_File]:
    for place in (os.path.join(folder, name) for name in _names(folder)):
        where = _read(os.path.join(place, _WHERE))
        for name in _copies(place) if where else ():
            copy = _intact(place, name)
            if where and copy:
                yield _File(path=where.data, data=copy.data, written=copy.written)


def _names(folder: bytes) -> Sequence[bytes]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return ()


def _restore(copy: _File, is_whole: Callable[[bytes], bool]) -> str:
    there = _read(copy.path)
    if there is not None and is_whole(there.data):
        return ""
    directory = os.path.dirname(copy.path)
    temporary = os.path.join(directory, b".perdure-" + os.urandom(8).hex().encode())
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
        _fill(temporary, copy)
        aside = _move_aside(copy.path) if there is not None else None
        # Linked into place: that fails when anything has appeared there, and it is whole when it does not.
        os.link(temporary, copy.path)
    except OSError as error:
        return f"its transcript is gone, and its copy could not be put back ({error.strerror or error})"
    finally:
        with suppress(OSError):
            os.unlink(temporary)
    _sync(directory)
    if aside is None:
        return f"its transcript was gone and has been put back from a copy ({decode(copy.path)})"
    return f"its transcript was broken and has been put back from a copy; what was left of it is {decode(aside)}"


def _move_aside(path: bytes) -> bytes:
    """Give a file a name that is free and that no agent takes for a transcript's."""
    number = 1
    while os.path.lexists(aside := b"%s.left-%d" % (path, number)):
        number += 1
    os.rename(path, aside)
    return aside


def _make_private(path: bytes) -> None:
    """Make a directory with all those above it that are missing, for the owner alone."""
    if os.path.isdir(path):
        return
    _make_private(os.path.dirname(path))
    with suppress(FileExistsError):
        os.mkdir(path, 0o700)


def _write(place: bytes, name: bytes, content: _File) -> None:
    """Put a file into the vault in one step that survives a power cut."""
    new = os.path.join(place, _NEW)
    with suppress(FileNotFoundError):
        os.unlink(new)
    try:
        _fill(new, content)
        os.rename(new, os.path.join(place, name))
    except BaseException:
        with suppress(OSError):
            os.unlink(new)
        raise
    _sync(place)


def _fill(path: bytes, content: _File) -> None:
    """Write a new file for the owner alone, dated as it was: agents and we tell by that who wrote last."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(content.data)
        file.flush()
        os.utime(handle, ns=(content.written, content.written))
        os.fsync(handle)


def _sync(directory: bytes) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
