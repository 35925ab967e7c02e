"""Printing into the terminals of other processes, many at a time.

To have a pane print a file takes a program that is started, loaded and ended, for every pane; one process that writes to
all their terminals takes a fraction of that. On Linux only: elsewhere nothing is printed, and panes do it themselves.
"""

from __future__ import annotations

import os
import re
import selectors
import stat
import sys
from collections.abc import Iterator, Mapping
from time import monotonic

from msgspec import Struct

from perdure.model.text import encode

#: Terminals that are written to at the same time: each is an open file.
_AT_ONCE = 64
#: Beside a longer text the start of a program is nothing.
_LONGEST = 1 << 18
#: How long all of it may take, in seconds, …
_PATIENCE = 10.0
#: … and how long it may go on without any terminal taking anything.
_STILLNESS = 1.0
_PATH = re.compile(r"/dev/pts/[0-9]+")


class Terminal(Struct, frozen=True, kw_only=True):
    """A terminal, and a process that has it as its standard output."""

    path: str
    pid: int


def print_files(files: Mapping[str, Terminal]) -> None:
    """Print files of ours into terminals of ours, and empty each file once its terminal has taken all of it.

    A file that is not empty afterwards was printed in part, or not at all: it is long, or its terminal is gone, takes
    nothing, or is not certainly the one that was meant. None of these is an error.
    """
    if sys.platform.startswith("linux"):
        with selectors.DefaultSelector() as selector:
            _Printer(selector, iter(files.items())).run()


class _Text:
    """What is left of a file on its way into a terminal."""

    def __init__(self, path: str, content: bytes) -> None:
        self._path = path
        self.left = memoryview(content)

    def go_on(self, terminal: int) -> bool:
        """Write as much as the terminal takes; say whether there is more to come."""
        try:
            self.left = self.left[os.write(terminal, self.left) :]
            if not self.left:
                os.truncate(encode(self._path), 0)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return bool(self.left)


class _Printer:
    def __init__(self, selector: selectors.BaseSelector, files: Iterator[tuple[str, Terminal]]) -> None:
        self._selector = selector
        self._files = files
        self._under_way: dict[int, _Text] = {}

    def run(self) -> None:
        deadline, took_at = monotonic() + _PATIENCE, monotonic()
        try:
            while self._has_some() and monotonic() < min(deadline, took_at + _STILLNESS):
                if self._go_on():
                    took_at = monotonic()
        finally:
            for terminal in list(self._under_way):
                self._close(terminal)

    def _go_on(self) -> bool:
        """Wait for terminals that take something, and write to them; say whether any took it."""
        took = False
        for key, _ in self._selector.select(_STILLNESS):
            text = self._under_way[key.fd]
            # One with room for a character may still not take the end of a line, which is two.
            before = len(text.left)
            if not text.go_on(key.fd):
                self._close(key.fd)
            took = took or len(text.left) < before
        return took

    def _has_some(self) -> bool:
        """Open as many as may be written to; say whether there are any."""
        while len(self._under_way) < _AT_ONCE and (file := next(self._files, None)) is not None:
            path, terminal = file
            content = _read(path)
            fd = _open(terminal) if content else None
            if fd is not None:
                self._under_way[fd] = _Text(path, content)
                self._selector.register(fd, selectors.EVENT_WRITE)
        return bool(self._under_way)

    def _close(self, fd: int) -> None:
        del self._under_way[fd]
        self._selector.unregister(fd)
        os.close(fd)


def _read(path: str) -> bytes:
    """Return what is in a file, b"" when it cannot be read or is long."""
    try:
        fd = os.open(encode(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return b""
    with open(fd, "rb") as file:
        content = file.read(_LONGEST + 1)
    return content if len(content) <= _LONGEST else b""


def _open(terminal: Terminal) -> int | None:
    """Open a terminal for writing; None unless it is ours, and the very one its process has.

    The number of one that is gone is given to the next, and there may be another of the same name where a process
    has a `/dev` of its own. For as long as it is open here, its number is nobody else's.
    """
    if not _PATH.fullmatch(terminal.path):
        return None
    flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        fd = os.open(terminal.path, flags)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        is_meant = os.path.samestat(found, os.stat(f"/proc/{terminal.pid}/fd/1"))
        if is_meant and stat.S_ISCHR(found.st_mode) and found.st_uid == os.geteuid() and os.isatty(fd):
            return fd
    except OSError:
        pass  # the process is gone, or does not let us see
    os.close(fd)
    return None
