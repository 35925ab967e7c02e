"""An order as it lies in a job's directory: what the supervisor needs to start the command, and nothing else.

Words with a NUL between them, as the kernel itself hands them over: no word can have one in it, every other byte is
kept, and reading it needs no module. The last word is always the same, so that a part is never taken for the whole.

Only the standard library, and as little of it as possible: supervisors run this by the hundred (see `foreman`).
"""

from __future__ import annotations

_FIRST, _LAST = b"perdure order 1", b"that is all"
_FIELDS = 9


class Sheet:
    """What is to be run, in bytes. `rows` is 0 for a job without a terminal."""

    __slots__ = ("argv", "boot", "cap", "columns", "cwd", "env", "rows", "umask")

    def __init__(
        self,
        *,
        boot: bytes,
        umask: int,
        cap: int,
        rows: int,
        columns: int,
        cwd: bytes,
        argv: list[bytes],
        env: dict[bytes, bytes],
    ) -> None:
        self.boot, self.umask, self.cap, self.rows, self.columns = boot, umask, cap, rows, columns
        self.cwd, self.argv, self.env = cwd, argv, env


def pack(sheet: Sheet) -> bytes:
    """Return an order as it is written down. ValueError for words no program can be given."""
    numbers = [b"%d" % number for number in (sheet.umask, sheet.cap, sheet.rows, sheet.columns, len(sheet.argv))]
    pairs = [name + b"=" + value for name, value in sheet.env.items()]
    words = [_FIRST, sheet.boot, *numbers, sheet.cwd, *sheet.argv, *pairs, _LAST]
    if any(b"\0" in word for word in words):
        raise ValueError("a NUL in a word")
    if not sheet.argv or any(not name or b"=" in name for name in sheet.env):
        raise ValueError("no command, or a variable without a name")
    return b"\0".join(words)


def unpack(raw: bytes) -> Sheet | None:
    """Return an order that was written down; None for what is none, or not whole."""
    words = raw.split(b"\0")
    if len(words) < _FIELDS or words[0] != _FIRST or words[-1] != _LAST:
        return None
    try:
        umask, cap, rows, columns, count = map(int, words[2:7])
    except ValueError:
        return None
    if not 0 < count <= len(words) - _FIELDS:
        return None
    pairs = [word.partition(b"=") for word in words[8 + count : -1]]
    return Sheet(
        boot=words[1],
        umask=umask,
        cap=cap,
        rows=rows,
        columns=columns,
        cwd=words[7],
        argv=words[8 : 8 + count],
        env={name: value for name, _, value in pairs},
    )


def read(directory: bytes) -> Sheet | None:
    """Return the order in a job's directory; None when there is none, or not a whole one."""
    try:
        with open(directory + b"/order", "rb", 0) as file:
            return unpack(file.read())
    except OSError:
        return None
