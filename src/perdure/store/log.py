"""The log of an SQLite database: how far SQLite reads it, and what was committed behind that.

SQLite stops at the first frame whose sum is not right, says nothing, and takes what stands behind it for what a crash
has left half written. So one flipped bit in the midst of a log costs all that was committed after it, with the very
next write or the next one who closes the database. Here the rest is noticed before anybody opens it, and read back.

Every frame's sum goes on from that of the frame before. Behind a place at which that breaks off, frames that go on from
a commit to another one were written after that commit was acknowledged: no crash leaves those.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from struct import Struct
from typing import BinaryIO, NamedTuple

#: What it is, the version, the size of a page, how often it was begun anew, two salts, and the sum of all that.
_HEADER = Struct(">8I")
#: The number of a page, how many pages there are after a commit (else 0), the salts of the header, the sum up to here.
_FRAME = Struct(">6I")
#: In which order the bytes of a word are summed up.
_ORDERS = {0x377F0682: "<", 0x377F0683: ">"}
_VERSION, _PAGE = 3007000, 4096
_WORD = 0xFFFFFFFF

_Sum = tuple[int, int]


class _Head(NamedTuple):
    """How a log begins."""

    #: Whether its sum is right: else SQLite reads nothing of it.
    is_right: bool
    order: str
    page: int
    salts: tuple[int, int] | None
    sum: _Sum


class _Frame(NamedTuple):
    """A page that was written."""

    page: int
    pages: int
    #: Whether it is of this log, and not of the one that was here before.
    is_ours: bool
    #: Whether its sum goes on from that of the frame before.
    is_linked: bool
    body: bytes


def is_broken(log: str) -> bool:
    """Return whether SQLite would read less of a log than was certainly committed. A log that is not there is whole."""
    try:
        with open(log, "rb") as file:
            readable, certain = _reach(file)
    except OSError:
        return False
    return certain > readable


def relink(log: str) -> None:
    """Let SQLite read a log up to the last commit that is certain, whatever its sums say. Raises OSError."""
    made = f"{log}.made"
    with open(log, "rb") as file:
        _, certain = _reach(file)
        file.seek(0)
        head = _head(file)
        salts = head.salts or (1, 1)
        start = _HEADER.pack(0x377F0682, _VERSION, head.page, 0, *salts, 0, 0)[:24]
        sum = _summed(start, "<", (0, 0))
        with open(made, "wb") as new:
            new.write(start + _sum_bytes(sum))
            for count, frame in enumerate(_frames(file, head), 1):
                if count > certain:
                    break
                # One that was never written says nothing of any page.
                if frame.page:
                    begun = _FRAME.pack(frame.page, frame.pages, *salts, 0, 0)[:16]
                    sum = _summed(frame.body, "<", _summed(begun[:8], "<", sum))
                    new.write(begun + _sum_bytes(sum) + frame.body)
    os.replace(made, log)


def _reach(file: BinaryIO) -> tuple[int, int]:
    """How many frames SQLite reads, and up to which one all was certainly committed."""
    head = _head(file)
    is_whole, follows = head.is_right, False
    readable = certain = 0
    for count, frame in enumerate(_frames(file, head), 1):
        is_next = frame.is_ours and frame.is_linked
        is_whole = is_whole and is_next
        follows = follows and is_next
        if frame.pages and is_whole:
            readable = certain = count
        elif frame.pages and follows:
            certain = count
        elif frame.pages and frame.is_ours and not is_whole:
            # Maybe a crash left it; what goes on from here to another is left by none.
            follows = True
    return readable, certain


def _head(file: BinaryIO) -> _Head:
    raw = file.read(_HEADER.size)
    if len(raw) < _HEADER.size:
        return _Head(False, "<", _PAGE, None, (0, 0))
    kind, _, page, _, *salts, first, second = _HEADER.unpack(raw)
    order = _ORDERS.get(kind, "<")
    is_right = kind in _ORDERS and _summed(raw[:24], order, (0, 0)) == (first, second)
    if is_right:
        return _Head(True, order, page, (salts[0], salts[1]), (first, second))
    # The frames say the same salts; a database of ours has pages of one size.
    begun = file.read(_FRAME.size)
    file.seek(_HEADER.size)
    found = _FRAME.unpack(begun)[2:4] if len(begun) == _FRAME.size else None
    return _Head(False, order, _PAGE, found, (first, second))


def _frames(file: BinaryIO, head: _Head) -> Iterator[_Frame]:
    before = head.sum
    while len(raw := file.read(_FRAME.size + head.page)) == _FRAME.size + head.page:
        page, pages, *salts, first, second = _FRAME.unpack_from(raw)
        body = raw[_FRAME.size :]
        sum = _summed(body, head.order, _summed(raw[:8], head.order, before))
        yield _Frame(page, pages, tuple(salts) == head.salts, sum == (first, second), body)
        before = first, second


def _summed(raw: bytes, order: str, sum: _Sum) -> _Sum:
    """The sum of some bytes, going on from another."""
    first, second = sum
    words = iter(Struct(f"{order}{len(raw) // 4}I").unpack(raw))
    for one, other in zip(words, words, strict=True):
        first = (first + one + second) & _WORD
        second = (second + other + first) & _WORD
    return first, second


def _sum_bytes(sum: _Sum) -> bytes:
    return sum[0].to_bytes(4, "big") + sum[1].to_bytes(4, "big")
