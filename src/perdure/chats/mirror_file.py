"""The file of one chat in a mirror: what is known of it, and bringing it up to what the store says."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from perdure import errors
from perdure.chats.followed import FollowedStore
from perdure.chats.legacy import line_of
from perdure.host.regular import open_regular
from perdure.model.chat import Chat, Transcript, Turn
from perdure.model.digest import digest_of
from perdure.store.files import write_atomically

#: How many turns a file is compared with at once.
_PIECE = 500


class MirrorFile(Struct, frozen=True, array_like=True):
    """What a chat's file holds."""

    #: Its bytes; -1 while it is being written, or nobody knows what it holds.
    size: int = -1
    next: int = 1
    turns: int = 0
    #: When the chat was last used by then: what earlier versions compare, which may keep the same mirror.
    touched_at: datetime | None = None
    #: Where the chat went on by then; 0 where an earlier version wrote this.
    place: int = 0
    #: The position of the last turn in it, and by what that is known again; None where an earlier version wrote this.
    last: int = 0
    mark: str | None = None


def size_of(path: str) -> int:
    """Return how long a file is; -1 for what is not there, or no regular file."""
    try:
        found = os.lstat(path)
    except OSError:
        return -1
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


def bring_up_to_date(
    path: str, file: MirrorFile, store: FollowedStore, chat: Chat, place: int, *, closely: bool
) -> tuple[MirrorFile, bool]:
    """Let the file at `path` hold what was said in a chat; return what it holds then, and whether anything was written.

    One that only got longer is appended to, any other is replaced whole. What it is known to hold is relied on where its
    length and the last turn in it agree; with `closely` every byte is compared.
    """
    found, is_known = None, file.size >= 0 and size_of(path) == file.size
    try:
        if closely or file.mark is None:
            found = _compared(path, store, chat, place)
        elif is_known:
            found = _grown(path, file, store, chat, place)
    except errors.ChatDamaged:
        if closely or file.mark is not None or not is_known:
            raise
        # An earlier version has not noted enough to do without what cannot be read.
        found = _grown(path, file, store, chat, place)
    if found is not None:
        return found
    # Something was taken back or replaced, or the file says something else.
    whole = store.load_turns(chat.id)
    content = _content(whole.turns)
    write_atomically(path, content)
    held = MirrorFile(len(content), whole.next, len(whole.turns), chat.touched_at, place, *_end(whole.turns))
    return held, True


def _grown(path: str, file: MirrorFile, store: FollowedStore, chat: Chat, place: int) -> tuple[MirrorFile, bool] | None:
    """The same for one that can only have got longer; None where it is not so, and nothing was done."""
    further = _further(file, store, chat.id)
    if further is None:
        return None
    turns = file.turns + len(further.turns)
    if turns != store.get_chat(chat.id).turns or further.next - file.next != len(further.turns):
        return None
    added = _content(further.turns)
    if added:
        _append(path, added)
    end = _end(further.turns) if further.turns else (file.last, file.mark)
    return MirrorFile(file.size + len(added), further.next, turns, chat.touched_at, place, *end), bool(added)


def _further(file: MirrorFile, store: FollowedStore, id: str) -> Transcript | None:
    """What was said behind what a file holds; None where something else stands where its last turn was."""
    try:
        found = store.load_turns(id, start=max(1, file.last))
    except errors.ChatDamaged:
        # There may be nothing to compare with any more: what can be read behind it is not held up by that.
        return store.load_turns(id, start=file.next)
    if not file.turns:
        return found
    if _end(found.turns[:1]) != (file.last, file.mark):
        return None
    return Transcript(chat=id, turns=found.turns[1:], next=found.next, missing=found.missing)


def _compared(path: str, store: FollowedStore, chat: Chat, place: int) -> tuple[MirrorFile, bool] | None:
    """The same, with every byte compared; None where the file does not begin as what was said does, and nothing was done."""
    if size_of(path) < 0:
        return None
    size = turns = 0
    start, end, is_longer = 1, _end(()), False
    with open_regular(path) as file:
        while True:
            # In pieces: a chat may be very long.
            part = store.load_turns(chat.id, start=start, limit=_PIECE)
            content = _content(part.turns)
            held = b"" if is_longer else file.read(len(content))
            if not content.startswith(held):
                return None
            if len(held) < len(content):
                _append(path, content[len(held) :])
                is_longer = True
            size, turns = size + len(content), turns + len(part.turns)
            end = _end(part.turns) if part.turns else end
            start = end[0] + 1
            if len(part.turns) < _PIECE:
                break
        if not is_longer and file.read(1):
            return None
    return MirrorFile(size, part.next, turns, chat.touched_at, place, *end), is_longer


def _end(turns: Sequence[Turn]) -> tuple[int, str]:
    """The position of the last of some turns, and by what it is known again."""
    return (turns[-1].position, digest_of(line_of(turns[-1]), 8)) if turns else (0, "")


def _content(turns: Sequence[Turn]) -> bytes:
    return b"".join(map(line_of, turns))


def _append(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(handle, "ab") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)
