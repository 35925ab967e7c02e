"""Hermes' directory of sessions: `sessions.json`, which says what each conversation is in, and a JSONL file for each session."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any

from perdure.compat.hermes_fields import (
    KEPT,
    is_count,
    is_moment,
    is_origin,
    moment,
    parsed,
    short,
    tokens,
    turn_of,
    unusable,
    unusable_in_message,
)
from perdure.errors import ImportFailed
from perdure.host.regular import open_regular
from perdure.model.chat import Turn
from perdure.model.chat_import import Incoming, Mishap, Words

INDEX, ENDING = "sessions.json", ".jsonl"
#: Far more than any index is; a device has no end.
_BIGGEST_INDEX = 256 << 20
_STAMPED = re.compile(r"(?:.*_)?(\d{8}_\d{6})(?:_.*)?")
#: What an entry says that a chat has a place for.
_PLACED = frozenset(
    {"session_id", "session_key", "created_at", "updated_at", "origin", "input_tokens", "output_tokens", "suspended"}
)
#: What Hermes writes beside sessions, and is none.
_NO_SESSION = "request_dump"


def read_directory(directory: str, zone: tzinfo | None = None) -> Iterator[Incoming | Mishap]:
    """Yield the sessions of a directory, those of the index first; then those that only have a file, as ended ones.

    Each that cannot be read costs only itself. Nothing is written. `zone` is that of times without an offset.
    """
    named: set[str] = set()
    for each in _entries(os.path.join(directory, INDEX)):
        if isinstance(each, Mishap):
            yield each
            continue
        found = _from_entry(directory, *each, zone)
        if isinstance(found, Incoming):
            named.add(found.id)
            yield from (Mishap(where=found.where, what=what) for what in unusable(each[1], _ENTRY_KINDS))
        yield found
    for name in sorted(os.listdir(directory)):
        id = name.removesuffix(ENDING)
        if name != id and id not in named and not name.startswith((_NO_SESSION, ".")):
            yield _from_file(directory, id, zone)


def entries_of(raw: bytes, where: str) -> Iterator[tuple[str, dict[str, Any]] | Mishap]:
    """Yield keys and entries of an index; every entry that is none is a mishap of its own."""
    try:
        index = parsed(raw)
    except (ValueError, RecursionError) as error:
        yield Mishap(where=where, what=f"it is not JSON ({_cause(error)})")
        return
    if not isinstance(index, dict):
        yield Mishap(where=where, what="it holds no entries by their keys")
        return
    for key, entry in index.items():
        if key.startswith("_"):
            continue
        if isinstance(entry, dict) and is_plain_name(entry.get("session_id")):
            yield key, entry
        else:
            what = "names no session that could have a file" if isinstance(entry, dict) else "is no entry"
            yield Mishap(where=where, what=f"what stands under {short(key)} {what}")


def words_of(lines: Iterable[bytes], where: str, begun: datetime, zone: tzinfo | None = None) -> Words:
    """Return what was said, line by line. A line that is no message costs only itself, a half-written last one too."""
    turns: list[Turn] = []
    mishaps: list[Mishap] = []
    at = begun
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        message = _message(line)
        if isinstance(message, str):
            half = "it ends in the middle of this line" if not line.endswith(b"\n") else message
            mishaps.append(Mishap(where=f"{where}:{number}", what=half))
            continue
        # Many messages do not say when they were written: not before the one before them.
        at = moment(message.get("timestamp"), zone) or at
        mishaps += (Mishap(where=f"{where}:{number}", what=what) for what in unusable_in_message(message))
        turns.append(turn_of(message, len(turns) + 1, at))
    return Words(turns=tuple(turns), mishaps=tuple(mishaps))


def is_plain_name(id: object) -> bool:
    """Whether an id can be a part of a file's name: it leads nowhere else."""
    return isinstance(id, str) and id not in ("", ".", "..") and not re.search(r"[/\\\0]", id) and ".." not in id


def _entries(path: str) -> Iterator[tuple[str, dict[str, Any]] | Mishap]:
    if not os.path.lexists(path):
        return
    try:
        with open_regular(path) as file:
            raw = file.read(_BIGGEST_INDEX + 1)
    except OSError as error:
        yield Mishap(where=path, what=f"it cannot be read: {error.strerror or error}")
        return
    if len(raw) > _BIGGEST_INDEX:
        yield Mishap(where=path, what=f"it is bigger than {_BIGGEST_INDEX >> 20} MiB, which no index is")
        return
    yield from entries_of(raw, path)


def _from_entry(directory: str, key: str, entry: Mapping[str, Any], zone: tzinfo | None = None) -> Incoming | Mishap:
    id = entry["session_id"]
    opened_at = moment(entry.get("created_at"), zone) or _stamped(id, zone)
    if opened_at is None:
        return Mishap(where=os.path.join(directory, INDEX), what=f"the entry of {short(id)} says no time")
    extra = {name: value for name, value in entry.items() if name not in _PLACED and value is not None}
    return Incoming(
        id=id,
        where=f"{os.path.join(directory, INDEX)}, session {short(id)}",
        opened_at=opened_at,
        touched_at=max(moment(entry.get("updated_at"), zone) or opened_at, opened_at),
        read=partial(_read, os.path.join(directory, id + ENDING), opened_at, zone),
        origin=_origin(entry),
        is_current=True,
        tokens=tokens(entry),
        suspended=entry.get("suspended") is True,
        resume_pending_at=moment(entry.get("last_resume_marked_at"), zone) if entry.get("resume_pending") else None,
        extra={KEPT: {"session_key": key, **extra}},
    )


def _origin(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    origin = entry.get("origin")
    if isinstance(origin, dict) and origin:
        return origin
    known = {"platform": entry.get("platform"), "chat_type": entry.get("chat_type")}
    return {name: value for name, value in known.items() if isinstance(value, str) and value}


def _from_file(directory: str, id: str, zone: tzinfo | None) -> Incoming | Mishap:
    path = os.path.join(directory, id + ENDING)
    try:
        status = os.stat(path)
    except OSError as error:
        return Mishap(where=path, what=f"it cannot be read: {error.strerror}")
    if not stat.S_ISREG(status.st_mode):
        return Mishap(where=path, what="it is no file")
    written_at = datetime.fromtimestamp(status.st_mtime, UTC)
    opened_at = _stamped(id, zone) or written_at
    return Incoming(
        id=id,
        where=path,
        opened_at=opened_at,
        touched_at=max(opened_at, written_at),
        # Not in the index: its conversation goes on in another one, or nowhere.
        closed_at=max(opened_at, written_at),
        read=partial(_read, path, opened_at, zone),
    )


def _read(path: str, begun: datetime, zone: tzinfo | None) -> Words:
    try:
        with open_regular(path) as file:
            return words_of(file, path, begun, zone)
    except FileNotFoundError:
        # Nothing was said yet, or what was is in the database alone.
        return Words()
    except OSError as error:
        raise ImportFailed(f"{path} cannot be read: {error.strerror or error}.", path=path) from error


def _message(line: bytes) -> dict[str, Any] | str:
    """A message, or what is wrong with the line."""
    try:
        # Bytes that are no UTF-8 stay what they are, as halves of characters, which JSON can say.
        message = parsed(line.decode(errors="surrogateescape"))
    except (ValueError, RecursionError) as error:
        return f"it is not JSON ({_cause(error)})"
    if not isinstance(message, dict) or not isinstance(message.get("role"), str) or not message["role"]:
        return "it is no message: it says no role"
    return message


def _stamped(id: str, zone: tzinfo | None) -> datetime | None:
    found = _STAMPED.fullmatch(id)
    if found is None:
        return None
    day, time = found[1].split("_")
    return moment(f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}", zone)


def _cause(error: Exception) -> str:
    return str(error) if not isinstance(error, RecursionError) else "too much within something else"


_ENTRY_KINDS = {
    "created_at": is_moment,
    "updated_at": is_moment,
    "input_tokens": is_count,
    "output_tokens": is_count,
    "suspended": lambda value: isinstance(value, bool),
    "origin": is_origin,
}
