"""A chat as JSON lines: everything that is known of it in the first, then a turn in each. What was written comes back the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import msgspec
from msgspec import Struct

from perdure.errors import ImportFailed
from perdure.host.regular import open_regular
from perdure.model.chat import Chat, Transcript, Turn
from perdure.model.chat_import import Incoming, Mishap, Words
from perdure.store.chat_rows import SPAN, decoded_as, encoded
from perdure.store.rows import UNREADABLE

VERSION = 1
_KIND = "chat"


class Head(Struct, frozen=True, kw_only=True):
    """The first line of such a file."""

    #: What the file is, and in which shape.
    perdure: str
    version: int
    chat: Chat
    #: The position the next turn would have had.
    next: int
    #: How many turns follow.
    lines: int
    #: At how many positions something was lost before it was written.
    missing: int = 0


class _Shape(Struct, frozen=True, kw_only=True):
    """As much of a first line as every version has."""

    perdure: str
    version: int


def lines_of(chat: Chat, transcript: Transcript) -> Iterator[bytes]:
    """Yield a chat and what was said in it, line by line, each with its end."""
    turns = transcript.turns
    shown = sum(not turn.hidden for turn in turns)
    counted = msgspec.structs.replace(chat, turns=shown)
    head = Head(
        perdure=_KIND,
        version=VERSION,
        chat=counted,
        next=transcript.next,
        lines=len(turns),
        missing=transcript.missing,
    )
    yield encoded(head) + b"\n"
    for turn in turns:
        yield encoded(turn) + b"\n"


def is_export(first_line: bytes) -> bool:
    """Return whether a file that begins with this line is one of these, of whichever version."""
    try:
        return decoded_as(_Shape, first_line).perdure == _KIND
    except UNREADABLE:
        return False


def read_export(path: str) -> Incoming:
    """Return the chat of such a file. Raises `ImportFailed` when its first line cannot be read, or is of a later version.

    A line that cannot be read costs only itself; lines that are missing at the end are said to be.
    """
    try:
        with open_regular(path) as file:
            head = _head(file.readline(), path)
    except OSError as error:
        raise _unreadable(path, error) from error
    chat = head.chat
    return Incoming(
        id=chat.id,
        where=path,
        opened_at=chat.opened_at,
        touched_at=chat.touched_at,
        closed_at=chat.closed_at,
        close_reason=chat.close_reason,
        is_current=chat.is_open,
        read=partial(_read, head, path),
        own=chat,
    )


def words_of(head: Head, lines: Iterable[bytes], where: str) -> Words:
    """Return what was said, from the lines behind the first."""
    turns: list[Turn] = []
    mishaps: list[Mishap] = []
    last, number = 0, 1
    for number, line in enumerate(lines, 2):
        try:
            turn = decoded_as(Turn, line)
            if not last < turn.position < SPAN - 1:
                raise ValueError("it is out of place")
        except UNREADABLE:
            mishaps.append(Mishap(where=f"{where}:{number}", what="it is no turn that could stand there"))
            continue
        last = turn.position
        turns.append(turn)
    missing = head.lines - (number - 1)
    if missing > 0:
        mishaps.append(Mishap(where=where, what=f"{missing} of {head.lines} turns are missing at its end"))
    if head.missing > 0:
        mishaps.append(
            Mishap(where=where, what=f"something was missing at {head.missing} of its positions when it was written")
        )
    # Whatever is missing may come with a later import, behind what is here.
    is_whole = not mishaps and last < head.next < SPAN
    return Words(turns=tuple(turns), next=head.next if is_whole else None, mishaps=tuple(mishaps))


def _read(head: Head, path: str) -> Words:
    try:
        with open_regular(path) as file:
            file.readline()
            return words_of(head, file, path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _head(line: bytes, where: str) -> Head:
    try:
        if decoded_as(_Shape, line).version > VERSION:
            raise ImportFailed(f"{where} was written by a newer perdure than this one; it was left alone.", path=where)
        return decoded_as(Head, line)
    except UNREADABLE as error:
        raise ImportFailed(f"{where} does not begin with a chat that can be read.", path=where) from error


def _unreadable(path: str, error: OSError) -> ImportFailed:
    return ImportFailed(f"{path} cannot be read: {error.strerror or error}.", path=path)
