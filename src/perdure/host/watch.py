"""Being told when a terminal is written to, when a directory's entries or a file change: inotify, one descriptor for all.

Nothing is read and nothing is polled: a key says only that it is worth a look. Keys are the caller's own.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Hashable, Iterable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Final, Generic, TypeVar

from perdure.model.text import decode, encode, visible

if TYPE_CHECKING:
    from inotify_simple import INotify

K = TypeVar("K", bound=Hashable)

# The kernel's numbers (inotify.h). The library has them too, but is there on Linux only.
_ACCESS, _MODIFY, _CLOSE_WRITE = 0x1, 0x2, 0x8
_MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x40, 0x80, 0x100, 0x200
_DELETE_SELF, _MOVE_SELF, _UNMOUNT, _OVERFLOW, _IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
_MASK_ADD = 0x20000000

_OVER = _DELETE_SELF | _MOVE_SELF | _UNMOUNT | _IGNORED
_ENTRIES = _CREATE | _DELETE | _MOVED_FROM | _MOVED_TO
_WRITES = _MODIFY | _CLOSE_WRITE
_SELF = _DELETE_SELF | _MOVE_SELF

#: What appears between looking and watching is looked for again, so many times.
_ROUNDS = 5
_LIMITS = {
    errno.ENOSPC: "The kernel allows this user no more watches (fs.inotify.max_user_watches).",
    errno.ENOMEM: "The kernel has no memory for another watch.",
}


class Everything(Enum):
    """See `EVERYTHING`."""

    EVERYTHING = "everything"


#: Stands for every key: more has happened than the kernel could remember, so all that is watched is worth a look.
EVERYTHING: Final = Everything.EVERYTHING

#: Where something is heard: the kernel's number of a watch, and the name of an entry there, b"" for the place itself.
_Spot = tuple[int, bytes]


class Watch(Generic[K]):
    """Paths that are watched, each under the key of whoever wants to know. Not for several threads at once.

    What a path is decides what counts. A terminal: something was printed there, or read that was typed. A directory: an
    entry was made, deleted, moved or written to. Anything else: it was written to, deleted, made or replaced by another, also when it, or the
    directory it belongs in, is not there yet. A terminal that is gone is no longer watched, whatever is given its name
    later; everything else is watched on under its path. Links are followed; a directory above the path's own that is
    moved away or linked elsewhere goes unnoticed.
    """

    def __init__(self, inotify: INotify) -> None:
        self._inotify = inotify
        self._heard: dict[int, dict[bytes, set[tuple[K, bytes]]]] = {}
        self._spots: dict[K, dict[bytes, frozenset[_Spot]]] = {}
        #: Why something could last not be watched, a sentence; None when everything could.
        self.refusal: str | None = None

    def fileno(self) -> int:
        """Return the descriptor that becomes readable when something happens."""
        return int(self._inotify.fileno())

    def add(self, path: str, key: K) -> bool:
        """Watch a path for a key, also beside others; again when it is already.

        False when that cannot be: a terminal is gone, a place may not be read, a limit of the kernel is reached (see
        `refusal`, `unwatched`). Then whoever wants to know has to look for themselves.
        """
        return self._settle(key, encode(path))

    def remove(self, key: K) -> None:
        """Watch nothing for a key any more; what it was told before may still come, once."""
        for path in tuple(self._spots.get(key, ())):
            self._drop(key, path)

    def has(self, key: K) -> bool:
        """Return whether something is watched for a key, or would be if it could: not for a terminal that is gone."""
        return key in self._spots

    @property
    def unwatched(self) -> frozenset[K]:
        """The keys of which something could not be watched, when it was added or since."""
        return frozenset(key for key, paths in self._spots.items() if not all(paths.values()))

    def read(self) -> set[K | Everything]:
        """Return the keys something happened for since the last time. Never waits."""
        found: set[K | Everything] = set()
        stale: set[tuple[K, bytes]] = set()
        for wd, mask, _, name in self._inotify.read(timeout=0):
            if mask & _OVERFLOW:
                found.add(EVERYTHING)
                # What had become of the watches themselves may have been among it.
                stale |= {wish for wish in self._wishes() if not _is_device(wish[1])}
                continue
            touched, moved = self._touched(wd, mask, name)
            found.update(key for key, _ in touched)
            stale |= moved
        for key, path in stale:
            if _is_device(path):
                self._drop(key, path)
            else:
                self._settle(key, path)
        return found

    def close(self) -> None:
        """Watch nothing any more."""
        self._inotify.close()

    def _wishes(self) -> Iterator[tuple[K, bytes]]:
        return ((key, path) for key, paths in self._spots.items() for path in paths)

    def _touched(self, wd: int, mask: int, name: str) -> tuple[set[tuple[K, bytes]], set[tuple[K, bytes]]]:
        """Return whom an event concerns, and who has to be watched anew because of it."""
        names = self._heard.get(wd, {})
        if mask & _OVER:
            every = {wish for wishes in names.values() for wish in wishes}
            return every, every
        # In a directory that others watch for more, a write to a file is told too; that is heard at the file itself.
        named = names.get(os.fsencode(name), set()) if name and mask & _ENTRIES else set()
        return names.get(b"", set()) | named, named

    def _settle(self, key: K, path: bytes) -> bool:
        """Watch what the path is now, and let go of what it was."""
        made: list[_Spot] = []
        try:
            made.extend(self._watched(path))  # keeps what there was when it fails half-way
        except (OSError, ValueError) as error:
            self.refusal = _sentence(path, error)
            self._release(wd for wd, _ in made)
            made = []
        else:
            if not made:
                self._drop(key, path)
                return False
        before, spots = self._spots.get(key, {}).get(path, frozenset()), frozenset(made)
        for wd, name in spots - before:
            self._heard.setdefault(wd, {}).setdefault(name, set()).add((key, path))
        self._let_go(key, path, before - spots)
        self._spots.setdefault(key, {})[path] = spots
        return bool(spots)

    def _watched(self, path: bytes) -> Iterator[_Spot]:
        """Watch a path, and yield where it is heard of; nothing for a terminal that is gone. Raises OSError.

        What holds it is watched before it: if it is replaced in between, that is heard.
        """
        for _ in range(_ROUNDS):
            mode = _mode(path)
            try:
                if mode is not None and stat.S_ISDIR(mode):
                    # In /dev/pts, kernels before 6.10 tell of every write to anybody's terminal.
                    yield self._at(path, _ENTRIES | _SELF | (0 if _is_device(path) else _WRITES)), b""
                    return
                if _is_device(path):
                    if mode is not None:
                        # What is typed at a shell without an editor of its own is printed by the kernel, which nobody is
                        # told; that the shell has read it is.
                        yield self._at(path, _MODIFY | _ACCESS | _SELF), b""
                    return
                yield from self._around(path)
                if mode is not None:
                    yield self._at(path, _WRITES | _SELF), b""
                    return
            except (FileNotFoundError, NotADirectoryError):
                continue
            if _mode(path) is None:
                return

    def _around(self, path: bytes) -> Iterator[_Spot]:
        """Watch for entries of this name, where a link leads too; in the nearest directory there is."""
        for place in {path, os.path.realpath(path)}:
            directory, name = os.path.split(place)
            while not os.path.isdir(directory) and directory not in (b"/", b""):
                directory, name = os.path.split(directory)
            yield self._at(directory, _ENTRIES | _SELF), name

    def _at(self, path: bytes, mask: int) -> int:
        # Added to what others want of the same place: the kernel keeps one watch for each.
        return int(self._inotify.add_watch(path, mask | _MASK_ADD))

    def _drop(self, key: K, path: bytes) -> None:
        paths = self._spots.get(key, {})
        self._let_go(key, path, paths.pop(path, frozenset()))
        if not paths:
            self._spots.pop(key, None)

    def _let_go(self, key: K, path: bytes, spots: Iterable[_Spot]) -> None:
        for wd, name in spots:
            names = self._heard.get(wd, {})
            names.get(name, set()).discard((key, path))
            if not names.get(name):
                names.pop(name, None)
            if not names:
                self._heard.pop(wd, None)
        self._release(wd for wd, _ in spots)

    def _release(self, numbers: Iterable[int]) -> None:
        """Tell the kernel about watches nobody is left for. It never gives a number out again."""
        for wd in set(numbers):
            if wd not in self._heard:
                try:
                    self._inotify.rm_watch(wd)
                except OSError:
                    pass  # what was watched is gone, and its watch with it


def watch() -> Watch[K] | None:
    """Begin to watch; None where the kernel has no inotify, or none left for this user: then there is only looking."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        from inotify_simple import INotify

        return Watch(INotify(nonblocking=True))
    except (ImportError, OSError, AttributeError):
        # EMFILE: fs.inotify.max_user_instances; AttributeError: a C library without it.
        return None


def _is_device(path: bytes) -> bool:
    return path.startswith(b"/dev/")


def _sentence(path: bytes, error: OSError | ValueError) -> str:
    limit = _LIMITS.get(error.errno or 0) if isinstance(error, OSError) else None
    return limit or f"{visible(decode(path))} cannot be watched: {getattr(error, 'strerror', None) or error}."


def _mode(path: bytes) -> int | None:
    try:
        return os.stat(path).st_mode
    except (OSError, ValueError):
        return None
