"""The scratch directory of a restore: what its panes print, where they wait, and how what they ran has ended.

`<state dir>/restores/<id>/` belongs to the user whose panes these are. For step n it holds `<n>.text`, `<n>.gate`
and `<n>.status`.

A gate is a FIFO, and a pane waits for as long as it is there. To open it is to rename it to `<n>.open`, write a line
into it, and remove it. The pane opens the gate first and looks for it then (tmux/wrap.py): when it was renamed
before the look, the pane goes on; when after, the line follows. Whoever opens gates may die between any two of these:
a gate that is still there, or is called `open`, is opened by the next who is asked to.

`0.hold` is another FIFO, and panes print nothing for as long as somebody could write to it. Nobody ever does: whoever
holds the panes back closes it, or ends, and the kernel tells all of them. Meanwhile the holder may print their texts for
them, and empties each that is printed to its end. `0.begun` is there from before the first of these: when a text is not
empty after the hold, part of it may be in the pane, which then clears what it shows before it prints all of it.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from enum import StrEnum

from perdure.errors import PerdureError
from perdure.host.directories import make_private
from perdure.host.terminals import Terminal, print_files
from perdure.host.users import run_as
from perdure.model.text import decode, encode
from perdure.model.user import User

_ID = re.compile(r"[0-9A-Za-z_-]+")
# What `echo` wrote, its newline included: without it the number may not be whole.
_NUMBER = re.compile(rb"([0-9]{1,3})\n")
_NUMBER_LIMIT = 16


class Kind(StrEnum):
    """What a file of the scratch directory is."""

    TEXT = "text"
    GATE = "gate"
    #: A gate on its way out.
    OPEN = "open"
    STATUS = "status"
    #: Variables for a program that nobody else may read: a name in one line, its value in the next.
    PRIVATE = "private"
    #: A text that is not whole yet.
    NEW = "new"
    #: While somebody has it open for writing, panes do not print their texts.
    HOLD = "hold"
    #: Whoever held panes back has begun to print their texts for them.
    BEGUN = "begun"


_NAME = re.compile(rf"([0-9]+)\.({'|'.join(Kind)})")


class Scratch:
    """The scratch directory of one restore. Everything is done as `user`, by root too: no link of a user leads us astray."""

    def __init__(self, state_dir: str, id: str, user: User) -> None:
        if not _ID.fullmatch(id):
            raise ValueError(f"not the id of a restore: {id!r}")
        self.directory = os.path.join(state_dir, "restores", id)
        self._user = user

    def path(self, n: int, kind: Kind) -> str:
        """Return where a file of step `n` lies, or would."""
        return os.path.join(self.directory, f"{n}.{kind}")

    def prepare(
        self, files: Mapping[int, bytes], gates: Collection[int], private: Mapping[int, Mapping[str, str]] | None = None
    ) -> None:
        """Make the directory with the texts, gates and private variables of these steps, for this user's eyes only.

        A pane started afterwards finds them. What is there already is left as it is: a text may have been printed,
        and somebody may wait at a gate. A gate that was opened is made anew, so only those of panes that are still to
        be made may be asked for. Raises PerdureError when they cannot be made.
        """
        if reason := self._as_user(lambda: self._prepare(files, gates, private or {})):
            raise PerdureError(f"{self.directory} cannot be made: {reason.decode()}.")

    @contextmanager
    def held_back(self) -> Iterator[bool]:
        """Let no pane print its text and start its shell before the block is left, or this process ends.

        Two hundred starting shells leave little of a machine to whoever makes them. Where it cannot be done, as for
        another user, nobody waits, and the block is handed False.
        """
        hold = self._hold() if os.geteuid() == self._user.uid else None
        try:
            yield hold is not None
        finally:
            if hold is not None:
                with suppress(OSError):
                    os.unlink(encode(self.path(0, Kind.HOLD)))
                os.close(hold)

    def _hold(self) -> int | None:
        path = encode(self.path(0, Kind.HOLD))
        try:
            with suppress(FileExistsError):
                os.mkfifo(path, 0o600)
            return os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None

    def print_into(self, terminals: Mapping[int, Terminal]) -> None:
        """Print the texts of these steps for their panes, which are held back. What is not printed they print themselves.

        Only where `held_back` says True. Each text is in its pane once, whenever this process ends.
        """
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            os.close(os.open(encode(self.path(0, Kind.BEGUN)), flags, 0o600))
            print_files({self.path(n, Kind.TEXT): terminal for n, terminal in terminals.items()})

    def release(self, *steps: int) -> None:
        """Let the panes of these steps go on. Nothing happens where that was done, or there is no such gate.

        Once this has returned, no pane waits at these gates, and none will.
        """
        self._as_user(lambda: self._release(steps))

    def forget(self, *steps: int) -> None:
        """Remove the texts and statuses of steps whose panes are gone, before they are made anew."""
        self._as_user(lambda: _forget(self.directory, steps))

    def waiting(self) -> set[int]:
        """Return the steps whose gate is there, whether or not a pane waits at it."""
        return {n for n, kind, _ in self._look() if kind in (Kind.GATE, Kind.OPEN)}

    def unprinted(self) -> set[int]:
        """Return the steps whose text no pane has printed to its end."""
        return {n for n, kind, _ in self._look() if kind == Kind.TEXT}

    def statuses(self) -> Mapping[int, int]:
        """Return how programs have ended: with an exit status, or 128 and the number of a signal."""
        return {n: value for n, kind, value in self._look() if kind == Kind.STATUS}

    def remove(self) -> None:
        """Remove what is ours in the directory, and the directory when nothing else is in it.

        A gate at which a pane waits is left: taking it away would let that pane go. So are variables that a program has
        not taken yet. What cannot be removed stays.
        """
        self._as_user(lambda: _remove(self.directory, without=Kind.PRIVATE))

    def _as_user(self, work: Callable[[], object]) -> bytes:
        return _as_user(self._user, work)

    def _prepare(
        self, files: Mapping[int, bytes], gates: Collection[int], private: Mapping[int, Mapping[str, str]]
    ) -> bytes:
        """Return what went wrong, b"" for nothing: an exception would not leave the process that is another user's."""
        try:
            make_private(encode(self.directory))
            with _opened(self.directory) as directory:
                for n, content in files.items():
                    _write(directory, n, Kind.TEXT, content)
                for n, variables in private.items():
                    _write(directory, n, Kind.PRIVATE, _lines(variables))
                for n in gates:
                    _make_gate(directory, n)
        except OSError as error:
            return (error.strerror or str(error)).encode()
        return b""

    def _release(self, steps: Collection[int]) -> None:
        with suppress(FileNotFoundError), _opened(self.directory) as directory:
            for n in steps:
                _open_gate(directory, n, Kind.OPEN)
                _open_gate(directory, n, Kind.GATE)

    def _look(self) -> list[tuple[int, Kind, int]]:
        lines = self._as_user(lambda: _describe(self.directory)).decode("ascii").splitlines()
        words = (line.split(" ") for line in lines)
        return [(int(n), Kind(kind), int(value)) for n, kind, value in words]


def remove_stale(state_dir: str, user: User, *, keep: Collection[str], older_than: timedelta, now: datetime) -> None:
    """Remove the scratch directories of restores nobody goes on with: not among `keep`, and untouched for a while.

    Nothing here is worth failing for: what cannot be removed stays, and so does a gate at which a pane waits.
    """

    def work() -> None:
        root = os.path.join(state_dir, "restores")
        with suppress(OSError), os.scandir(encode(root)) as entries:
            for entry in entries:
                id = decode(entry.name)
                if id in keep or not _ID.fullmatch(id) or not entry.is_dir(follow_symlinks=False):
                    continue
                with suppress(OSError):
                    if now.timestamp() - entry.stat(follow_symlinks=False).st_mtime > older_than.total_seconds():
                        _remove(os.path.join(root, id))

    _as_user(user, work)


def _as_user(user: User, work: Callable[[], object]) -> bytes:
    def answer() -> bytes:
        done = work()
        return done if isinstance(done, bytes) else b""

    return answer() if os.geteuid() == user.uid else run_as(user, answer)


@contextmanager
def _opened(directory: str) -> Iterator[int]:
    """Hold a directory open, so that all that is done in it is done in the same one; a link is refused."""
    handle = os.open(encode(directory), os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield handle
    finally:
        os.close(handle)


def _lines(variables: Mapping[str, str]) -> bytes:
    """Two lines for each variable; a value of several lines cannot be said, and is left out."""
    pairs = (f"{name}\n{value}\n" for name, value in variables.items() if "\n" not in value)
    return encode("".join(pairs))


def _write(directory: int, n: int, kind: Kind, content: bytes) -> None:
    if _status(directory, f"{n}.{kind}") is not None:
        return
    new = f"{n}.{Kind.NEW}"
    with suppress(FileNotFoundError):
        os.unlink(new, dir_fd=directory)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with open(os.open(new, flags, 0o600, dir_fd=directory), "wb") as file:
        file.write(content)
    # A pane never finds half a text.
    os.rename(new, f"{n}.{kind}", src_dir_fd=directory, dst_dir_fd=directory)


def _make_gate(directory: int, n: int) -> None:
    # One that is half open is to be opened, not to be replaced: somebody may wait at it.
    if _status(directory, f"{n}.{Kind.OPEN}") is None:
        with suppress(FileExistsError):
            os.mkfifo(f"{n}.{Kind.GATE}", 0o600, dir_fd=directory)


def _open_gate(directory: int, n: int, kind: Kind) -> None:
    name, opening = f"{n}.{kind}", f"{n}.{Kind.OPEN}"
    try:
        # Read and write: neither waits for the pane, nor fails when it is not there.
        gate = os.open(name, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISFIFO(os.fstat(gate).st_mode):
            return
        # Another may be doing the same: whoever comes second finds less to do.
        with suppress(FileNotFoundError):
            os.rename(name, opening, src_dir_fd=directory, dst_dir_fd=directory)
        with suppress(BlockingIOError):
            os.write(gate, b"\n")
        with suppress(FileNotFoundError):
            os.unlink(opening, dir_fd=directory)
    finally:
        os.close(gate)


def _describe(path: str) -> bytes:
    """Return a line `n kind value` for everything there is to know: gates, texts to be printed, statuses."""
    lines = []
    with suppress(FileNotFoundError), _opened(path) as directory:
        for name, n, kind in _ours(directory):
            found = _status(directory, name)
            if found is None:
                continue
            if kind in (Kind.GATE, Kind.OPEN) and stat.S_ISFIFO(found.st_mode):
                lines.append(f"{n} {kind} 0")
            elif kind == Kind.TEXT and found.st_size:
                lines.append(f"{n} {kind} {found.st_size}")
            elif kind == Kind.STATUS and (value := _read_number(directory, name)) is not None:
                lines.append(f"{n} {kind} {value}")
    return "\n".join(lines).encode("ascii")


def _ours(directory: int) -> list[tuple[str, int, Kind]]:
    matches = map(_NAME.fullmatch, os.listdir(directory))
    return [(match[0], int(match[1]), Kind(match[2])) for match in matches if match]


def _status(directory: int, name: str) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _read_number(directory: int, name: str) -> int | None:
    """Return the number in a file, None while it is being written."""
    try:
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return None
    try:
        match = _NUMBER.fullmatch(os.read(handle, _NUMBER_LIMIT))
    except OSError:
        return None
    finally:
        os.close(handle)
    return int(match[1]) if match else None


def _remove(path: str, without: Kind | None = None) -> None:
    with suppress(OSError):
        with _opened(path) as directory:
            for name, _, kind in _ours(directory):
                if kind in (Kind.GATE, Kind.OPEN) and _has_reader(directory, name):
                    continue
                if kind == without and (found := _status(directory, name)) is not None and found.st_size:
                    continue
                with suppress(OSError):
                    os.unlink(name, dir_fd=directory)
        os.rmdir(encode(path))


def _forget(path: str, steps: Collection[int]) -> None:
    with suppress(FileNotFoundError), _opened(path) as directory:
        for n in steps:
            for kind in (Kind.TEXT, Kind.STATUS):
                with suppress(FileNotFoundError):
                    os.unlink(f"{n}.{kind}", dir_fd=directory)


def _has_reader(directory: int, name: str) -> bool:
    """Say whether a pane waits at a gate: only then can it be opened for writing alone."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISFIFO(found.st_mode):
            return False
        os.close(os.open(name, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory))
    except OSError as error:
        return error.errno != errno.ENXIO and not isinstance(error, FileNotFoundError)
    return True
