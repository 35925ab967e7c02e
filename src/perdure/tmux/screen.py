"""What one pane shows now, without colours."""

from __future__ import annotations

from perdure.model.text import decode
from perdure.model.user import User
from perdure.tmux import run


def read_lines(socket: str, pane: str, owner: User, *, timeout: float = run.TIMEOUT) -> tuple[str, ...] | None:
    """Return the visible lines of a pane, None when the server does not give them.

    By the pane's id, never by a name: a name would give whichever pane is the active one by now.
    """
    return _asked(socket, ["capture-pane", "-p", "-t", pane], owner, timeout)


def read_lines_and_history(
    socket: str, pane: str, owner: User, *, most: int, timeout: float = run.TIMEOUT
) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the visible lines of a pane, and at most so many that scrolled away above them.

    Of a program that has the whole screen to itself nothing scrolls away: what is above is not its own, and left out.
    """
    words = ["display-message", "-p", "-t", pane, "#{alternate_on} #{pane_height}", ";"]
    told = _asked(socket, [*words, "capture-pane", "-p", "-S", f"-{most}", "-t", pane], owner, timeout)
    if not told or len(facts := told[0].split(" ")) != 2:
        return None
    is_alone, height = facts[0] == "1", int(facts[1])
    lines = told[1:]
    return lines[-height:], () if is_alone else lines[:-height]


def _asked(socket: str, words: list[str], owner: User, timeout: float) -> tuple[str, ...] | None:
    client = run.start(socket, words, owner=owner, timeout=timeout)
    run.gather([client])
    if client.status != 0:
        return None
    return tuple(decode(line) for line in client.answer.removesuffix(b"\n").split(b"\n"))
