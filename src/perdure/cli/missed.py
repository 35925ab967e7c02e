"""Servers that gave no answer, as a command that only looks tells of them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from perdure.cli.render import printable
from perdure.model.snapshot import Miss, Missed

#: Nothing runs there: an answer too.
_NOTHING_THERE = frozenset({Miss.NO_SERVER, Miss.EMPTY})


def unanswered(looked: Iterable[object]) -> list[Missed]:
    """Return those of the servers looked at of which nothing is known now."""
    return [each for each in looked if isinstance(each, Missed) and each.reason not in _NOTHING_THERE]


def report(missed: Iterable[Missed], *, one_socket: bool = False) -> int:
    """Say a sentence for each on stderr and return the exit code."""
    reasons = set()
    for each in missed:
        print(f"perdure: {printable(each.message)}", file=sys.stderr)
        reasons.add(each.reason)
    if one_socket and Miss.REFUSED in reasons:
        return 6
    return 4 if reasons else 0
