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

#: How many files of one pattern are looked at: a pattern by mistake too wide must not hold up a save.
_MOST = 5000


class Found(Struct, frozen=True, kw_only=True):
    """A file, and the id in its path."""

    id: str
    path: str
    written_at: datetime
    size: int


def find_files(
    patterns: Iterable[str], id: str, *, home: str, environ: Mapping[str, str], host: HostView
) -> Iterator[Found]:
    """Yield the files that fit, `id` being the regular expression for `{id}`. A file two patterns fit comes once."""
    seen: set[str] = set()
    for pattern in patterns:
        path = _expanded(pattern, home, environ)
        if path is None:
            continue
        for found, name in _walk("/", [part for part in path.split("/") if part], id, host, None):
            written = host.modified_at(found)
            if name is None or written is None or found in seen:
                continue
            seen.add(found)
            yield Found(id=name, path=found, written_at=written, size=host.size(found) or 0)
            if len(seen) >= _MOST:
                return


def _expanded(pattern: str, home: str, environ: Mapping[str, str]) -> str | None:
    if pattern.startswith("~/"):
        return join(home, pattern[2:])
    if pattern.startswith("$"):
        variable, _, rest = pattern[1:].partition("/")
        value = environ.get(variable)
        return join(value, rest) if value and value.startswith("/") else None
    return pattern if pattern.startswith("/") else None


def _walk(
    directory: str, parts: list[str], id: str, host: HostView, name: str | None
) -> Iterator[tuple[str, str | None]]:
    """Yield the paths below `directory` that fit `parts`, and the id that was found on the way."""
    if not parts:
        yield directory, name
        return
    part, rest = parts[0], parts[1:]
    if "*" not in part and ID not in part:
        yield from _walk(join(directory, part), rest, id, host, name)
        return
    fits = _part(part, id)
    for entry in host.names(directory):
        match = fits.fullmatch(entry)
        if match is not None:
            yield from _walk(join(directory, entry), rest, id, host, match.groupdict().get("id") or name)


@cache
def _part(part: str, id: str) -> re.Pattern[str]:
    text = re.escape(part).replace(re.escape(ID), f"(?P<id>{id})", 1).replace(r"\*", "[^/]*")
    return re.compile(text)
