"""What one pane shows, and what has scrolled away above it, for somebody who wants to read it."""

from __future__ import annotations

from msgspec import Struct

from perdure.errors import NotFound, Unanswered
from perdure.model.text import decode
from perdure.tmux import run
from perdure.tmux.act import Spot

# The title comes last, for it may hold anything but a newline.
_WORDS = (
    "pid",
    "pane_id",
    "pane_width",
    "pane_height",
    "cursor_x",
    "cursor_y",
    "history_size",
    "alternate_on",
    "pane_title",
)
_FACTS = "|".join(f"#{{{word}}}" for word in _WORDS)


class Shown(Struct, frozen=True, kw_only=True):
    """A pane's text at one moment."""

    cols: int
    rows: int
    #: Column and line of the cursor, from 0.
    cursor: tuple[int, int]
    title: str
    #: Whether its program has the whole screen to itself: what is above is not its own.
    alternate: bool
    #: How many lines have scrolled away and are still there.
    history: int
    #: From the top of what was asked for to the last line that is visible.
    lines: tuple[str, ...]


def read_shown(spot: Spot, *, above: int = 0, colours: bool = False) -> Shown:
    """Return what a pane shows, and at most so many lines above; broken lines are whole where there are lines above.

    Raises NotFound when it is gone, and Unanswered.
    """
    how = ["-p", *(("-e",) if colours else ()), *(("-J", "-S", f"-{above}") if above else ())]
    words = ["display-message", "-p", "-t", spot.pane, _FACTS, ";", "capture-pane", *how, "-t", spot.pane]
    client = run.start(spot.socket, words, owner=spot.owner, timeout=spot.timeout)
    run.gather([client])
    if client.status is None:
        raise Unanswered(f"The tmux server on {spot.socket} did not answer within {spot.timeout:g} s.")
    facts, *lines = client.answer.removesuffix(b"\n").split(b"\n")
    told = decode(facts).split("|", len(_WORDS) - 1)
    if client.status or len(told) != len(_WORDS) or told[1] != spot.pane or spot.server not in (None, int(told[0])):
        raise NotFound(f"{spot.pane} is not there any more.")
    _, _, cols, rows, x, y, history, alternate, title = told
    return Shown(
        cols=int(cols),
        rows=int(rows),
        cursor=(int(x), int(y)),
        title=title,
        alternate=alternate == "1",
        history=int(history or 0),
        lines=tuple(decode(line) for line in lines),
    )
