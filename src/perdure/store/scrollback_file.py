"""The scrollback beside a manifest: one line per text, `{"digest":…,"data":…}`, the data packed and in base64."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import msgspec
from msgspec import Struct

from perdure.model.decoding import decoder_of
from perdure.store.files import sync_directory, write_atomically
from perdure.store.rows import unpacked

#: Gives the packed texts of some digests, as far as it has them.
PackedTexts = Callable[[set[str]], Mapping[str, bytes]]


class _Line(Struct):
    digest: str
    data: bytes


class _Name(Struct):
    digest: str


def update(path: str, wanted: set[str], texts: PackedTexts) -> None:
    """Make the file hold exactly `wanted`, as far as the texts can be had; nothing is written when it does.

    Lines that stay are copied as they are. Raises OSError.
    """
    lines = dict(_lines(path))
    missing = wanted - lines.keys()
    found = texts(missing) if missing else {}
    if not found and lines.keys() <= wanted:
        return
    lines.update({digest: msgspec.json.encode(_Line(digest=digest, data=data)) for digest, data in found.items()})
    kept = [line + b"\n" for digest, line in sorted(lines.items()) if digest in wanted]
    if kept:
        write_atomically(path, b"".join(kept))
    else:
        with suppress(FileNotFoundError):
            os.unlink(path)
        sync_directory(os.path.dirname(path))


def read(path: str, wanted: set[str]) -> dict[str, bytes]:
    """Return those of the wanted texts that the file holds and that are whole."""
    found = {}
    for digest, line in _lines(path):
        if digest in wanted:
            with suppress(msgspec.MsgspecError, ValueError):
                found[digest] = unpacked(decoder_of(_Line).decode(line).data)
    return found


def unreadable(path: str) -> bool:
    """Return whether any line of the file cannot be read."""
    with suppress(OSError), open(path, "rb") as file:
        count = sum(1 for line in file if line.strip())
        names = [digest for digest, _ in _lines(path)]
        return len(read(path, set(names))) != count
    return False


def _lines(path: str) -> Iterator[tuple[str, bytes]]:
    try:
        with open(path, "rb") as file:
            for line in file:
                with suppress(msgspec.MsgspecError, UnicodeError):
                    yield decoder_of(_Name).decode(line).digest, line.rstrip(b"\n")
    except FileNotFoundError:
        return
