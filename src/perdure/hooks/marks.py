"""How we know our own again in somebody else's file: by the mark `agents.hooking` has put into it."""

from __future__ import annotations

import re
from hashlib import sha256

_MARK = re.compile(r"perdure-hook/(?P<version>\d+) made=(?P<made>\d) sum=(?P<sum>[0-9a-f]{8})")


def is_marked(text: str) -> bool:
    """Say whether this is ours, of whatever version."""
    return _MARK.search(text) is not None


def stamped(text: str, made: int) -> str:
    """Return a text of ours with its mark filled in: how many things around it had to be made, and its sum."""
    blank = unstamped(text)
    return _MARK.sub(lambda mark: f"perdure-hook/{mark['version']} made={made} sum={_sum(blank)}", blank)


def unstamped(text: str) -> str:
    """Return the text as it was before it was stamped."""
    return _MARK.sub(lambda mark: f"perdure-hook/{mark['version']} made=0 sum=00000000", text)


def mark_of(text: str) -> str:
    """Return the mark in a text of ours."""
    mark = _MARK.search(text)
    return mark[0] if mark else ""


def made_around(text: str) -> int:
    """Return how many things had to be made around it."""
    mark = _MARK.search(text)
    return int(mark["made"]) if mark else 0


def is_edited(text: str) -> bool:
    """Say whether it is no longer as it was stamped."""
    return any(mark["sum"] != _sum(unstamped(text)) for mark in _MARK.finditer(text))


def _sum(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]
