"""What a pane's first process tells when it is one of ours: what it waits for, and what it will run.

A restored pane runs `/bin/sh -c PROGRAM perdure WORDS…` until a shell is left in it (tmux/wrap.py writes these
words). While it waits, the conversation it is going to resume is known from nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

SH = ("/bin/sh", "-c")
MARK = "perdure"
_ASKS = "asks"
# Stands in its place where it is not certain that this is the conversation the pane was in.
_GUESS = "guess"

# The words, in this order: stage, text, gate, asks, status, shell, name, again, end, run, count; then as many
# NAME=VALUE as `count` says, then the argv. `asks` may go on with `:PID:TICKS`, of a process that has to be gone first.
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
    #: What the program is called when it has ended.
    name: str = ""
    is_guess: bool = False
    #: Number and kernel start ticks of the process that has to be gone first.
    before: tuple[int, int] | None = None


def asking_word(*, asks: bool, is_guess: bool, before: tuple[int, int] | None) -> str:
    """Return the word that tells what a pane waits for, besides its gate."""
    kind = (_GUESS if is_guess else _ASKS) if asks else ""
    return kind if before is None else f"{kind}:{before[0]}:{before[1]}"


def read_wrapper(argv: Sequence[str]) -> Wrapped | None:
    """Return what a pane's first process is about, None when we did not start it, or it is the shell already."""
    words = tuple(argv[4:])
    if not is_helped(tuple(argv)) or len(words) < _FIXED or words[0] not in list(Stage) or not words[10].isdecimal():
        return None
    variables = _FIXED + int(words[10])
    asks, _, before = words[3].partition(":")
    rest = words[variables:]
    return Wrapped(
        stage=Stage(words[0]),
        argv=rest[4:] if is_helped(rest) else rest,
        environ=dict(_split(each) for each in words[_FIXED:variables]),
        text=words[1] or None,
        gate=words[2] or None,
        status=words[4] or None,
        name=words[6],
        asks=bool(asks),
        is_guess=asks == _GUESS,
        before=_process(before),
    )


def is_helped(argv: tuple[str, ...]) -> bool:
    """Say whether an argv begins with a shell of ours that starts what follows."""
    return argv[:2] == SH and argv[3:4] == (MARK,)


_BEGIN = " ".join(SH) + " "
_WORDS = f" {MARK} {Stage.PRELUDE} "
# A file of a restore (host/scratch.py). Captured text comes behind our own words: the first that is found is ours.
_FILE = re.compile(r"/restores/[0-9A-Za-z_-]+/[0-9]+\.[a-z]+")


def shortened(command: str) -> str:
    """Return what a pane was started with, as tmux prints it, without the kilobytes that are the same in all of ours.

    tmux keeps it as long as there is the pane, so each would be read, compared and kept with every save. What stays
    tells whose pane it is: the file of its step. Anybody else's command stays as it is.
    """
    words = command.find(_WORDS) if command.startswith(_BEGIN) else -1
    if words < 0:
        return command
    file = _FILE.search(command, words)
    return f"{_BEGIN}…{_WORDS}{file[0] if file else ''}".rstrip()


def _process(word: str) -> tuple[int, int] | None:
    pid, _, ticks = word.partition(":")
    return (int(pid), int(ticks)) if pid.isdecimal() and ticks.isdecimal() else None


def _split(assignment: str) -> tuple[str, str]:
    name, _, value = assignment.partition("=")
    return name, value
