"""The chats as earlier programs keep them: `sessions.json` and a JSONL file for each, for tools that read those.

It is made from the store and never read back: whatever is wrong with it is made anew. Files that are not ours are left
alone. Several processes may keep the same mirror: one at a time is at it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from perdure import errors
from perdure.chats.key import is_safe_id, legacy_key_of
from perdure.chats.source import source_dict
from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.model.chat import Chat, Turn
from perdure.model.config import ChatKeysConfig
from perdure.model.decoding import decoder_of
from perdure.ports import ChatStore
from perdure.store.files import locked, private_directory, write_atomically

INDEX, ENDING = "sessions.json", ".jsonl"
#: What we know of our files: without it, files that are there are somebody else's.
NOTES = ".perdure-mirror.json"
#: How far the clocks of those who write to one store may be apart.
_APART = timedelta(hours=1)


class _File(Struct, frozen=True, array_like=True):
    """What a chat's file holds."""

    #: Its bytes; -1 while it is being written.
    size: int = -1
    next: int = 1
    turns: int = 0
    #: When the chat was last used by then.
    touched_at: datetime | None = None


class _Notes(Struct, frozen=True, kw_only=True):
    files: dict[str, _File] = {}
    #: Those that were open.
    open: frozenset[str] = frozenset()
    #: When a chat was last used, of all that are written.
    seen: datetime | None = None


class Mirrored(Struct, frozen=True, kw_only=True):
    """What came of bringing a mirror up to date."""

    #: The ids of the chats whose files were written.
    written: tuple[str, ...] = ()
    #: Those whose files are gone because the chats are.
    removed: tuple[str, ...] = ()
    #: One sentence for each that could not be written; it is tried again the next time.
    failures: tuple[str, ...] = ()


def mirror_in(directory: str, store: ChatStore, keys: ChatKeysConfig, *, state_dir: str) -> Mirror:
    """Return the mirror of a store. Raises `UsageError` for the directory everything else is kept in."""
    if os.path.realpath(directory) == os.path.realpath(state_dir):
        raise errors.UsageError(
            f"The mirror needs a directory of its own, and {directory} is where perdure keeps its state."
        )
    return Mirror(store, directory, keys)


class Mirror:
    """A directory that follows a store."""

    def __init__(
        self, store: ChatStore, directory: str, keys: ChatKeysConfig, *, aliases: Aliases = NO_ALIASES
    ) -> None:
        self.directory = directory
        self._store = store
        self._keys = keys
        self._aliases = aliases

    def catch_up(self, *, everything: bool = False, forgotten: Collection[str] = ()) -> Mirrored:
        """Bring the files up to date with the store; with `everything` look at every chat, however long unused.

        The files of chats that are said to be forgotten go, unless these are there after all; with `everything` those of
        all that are not there. Else none goes: after a loss the file may be all that is left of a chat. A chat that
        cannot be written costs only itself. Raises `Refused` when the directory holds a `sessions.json` that is not ours,
        and `PerdureError` when it cannot be written at all.
        """
        try:
            private_directory(self.directory)
            with locked(self.directory):
                return self._catch_up(everything=everything, forgotten=forgotten)
        except OSError as error:
            raise errors.failure_of(error) from error

    def _catch_up(self, *, everything: bool, forgotten: Collection[str]) -> Mirrored:
        notes = self._notes()
        opened = self._store.list_chats(is_open=True)
        chats = {chat.id: chat for chat in self._to_look_at(notes, opened, everything=everything)}
        files = dict(notes.files)
        gone = [id for id in (files if everything else sorted(files.keys() & forgotten)) if not self._is_known(id)]
        stale = [chat for chat in chats.values() if self._is_stale(files.get(chat.id), chat, closely=everything)]
        fresh = [chat.id for chat in stale if chat.id not in files]
        if fresh or not os.path.lexists(self._path(NOTES)):
            # Said before they are made: whatever happens, they are known to be ours.
            files |= {id: _File() for id in fresh if not os.path.lexists(self._path(id + ENDING))}
            self._write(NOTES, _encoded(_Notes(files=files, open=notes.open, seen=notes.seen)))
        written, failures = [], []
        for chat in stale:
            try:
                files[chat.id] = self._write_chat(chat, files)
                written.append(chat.id)
            except (errors.PerdureError, OSError) as error:
                failures.append(f"{chat.id}: {_sentence(error)}")
        for id in gone:
            with suppress(FileNotFoundError):
                os.unlink(self._path(id + ENDING))
            del files[id]
        self._write_index(opened)
        seen = max((chat.touched_at for chat in chats.values()), default=notes.seen)
        if failures:
            seen = notes.seen
        after = _Notes(files=files, open=frozenset(chat.id for chat in opened), seen=seen)
        if after != notes:
            self._write(NOTES, _encoded(after))
        return Mirrored(written=tuple(written), removed=tuple(gone), failures=tuple(failures))

    def _notes(self) -> _Notes:
        try:
            with open(self._path(NOTES), "rb") as file:
                return decoder_of(_Notes).decode(file.read())
        except FileNotFoundError:
            if os.path.lexists(self._path(INDEX)):
                raise errors.Refused(
                    f"{self._path(INDEX)} is somebody else's, and was left alone: the mirror needs a directory of its own. "
                    "`perdure chats import` takes over what is there."
                ) from None
            return _Notes()
        except msgspec.MsgspecError:
            # Ours, though nobody knows which of the files: all are made anew.
            names = [name.removesuffix(ENDING) for name in os.listdir(self.directory) if name.endswith(ENDING)]
            return _Notes(files={name: _File() for name in names if self._is_known(name)})

    def _to_look_at(self, notes: _Notes, opened: Sequence[Chat], *, everything: bool) -> Iterable[Chat]:
        """The chats that may have changed: open ones, those that were, and those that were used since."""
        if everything or notes.seen is None:
            return self._store.list_chats()
        found = {chat.id: chat for chat in (*self._store.list_chats(since=notes.seen - _APART), *opened)}
        for id in notes.open - found.keys():
            with suppress(errors.ChatNotFound, errors.ChatDamaged):
                found[id] = self._store.get_chat(id)
        return found.values()

    def _is_known(self, id: str) -> bool:
        try:
            self._store.get_chat(id)
        except errors.ChatNotFound:
            return False
        except errors.ChatDamaged:
            # It may be mended; till then its file is the only thing that can be read.
            return True
        return True

    def _is_stale(self, file: _File | None, chat: Chat, *, closely: bool) -> bool:
        if not is_safe_id(chat.id):
            return False
        if file is None or (file.turns, file.touched_at) != (chat.turns, chat.touched_at):
            return True
        if not closely:
            return False
        # As many as before may be others: a position further on tells.
        there = self._store.load_turns(chat.id, start=file.next, limit=1).next
        return (self._size(chat.id), there) != (file.size, file.next)

    def _write_chat(self, chat: Chat, files: dict[str, _File]) -> _File:
        path, file = self._path(chat.id + ENDING), files.get(chat.id)
        if file is None:
            raise errors.Refused(f"{path} is somebody else's, and was left alone.")
        if file.size >= 0 and self._size(chat.id) == file.size:
            further = self._store.load_turns(chat.id, start=file.next)
            is_behind = file.turns + len(further.turns) == self._store.get_chat(chat.id).turns
            if is_behind and further.next - file.next == len(further.turns):
                added = b"".join(map(line_of, further.turns))
                if added:
                    _append(path, added)
                turns = file.turns + len(further.turns)
                return _File(file.size + len(added), further.next, turns, chat.touched_at)
        # Something was taken back or replaced, or nobody knows what the file holds.
        whole = self._store.load_turns(chat.id)
        content = b"".join(map(line_of, whole.turns))
        write_atomically(path, content)
        return _File(len(content), whole.next, len(whole.turns), chat.touched_at)

    def _write_index(self, opened: Sequence[Chat]) -> None:
        index: dict[str, dict[str, Any]] = {}
        # The one that was used last is written last, and wins where several have one key there.
        for chat in sorted(opened, key=lambda chat: (chat.touched_at, chat.id)):
            with suppress(errors.UsageError):
                key = legacy_key_of(chat.source, self._keys, self._aliases)
                index.pop(key, None)
                index[key] = entry_of(chat, key)
        content = json.dumps(index, indent=2).encode()
        with suppress(FileNotFoundError), open(self._path(INDEX), "rb") as file:
            if file.read() == content:
                return
        self._write(INDEX, content)

    def _write(self, name: str, content: bytes) -> None:
        write_atomically(self._path(name), content)

    def _size(self, id: str) -> int:
        try:
            return os.lstat(self._path(id + ENDING)).st_size
        except OSError:
            return -1

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)


def entry_of(chat: Chat, key: str) -> dict[str, Any]:
    """Return a chat as an entry of `sessions.json`. Times are without an offset, as this machine's clock shows them."""
    return {
        "session_key": key,
        "session_id": chat.id,
        "created_at": _local(chat.opened_at),
        "updated_at": _local(chat.touched_at),
        "display_name": chat.source.chat_name,
        "platform": chat.source.platform,
        "chat_type": chat.source.chat_type,
        "input_tokens": chat.tokens.input,
        "output_tokens": chat.tokens.output,
        "total_tokens": chat.tokens.total,
        "suspended": chat.suspended,
        "resume_pending": chat.resume_pending_at is not None,
        "origin": source_dict(chat.source),
    }


def line_of(turn: Turn) -> bytes:
    """Return a turn as a line of a session's file."""
    message: dict[str, Any] = {**turn.extra, "role": turn.role, "content": turn.content, "timestamp": _local(turn.at)}
    more = {"tool_name": turn.tool_name, "tool_call_id": turn.tool_call_id, "tool_calls": list(turn.tool_calls)}
    message |= {name: value for name, value in more.items() if value}
    if turn.attachments:
        message["attachments"] = [dict(each) for each in turn.attachments]
    text = json.dumps(message, ensure_ascii=False)
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(message).encode() + b"\n"


def _append(path: str, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(handle, "ab") as file:
        file.write(content)
        file.flush()
        os.fsync(handle)


def _local(at: datetime) -> str:
    return at.astimezone().replace(tzinfo=None).isoformat()


def _encoded(notes: _Notes) -> bytes:
    return msgspec.json.encode(notes, order="deterministic")


def _sentence(error: errors.PerdureError | OSError) -> str:
    return (error if isinstance(error, errors.PerdureError) else errors.failure_of(error)).message
