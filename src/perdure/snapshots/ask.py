"""The first step of a capture: the question is on its way before anything heavy is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import NamedTuple

from perdure.model.user import User
from perdure.tmux import formats, run
from perdure.tmux.sockets import is_deserted, owner_of

#: Where the process table is cheap to read we read it ourselves; elsewhere tmux is asked to.
PANE = formats.PANE if sys.platform.startswith("linux") else formats.PANE_LOCATED


class Question(NamedTuple):
    """A server that is being asked, or why it is not."""

    socket: str
    owner: User
    mark: str
    client: run.Client | None
    #: Set when the socket was not touched: (reason, sentence).
    refusal: tuple[str, str] | None = None


def ask(
    socket: str, owner: User, *, options: bool = True, timeout: float = run.TIMEOUT, knock: bool = False
) -> Question:
    """Ask one server for everything it has and return at once.

    A socket that belongs to somebody else is not touched: whoever listens there would be handed our environment. With
    `knock` it is first seen whether anybody listens at all: much cheaper where nobody does.
    """
    mark = os.urandom(8).hex()
    try:
        holder = owner_of(socket)
    except OSError as error:
        return Question(socket, owner, mark, None, ("unreachable", f"{socket}: {error.strerror}."))
    if holder is None:
        return Question(socket, owner, mark, None, ("no-server", f"No server: nothing is at {socket}."))
    if holder != owner.uid:
        return Question(socket, owner, mark, None, ("refused", _foreign(socket, holder, owner)))
    if knock and is_deserted(socket):
        return Question(socket, owner, mark, None, ("no-server", f"No server runs on {socket}."))
    command = formats.survey(mark, pane=PANE, options=options)
    return Question(socket, owner, mark, run.start(socket, command, owner=owner, timeout=timeout))


def ask_again(question: Question, *, unknown: Iterable[str], panes: list[str], lines: int, timeout: float) -> Question:
    """Ask a server that has answered for the options of new ids and the scrollback of panes.

    With a mark of its own, handed over in the script: the first one stood in the arguments of a process, where a
    program in a pane may have seen and shown it.
    """
    mark = os.urandom(8).hex()
    script = formats.revisit(mark, unknown=unknown, panes=panes, lines=lines)
    client = run.start(question.socket, ["source-file", "-"], script=script, owner=question.owner, timeout=timeout)
    return question._replace(mark=mark, client=client)


def _foreign(socket: str, holder: int, owner: User) -> str:
    return f"Refused: {socket} belongs to uid {holder}, not to {owner.name} (uid {owner.uid})."
