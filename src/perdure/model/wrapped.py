"""What a pane's first process tells when it is one of ours: what it waits for, and what it will run.

A restored pane runs `/bin/sh -c PROGRAM perdure WORDS…` until a shell is left in it (restore/wrap.py writes these
words). While it waits, the conversation it is going to resume is known from nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

SH = ("/bin/sh", "-c")
MARK = "perdure"
#: Stands in place of "asks" where it is not certain that this is the conversation the pane was in.
GUESS = "guess"

# The words, in this order: stage, text, gate, asks, status, shell, name, again, end, run, count; then as many
# NAME=VALUE as `count` says, then the argv.
_FIXED = 11


class Stage(StrEnum):
    """How far the first process of a pane has come."""

    #: It prints, or waits at the gate or for Enter; nothing has been started.
    PRELUDE = "prelude"
    #: The program was started, and has not ended.
    RUNNING = "running"


class Wrapped(Struct, frozen=True, kw_only=True):
    """What the words of a pane's first process tell."""

    stage: Stage
    argv: tuple[str, ...]
    environ: Mapping[str, str]
    text: str | None
    gate: str | None
    status: str | None
    asks: bool
    is_guess: bool = False


def read_wrapper(argv: Sequence[str]) -> Wrapped | None:
    """Return what a pane's first process is about, None when we did not start it, or it is the shell already."""
    words = tuple(argv[4:])
    if not is_helped(tuple(argv)) or len(words) < _FIXED or words[0] not in list(Stage) or not words[10].isdecimal():
        return None
    variables = _FIXED + int(words[10])
    rest = words[variables:]
    return Wrapped(
        stage=Stage(words[0]),
        argv=rest[4:] if is_helped(rest) else rest,
        environ=dict(_split(each) for each in words[_FIXED:variables]),
        text=words[1] or None,
        gate=words[2] or None,
        status=words[4] or None,
        asks=bool(words[3]),
        is_guess=words[3] == GUESS,
    )


def is_helped(argv: tuple[str, ...]) -> bool:
    """Say whether an argv begins with a shell of ours that starts what follows."""
    return argv[:2] == SH and argv[3:4] == (MARK,)


def _split(assignment: str) -> tuple[str, str]:
    name, _, value = assignment.partition("=")
    return name, value
