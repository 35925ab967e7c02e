"""What people and scripts get to see."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

import msgspec

from perdure.model.text import as_text


def print_json(value: object) -> None:
    """Print one JSON object, and be sure that it is out."""
    try:
        raw = msgspec.json.encode(value)
    except UnicodeEncodeError:
        raw = msgspec.json.encode(as_text(msgspec.to_builtins(value)))
    sys.stdout.buffer.write(raw + b"\n")
    sys.stdout.flush()


#: Wider than any table: what is measured against it gets its natural width.
_UNLIMITED = 1_000_000
#: How much of the width may go to columns that are never cut.
_WHOLE_SHARE = 0.75
#: How much of a text makes its column worth showing.
_ENOUGH = 24
#: What a column takes besides its text.
_GAP = 3


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    whole: Collection[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """Print a table that fits the terminal; piped, nothing is cut and nothing left out.

    The columns in `whole` are not cut where there is any room for them. Those in `spare` are left out, the first
    first, while the table is too wide.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=False)
    if not console.is_terminal:
        console.width = _UNLIMITED
    cells = [[_cell(value) for value in row] for row in rows]
    widths = {name: max((len(row[place]) for row in cells), default=0) for place, name in enumerate(columns)}
    wanted = {name: width if name in whole else min(width, _ENOUGH) for name, width in widths.items()}
    shown = _fitting(wanted, spare, console.width)
    cells = [[cell for name, cell in zip(columns, row, strict=True) if name in shown] for row in cells]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    roomy = sum(widths[name] for name in shown if name in whole) <= console.width * _WHOLE_SHARE
    for name in shown:
        table.add_column(name, min_width=widths[name] if name in whole and roomy else None)
    for row in cells:
        # Text, not str: rich would read square brackets in a title as markup.
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in row))
    if not console.is_terminal:
        console.width = max(1, console.measure(table).maximum)
    # Printed by ourselves: rich ends the program in its own way when the reader has gone.
    with console.capture() as captured:
        console.print(table)
    print("\n".join(line.rstrip() for line in captured.get().splitlines()).strip("\n"))


def print_marked(text: str, marks: Sequence[tuple[int, int]]) -> None:
    """Print a line of somebody else's text, indented, with parts of it marked where the reader is at a terminal."""
    from rich.console import Console
    from rich.text import Text

    line, done = Text("    "), 0
    for start, end in marks:
        # Piece by piece: what is written out gets longer.
        line.append(printable(text[done:start])).append(printable(text[start:end]), style="bold reverse")
        done = end
    line.append(printable(text[done:]))
    console = Console(highlight=False)
    with console.capture() as captured:
        console.print(line, soft_wrap=True)
    print(captured.get(), end="")


def _fitting(widths: Mapping[str, int], spare: Sequence[str], room: int) -> list[str]:
    """Return the columns to show, without those that can be spared while they do not fit."""
    shown = list(widths)
    for name in spare:
        if name not in shown:
            continue
        if sum(max(widths[each], len(each)) + _GAP for each in shown) <= room:
            break
        shown.remove(name)
    return shown


def age(at: datetime, now: datetime) -> str:
    """Return how long ago that was, in one unit."""
    return f"{lasting(at, now)} ago"


def lasting(since: datetime, now: datetime) -> str:
    """Return how long something has gone on, in one unit."""
    seconds = max(0, int((now - since).total_seconds()))
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit}"
    return f"{seconds} s"


def counted(number: int, noun: str) -> str:
    """Return `1 pane`, `2 panes`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def local(at: datetime) -> str:
    """Return a moment as the reader's clock shows it, with the offset."""
    return at.astimezone().isoformat(sep=" ", timespec="seconds")


def printable(text: str) -> str:
    """Return text that cannot move the cursor or colour the terminal it is shown on."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return printable(str(value))
