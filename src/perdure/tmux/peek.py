"""One pane as it is at this moment: its facts and its visible lines, in one answer."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from perdure.errors import Unanswered
from perdure.model.text import decode
from perdure.tmux import run
from perdure.tmux.act import SHARED, Spot

# The title comes last, for it may hold anything but a newline.
_WORDS = (
    "pid",
    "pane_pid",
    "pane_tty",
    "pane_dead",
    "pane_dead_status",
    "pane_mode",
    "pane_input_off",
    "cursor_x",
    "cursor_y",
)
_FACTS = "|".join((*(f"#{{{word}}}" for word in _WORDS), SHARED, "#{pane_title}"))
_COUNT = len(_WORDS) + 2


class Peeked(NamedTuple):
    """What a pane shows, and what tmux says of it."""

    pid: int
    tty: str
    is_dead: bool
    #: How its program ended, None while it runs or when a signal ended it.
    status: int | None
    #: The mode it is in (`copy-mode` …), "" for none.
    mode: str
    title: str
    lines: tuple[str, ...]
    #: It was told to take no input.
    is_deaf: bool = False
    #: What is typed into it goes to others, too.
    is_shared: bool = False
    #: Column and line of the cursor, from 0.
    cursor: tuple[int, int] = (0, 0)


def peek(spot: Spot) -> Peeked | None:
    """Return what there is to see of a pane, None when it is gone, or its server is. Raises Unanswered."""
    words = ["display-message", "-p", "-t", spot.pane, _FACTS, ";", "capture-pane", "-p", "-t", spot.pane]
    client = run.start(spot.socket, words, owner=spot.owner, timeout=spot.timeout)
    run.gather([client])
    if client.status is None:
        raise Unanswered(f"The tmux server on {spot.socket} did not answer within {spot.timeout:g} s.")
    facts, *lines = client.answer.removesuffix(b"\n").split(b"\n")
    told = decode(facts).split("|", _COUNT - 1)
    # For a pane that is not there tmux 3.3a expands the format to nothing and says no more.
    if client.status or len(told) != _COUNT or not told[1] or spot.server not in (None, int(told[0])):
        return None
    _, pid, tty, dead, status, mode, deaf, x, y, shared, title = told
    return Peeked(
        int(pid),
        tty,
        dead == "1",
        int(status) if dead == "1" and status else None,
        mode,
        title,
        tuple(decode(line) for line in lines),
        is_deaf=deaf == "1",
        is_shared=shared == "1",
        cursor=(int(x), int(y)),
    )


def is_there(spot: Spot) -> bool:
    """Return whether the server of a pane is there, that very process, with the pane or without. Raises Unanswered."""
    client = run.start(spot.socket, ["display-message", "-p", "#{pid}"], owner=spot.owner, timeout=spot.timeout)
    run.gather([client])
    if client.status is None:
        raise Unanswered(f"The tmux server on {spot.socket} did not answer within {spot.timeout:g} s.")
    return client.status == 0 and (spot.server is None or decode(client.answer).strip() == str(spot.server))


def started_with(spot: Spot) -> tuple[str, ...]:
    """Return the words a pane was started with, as far as what tmux prints of them can be taken apart; () when it is gone."""
    client = run.start(
        spot.socket,
        ["display-message", "-p", "-t", spot.pane, "#{pane_start_command}"],
        owner=spot.owner,
        timeout=spot.timeout,
    )
    run.gather([client])
    if client.status is None:
        raise Unanswered(f"The tmux server on {spot.socket} did not answer within {spot.timeout:g} s.")
    try:
        # Its own way of quoting is near enough to a shell's: what differs is within words, which stay as many.
        return tuple(shlex.split(decode(client.answer.removesuffix(b"\n"))))
    except ValueError:
        return ()
