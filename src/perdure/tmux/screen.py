"""What one pane shows now, without colours."""

from __future__ import annotations

from perdure.model.text import decode
from perdure.model.user import User
from perdure.tmux import run


def read_lines(socket: str, pane: str, owner: User, *, timeout: float = run.TIMEOUT) -> tuple[str, ...] | None:
    """Return the visible lines of a pane, None when the server does not give them.

    By the pane's id, never by a name: a name would give whichever pane is the active one by now.
    """
    client = run.start(socket, ["capture-pane", "-p", "-t", pane], owner=owner, timeout=timeout)
    run.gather([client])
    if client.status != 0:
        return None
    return tuple(decode(line) for line in client.answer.removesuffix(b"\n").split(b"\n"))
