"""The chats as earlier programs keep them: `sessions.json` and a JSONL file for each, for tools that read those.

It is made from the store and never read back: whatever is wrong with it is made anew. Files that are not ours are left
alone. Several processes may keep the same mirror: one at a time is at it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from perdure import errors
from perdure.chats.followed import FollowedStore
from perdure.chats.key import is_safe_id, legacy_key_of
from perdure.chats.legacy import entry_of, sessions_in
from perdure.chats.mirror_file import MirrorFile, bring_up_to_date
from perdure.chats.whatsapp import NO_ALIASES, Aliases
from perdure.host.regular import open_regular
from perdure.model.chat import Chat, ChatNews
from perdure.model.config import ChatKeysConfig
from perdure.model.decoding import decoder_of
from perdure.store.files import TEMPORARY, locked, private_directory, write_atomically

INDEX, ENDING = "sessions.json", ".jsonl"
#: What we know of our files: without it, files that are there are somebody else's.
NOTES = ".perdure-mirror.json"
#: What a write that was killed leaves.
_LEFT = re.compile(r"\.(.+)\.[0-9]+-[0-9a-f]{8}" + re.escape(TEMPORARY), re.DOTALL)
#: How many events may be heard once more.
_HEARD_AGAIN = 500
#: What keeps one chat from being written, and no other.
_FAILURES = (errors.PerdureError, OSError, RecursionError)


class _Notes(Struct, frozen=True, kw_only=True):
    files: dict[str, MirrorFile] = {}
    #: Those to look at again: that were open, or could not be written.
    open: frozenset[str] = frozenset()
    #: Forgotten, though their files could not be removed.
    doomed: frozenset[str] = frozenset()
    #: Up to where it was heard what has happened to chats; None where an earlier version wrote this.
    heard: int | None = None
    #: By what the event of that number is known again; None where an earlier version wrote this.
    mark: str | None = None


class Mirrored(Struct, frozen=True, kw_only=True):
    """What came of bringing a mirror up to date."""

    #: The ids of the chats whose files were written.
    written: tuple[str, ...] = ()
    #: Those whose files are gone because the chats were forgotten.
    removed: tuple[str, ...] = ()
    #: Those that are not there, though nobody is known to have forgotten them: their files may be all that is left, and
    #: are kept. Looked for only with `everything`.
    orphaned: tuple[str, ...] = ()
    #: One sentence for each that could not be written or removed; it is tried again the next time.
    failures: tuple[str, ...] = ()


def mirror_in(directory: str, store: FollowedStore, keys: ChatKeysConfig, *, state_dir: str) -> Mirror:
    """Return the mirror of a store. Raises `UsageError` for the directory everything else is kept in."""
    if os.path.realpath(directory) == os.path.realpath(state_dir):
        raise errors.UsageError(
            f"The mirror needs a directory of its own, and {directory} is where perdure keeps its state."
        )
    return Mirror(store, directory, keys)


class Mirror:
    """A directory that follows a store."""

    def __init__(
        self, store: FollowedStore, directory: str, keys: ChatKeysConfig, *, aliases: Aliases = NO_ALIASES
    ) -> None:
        self.directory = directory
        self._store = store
        self._keys = keys
        self._aliases = aliases

    def catch_up(self, *, everything: bool = False, forgotten: Collection[str] = ()) -> Mirrored:
        """Bring the files up to date with the store; with `everything` look at every chat and every byte.

        The files of chats that somebody forgot go, in whatever process that was, unless these are there after all. No
        other goes: after a loss the file may be all that is left of a chat. `forgotten` are more of them than the store
        may still tell of. A chat that cannot be written costs only itself. Raises `Refused` when the directory holds a
        `sessions.json` that is not ours, or the files of another store, and `PerdureError` when it cannot be written.
        """
        try:
            private_directory(self.directory)
            with locked(self.directory):
                return self._catch_up(everything=everything, forgotten=forgotten)
        except OSError as error:
            raise errors.failure_of(error) from error

    def _catch_up(self, *, everything: bool, forgotten: Collection[str]) -> Mirrored:
        notes = self._notes()
        # Before anything is looked at: what happens from now on is heard the next time.
        news = self._store.chat_news(notes.heard, notes.mark)
        opened = self._store.list_chats(is_open=True)
        ended = news.forgotten | notes.doomed | frozenset(forgotten)
        self._refuse_another_store(notes.files, ended, opened)
        # Some of those may have come back since that was heard.
        renewed = news.renewed | {id for id in ended & notes.files.keys() if self._is_known(id)}
        # After a backup was put back, other words may have the same numbers and places as those that were heard.
        unknown = notes.files.keys() if news.is_another else renewed
        files = {id: MirrorFile() if id in unknown else file for id, file in notes.files.items()}
        # First of all: it is to go, though there may be no room for anything else.
        removed, failures = self._remove(files, ended - renewed)
        doomed = frozenset(failures)
        suspects = notes.open | news.changed | renewed
        chats, unread = self._to_look_at(suspects, opened, everything=everything or not news.is_all)
        places = self._store.next_positions([chat.id for chat in chats])
        doubted = news.changed if news.is_all and not everything else frozenset(chat.id for chat in chats)
        stale = [chat for chat in chats if _is_stale(files.get(chat.id), chat, places, doubted)]
        if removed or stale:
            self._sweep(files.keys() | ended)
        written, unwritten = self._write_chats(stale, places, files, notes, closely=everything)
        failures |= unwritten
        again = frozenset(chat.id for chat in opened) | failures.keys() - doomed | unread
        sentences = [f"{id}: {sentence}" for id, sentence in failures.items()]
        ours = notes.files.keys() | files.keys() | ended
        sentences += self._write_index(opened, ours, even_broken=everything)
        after = _Notes(files=files, open=again, doomed=doomed, heard=news.last, mark=news.mark)
        if not os.path.lexists(self._path(NOTES)):
            # Somebody has removed it meanwhile, and nobody knows what else.
            self._write(NOTES, _encoded(_Notes(files=dict.fromkeys(files, MirrorFile()))))
        elif _is_to_be_noted(notes, after, news):
            self._write(NOTES, _encoded(after))
        orphaned = [id for id in files if id not in doomed and not self._is_known(id)] if everything else []
        return Mirrored(
            written=tuple(written), removed=tuple(removed), orphaned=tuple(orphaned), failures=tuple(sentences)
        )

    def _notes(self) -> _Notes:
        try:
            with open_regular(self._path(NOTES)) as file:
                notes = decoder_of(_Notes).decode(file.read())
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
            return _Notes(files={name: MirrorFile() for name in names if self._is_known(name)})
        # No path is ever made of anything else.
        return replace(notes, files={id: file for id, file in notes.files.items() if is_safe_id(id)})

    def _refuse_another_store(self, files: Collection[str], ended: Collection[str], opened: Sequence[Chat]) -> None:
        """Raise `Refused` where nothing is known of any chat whose file is here: neither that it is there, nor that it went."""
        if not files or any(chat.id in files for chat in opened):
            return
        if not any(id in ended or self._is_known(id) for id in files):
            raise errors.Refused(
                f"The store knows none of the chats in {self.directory}, and they were left alone: they are another "
                "store's, or all that is left of one that was lost. `perdure chats import` takes them over; else the "
                "mirror needs another directory."
            )

    def _remove(self, files: dict[str, MirrorFile], gone: Collection[str]) -> tuple[list[str], dict[str, str]]:
        """Remove our files of chats that are gone; return their ids, and why it was not done by the ids of others."""
        removed: list[str] = []
        failures: dict[str, str] = {}
        for id in sorted(files.keys() & gone):
            try:
                with suppress(FileNotFoundError):
                    os.unlink(self._path(id + ENDING))
                del files[id]
                removed.append(id)
            except OSError as error:
                failures[id] = _sentence(error)
        return removed, failures

    def _sweep(self, ids: Collection[str]) -> None:
        """Remove what was half written by somebody who was killed: nobody writes here but whoever holds the directory."""
        for name in os.listdir(self.directory):
            found = _LEFT.fullmatch(name)
            if found and (found[1] in (INDEX, NOTES) or found[1].removesuffix(ENDING) in ids):
                with suppress(OSError):
                    os.unlink(self._path(name))

    def _to_look_at(
        self, suspects: frozenset[str], opened: Sequence[Chat], *, everything: bool
    ) -> tuple[Collection[Chat], frozenset[str]]:
        """The open chats, or all, with those that may have changed; and the ids of such as cannot be read."""
        found = {chat.id: chat for chat in (self._store.list_chats() if everything else opened)}
        unread = set()
        for id in suspects - found.keys():
            try:
                found[id] = self._store.get_chat(id)
            except errors.ChatDamaged:
                unread.add(id)
            except errors.ChatNotFound:
                continue
        return found.values(), frozenset(unread)

    def _is_known(self, id: str) -> bool:
        try:
            self._store.get_chat(id)
        except errors.ChatNotFound:
            return False
        except errors.ChatDamaged:
            # It may be mended; till then its file is the only thing that can be read.
            return True
        return True

    def _write_chats(
        self,
        chats: Sequence[Chat],
        places: Mapping[str, int],
        files: dict[str, MirrorFile],
        notes: _Notes,
        *,
        closely: bool,
    ) -> tuple[list[str], dict[str, str]]:
        """Bring the files of chats up to date, and what they hold into `files`.

        Returns the ids of those that were written, and why others could not be, by their ids.
        """
        is_noted = os.path.lexists(self._path(NOTES))
        if not is_noted and notes != _Notes():
            raise errors.StoreUnusable(f"Somebody removes what is in {self.directory}: it is made anew later.")
        fresh = self._free(files, [chat.id for chat in chats if chat.id not in files])
        if fresh or not is_noted:
            # Said before they are made: whatever happens, they are known to be ours.
            files |= dict.fromkeys(fresh, MirrorFile())
            self._write(NOTES, _encoded(replace(notes, files=files)))
        written: list[str] = []
        failures: dict[str, str] = {}
        for chat in chats:
            try:
                place, file = places.get(chat.id, 0), self._ours(files, chat.id)
                path = self._path(chat.id + ENDING)
                held = bring_up_to_date(path, file, self._store, chat, place, closely=closely)
                files[chat.id], is_written = held
                if is_written:
                    written.append(chat.id)
            except errors.ChatNotFound:
                # Forgotten meanwhile, as is heard the next time.
                continue
            except _FAILURES as error:
                failures[chat.id] = _sentence(error)
        return written, failures

    def _free(self, files: Mapping[str, MirrorFile], ids: Sequence[str]) -> list[str]:
        """Return those of some chats whose files nobody has, and that get one now."""
        # A file system may take `A` for `a`. Of two such only one is begun at a time: then it is seen whether it does.
        begun = {id.casefold() for id, file in files.items() if file.size < 0}
        free = []
        for id in ids:
            if id.casefold() not in begun and not os.path.lexists(self._path(id + ENDING)):
                begun.add(id.casefold())
                free.append(id)
        return free

    def _ours(self, files: Mapping[str, MirrorFile], id: str) -> MirrorFile:
        """What is known of a chat's file. Raises `Refused` for one that is not ours."""
        if id not in files:
            path = self._path(id + ENDING)
            raise errors.Refused(f"{path} is somebody else's, or another chat's, and was left alone.")
        return files[id]

    def _write_index(self, opened: Sequence[Chat], ours: Collection[str], *, even_broken: bool) -> list[str]:
        """Bring the index up to date; return a sentence where that was not done."""
        index: dict[str, dict[str, Any]] = {}
        # The one that was used last is written last, and wins where several have one key there.
        for chat in sorted(filter(_has_file, opened), key=lambda chat: (chat.touched_at, chat.id)):
            with suppress(errors.UsageError):
                key = legacy_key_of(chat.source, self._keys, self._aliases)
                index.pop(key, None)
                index[key] = entry_of(chat, key)
        content = json.dumps(index, indent=2).encode()
        try:
            there = self._index()
            if there == content:
                return []
            sessions = frozenset() if there is None else sessions_in(there)
            if sessions is None and not even_broken:
                # Ours is replaced as a whole: another program may be in the midst of writing this.
                return [f"{self._path(INDEX)} cannot be read. `perdure chats mirror` makes it anew."]
            # What it names was one of ours when we wrote it.
            if not all(id in ours or self._is_known(id) for id in sessions or ()):
                return [
                    f"{self._path(INDEX)} names sessions that are not ours, and was left alone: another program writes there. "
                    "The mirror needs a directory of its own; `perdure chats import` takes over what is there."
                ]
            self._write(INDEX, content)
        except OSError as error:
            return [f"{self._path(INDEX)}: {_sentence(error)}"]
        return []

    def _index(self) -> bytes | None:
        try:
            with open_regular(self._path(INDEX)) as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _write(self, name: str, content: bytes) -> None:
        write_atomically(self._path(name), content)

    def _path(self, name: str) -> str:
        return os.path.join(self.directory, name)


def _has_file(chat: Chat) -> bool:
    """Whether a chat gets a file: not one whose id would lead elsewhere, nor is anybody told to look for it there."""
    return is_safe_id(chat.id)


def _is_stale(file: MirrorFile | None, chat: Chat, places: Mapping[str, int], doubted: Collection[str]) -> bool:
    """Whether a chat's file may not hold what was said in it."""
    if not _has_file(chat):
        return False
    # As many as before may be others, said at the same time: where the chat goes on tells.
    is_known = file is not None and (file.turns, file.place) == (chat.turns, places.get(chat.id))
    return not is_known or chat.id in doubted


def _is_to_be_noted(before: _Notes, after: _Notes, news: ChatNews) -> bool:
    """Whether to write the notes: not for its sake alone that it was heard that nothing has happened here, or little."""
    if after != replace(before, heard=after.heard, mark=after.mark) or news.forgotten or news.renewed:
        return True
    return before.heard is None or before.mark is None or not 0 <= news.last - before.heard < _HEARD_AGAIN


def _encoded(notes: _Notes) -> bytes:
    return msgspec.json.encode(notes, order="deterministic")


def _sentence(error: Exception) -> str:
    if isinstance(error, OSError):
        error = errors.failure_of(error)
    return error.message if isinstance(error, errors.PerdureError) else "What was said there is nested too deeply."
