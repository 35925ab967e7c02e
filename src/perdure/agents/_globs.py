"""Finding files whose path holds a conversation's id: `~/.agent/sessions/*/{id}.jsonl`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from os.path import join

from msgspec import Struct

from perdure.model.agent import ID
from perdure.ports import HostView

#: How many names are looked at: a pattern by mistake too wide must not hold up a save.
MOST = 100_000


class Found(Struct, frozen=True, kw_only=True):
    """A file, and the id in its path."""

    id: str
    path: str
    written_at: datetime
    size: int


def find_files(
    patterns: Iterable[str], id: str, *, home: str, environ: Mapping[str, str], host: HostView
) -> tuple[list[Found], bool]:
    """Return the files that fit, newest first, and whether all there are were looked at.

    `id` is the regular expression for `{id}`. A file two patterns fit comes once.
    """
    found: dict[str, Found] = {}
    left = [MOST]
    for pattern in patterns:
        parts = _parts(pattern, home, environ)
        for path, name in _walk("/", parts, id, host, None, left) if parts else ():
            if name is not None and path not in found and (each := _look(path, name, host)):
                found[path] = each
    return sorted(found.values(), key=lambda each: each.written_at, reverse=True), left[0] > 0


def files_of(
    patterns: Iterable[str], conversation: str, *, home: str, environ: Mapping[str, str], host: HostView
) -> list[Found]:
    """Return the files of one conversation, newest first. No directory is listed that is named in full."""
    if "/" in conversation or "\0" in conversation or conversation in (".", ".."):
        return []  # it would lead elsewhere
    id = re.escape(conversation)
    found: dict[str, Found] = {}
    for pattern in patterns:
        parts = [
            part if "*" in part else part.replace(ID, conversation) for part in _parts(pattern, home, environ) or ()
        ]
        for path, _ in _walk("/", parts, id, host, None, [MOST]) if parts else ():
            if path not in found and (each := _look(path, conversation, host)):
                found[path] = each
    return sorted(found.values(), key=lambda each: each.written_at, reverse=True)


def _look(path: str, id: str, host: HostView) -> Found | None:
    written = host.modified_at(path)
    return None if written is None else Found(id=id, path=path, written_at=written, size=host.size(path) or 0)


def _parts(pattern: str, home: str, environ: Mapping[str, str]) -> list[str] | None:
    path = _expanded(pattern, home, environ)
    return None if path is None else [part for part in path.split("/") if part]


def _expanded(pattern: str, home: str, environ: Mapping[str, str]) -> str | None:
    if pattern.startswith("~/"):
        return join(home, pattern[2:])
    if pattern.startswith("$"):
        variable, _, rest = pattern[1:].partition("/")
        value = environ.get(variable)
        return join(value, rest) if value and value.startswith("/") else None
    return pattern if pattern.startswith("/") else None


def _walk(
    directory: str, parts: list[str], id: str, host: HostView, name: str | None, left: list[int]
) -> Iterator[tuple[str, str | None]]:
    """Yield the paths below `directory` that fit `parts`, and the id found on the way, while names are `left`."""
    if not parts:
        yield directory, name
        return
    part, rest = parts[0], parts[1:]
    if "*" not in part and ID not in part:
        yield from _walk(join(directory, part), rest, id, host, name, left)
        return
    fits = _part(part, id)
    for entry in host.names(directory):
        left[0] -= 1
        if left[0] <= 0:
            return
        match = fits.fullmatch(entry)
        if match is not None:
            yield from _walk(join(directory, entry), rest, id, host, match.groupdict().get("id") or name, left)


@cache
def _part(part: str, id: str) -> re.Pattern[str]:
    text = re.escape(part).replace(re.escape(ID), f"(?P<id>{id})", 1).replace(r"\*", "[^/]*")
    return re.compile(text)
