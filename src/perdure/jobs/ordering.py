"""What can be wrong with an order, and ids. Nothing is started here."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from perdure.errors import UsageError
from perdure.model.job import LOCAL, Order
from perdure.model.text import decode, encode

#: How often the owner of a job may be told what is new at most, in seconds between two times.
LEAST_EVERY = 30.0
#: The longest text that is looked for in lines, in bytes.
LONGEST_PATTERN = 4096
#: The largest terminal there is: the kernel has two bytes for each.
MOST_CELLS = 65535


def new_id() -> str:
    """Return an id that no job has, and none has had."""
    return f"j{os.urandom(8).hex()}"


def accepted(order: Order) -> tuple[Order, tuple[str, ...]]:
    """Return an order as it is carried out, with a sentence for whatever is otherwise than it was wanted.

    Raises `UsageError` for one that cannot be carried out.
    """
    wrong = next(_mistakes(order), None)
    if wrong is not None:
        raise UsageError(wrong)
    every, notes = order.notify.every_seconds, []
    if every is not None and every < LEAST_EVERY:
        order = replace(order, notify=replace(order.notify, every_seconds=LEAST_EVERY))
        notes.append(f"Every {every:g} s is too often: what is new is told every {LEAST_EVERY:g} s.")
    return _as_text(order), tuple(notes)


def check_owner(owner: str | None) -> None:
    """Raise `UsageError` for an owner that nobody can be; None is anybody."""
    if owner is not None and not owner.strip():
        raise UsageError("The owner of a job is the key of a chat or the id of a run, and cannot be empty.")


def check_data(data: object) -> None:
    """Raise `UsageError` for what cannot be written to a job."""
    if not isinstance(data, bytes | bytearray | memoryview):
        raise UsageError("What is written to a job is bytes; a text has to be encoded.")


def check_size(rows: int, columns: int) -> None:
    """Raise `UsageError` when no terminal can have this size."""
    if not (1 <= rows <= MOST_CELLS and 1 <= columns <= MOST_CELLS):
        raise UsageError(f"A terminal has from 1 to {MOST_CELLS} rows and columns, not {rows}x{columns}.")


def _mistakes(order: Order) -> Iterator[str]:
    # First: nothing else can be asked of what is of another kind.
    yield from _no_texts(order)
    if (order.argv is None) is (order.shell is None):
        yield "A job is either words (argv) or a text for the shell: exactly one of them has to be given."
    if order.argv is not None and not (order.argv and order.argv[0]):
        yield "A job needs a program: its words are empty."
    if order.shell is not None and not order.shell.strip():
        yield "A job needs a text for the shell: this one is empty."
    if not os.path.isabs(order.cwd) and not (order.cwd == "" and order.backend != LOCAL):
        yield "The directory a job runs in must be an absolute path."
    if any("\0" in each for each in (*(order.argv or ()), order.shell or "", order.cwd, order.owner or "")):
        yield "No word of a job can have a NUL character in it."
    if order.owner is not None and not order.owner.strip():
        yield "The owner of a job is the key of a chat or the id of a run, and cannot be empty."
    for name, value in order.env.items():
        if not name or "=" in name or "\0" in name + value:
            yield "A variable of a job has a name without '=', and no NUL character in it."
    if order.terminal is not None:
        check_size(order.terminal.rows, order.terminal.columns)
    if any(not pattern for pattern in order.notify.patterns):
        yield "A text to be told of cannot be empty: it would be in every line."
    if any("\n" in pattern or "\0" in pattern for pattern in order.notify.patterns):
        yield "A text to be told of is looked for within a line, so no line can end in it."
    if any(len(encode(pattern)) > LONGEST_PATTERN for pattern in order.notify.patterns):
        yield f"A text to be told of has no more than {LONGEST_PATTERN} bytes."
    every = order.notify.every_seconds
    if every is not None and not 0 < every < float("inf"):
        yield "What is new can be told every so many seconds, and that must be more than none."


def _no_texts(order: Order) -> Iterator[str]:
    """Say what a program has given for a text that is none: types are only checked for those who ask for it."""
    words: object = order.argv
    if words is not None and (isinstance(words, str | bytes) or not _are_texts(order.argv or ())):
        yield "The words of a job (argv) are a list of texts; a text alone is for the shell."
    given = (order.shell or "", order.cwd, order.owner or "", *order.notify.patterns)
    if not _are_texts((*given, *order.env.keys(), *order.env.values())):
        yield "What a job runs, where, whose it is and the names and values of its variables are texts."


def _are_texts(words: Iterable[object]) -> bool:
    return all(isinstance(word, str) for word in words)


def _as_text(order: Order) -> Order:
    """Return the order with every word as it can be kept anywhere."""
    return replace(
        order,
        argv=None if order.argv is None else tuple(map(_kept, order.argv)),
        shell=None if order.shell is None else _kept(order.shell),
        cwd=_kept(order.cwd),
        owner=None if order.owner is None else _kept(order.owner),
        notify=replace(order.notify, patterns=tuple(map(_kept, order.notify.patterns))),
        env={_kept(name): _kept(value) for name, value in order.env.items()},
    )


def _kept(word: str) -> str:
    return decode(encode(word))
