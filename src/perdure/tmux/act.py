"""What is done to a pane, a session or a server: making, typing, ending.

Everything goes by tmux's own ids, never by a name, and only to the server process the ids are of: on another that took
its place on the socket, they are somebody's panes. What is typed goes to the program that was looked at, too.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import NamedTuple

from perdure.errors import NotFound, PerdureError, Unanswered
from perdure.model.text import decode
from perdure.model.user import User
from perdure.tmux import run
from perdure.tmux.quote import line, literal
from perdure.tmux.sockets import refuse_strangers

#: Modes that can be left without a trace; others are somebody's choosing.
PASSING = ("copy-mode", "view-mode")

#: Whether what is typed into a pane goes to others of its window, too: `synchronize-panes`.
SHARED = "#{&&:#{pane_synchronized},#{!=:#{window_panes},1}}"
#: Why nothing is typed then: an answer to one agent would be one to all of them.
OTHERS_TOO = "what is typed there goes to other panes of its window, too (synchronize-panes)"

_REPLACED = "perdure-replaced"
_MADE = "#{pid} #{session_id} #{window_id} #{pane_id}|#{session_name}"
#: What tmux says when what is to be ended is not there any more.
_GONE = ("can't find ", "no server running", "error connecting", "server exited", "lost server", "no such session")


class Spot(NamedTuple):
    """A pane, by its id on one server process."""

    socket: str
    owner: User
    pane: str
    #: The server's process; None where any will do.
    server: int | None = None
    timeout: float = run.TIMEOUT
    #: What was started in the pane; None where anything will do. Another that was started in its place gets nothing.
    first: int | None = None
    #: When the server's process began, as tmux's `start_time` has it; None where any will do.
    since: int | None = None


class Made(NamedTuple):
    """A new session, with the one pane it has."""

    server: int
    session: str
    name: str
    window: str
    pane: str


class NameTaken(PerdureError):
    """There is a session of that name already."""

    exit_code = 6
    http_status = 409


def leave_mode(spot: Spot) -> None:
    """Take a pane out of copy or view mode; only one that is in it can leave it."""
    _do(spot, ["send-keys", "-t", spot.pane, "-X", "cancel"])


def paste(spot: Spot, text: bytes) -> None:
    """Give a pane this text, as one paste where its program knows pastes. The text is seen by tmux alone."""
    name = f"perdure-{os.urandom(8).hex()}"
    # Without -r tmux would give a carriage return for every newline, which is Enter.
    pasting = ["paste-buffer", "-d", "-p", "-r", "-b", name, "-t", spot.pane]
    try:
        _do(spot, pasting, before=["load-buffer", "-b", name, "-"], script=text)
    except PerdureError:
        _run(spot, ["delete-buffer", "-b", name])
        raise


def press(spot: Spot, keys: Sequence[str]) -> None:
    """Press keys in a pane, by tmux's names for them."""
    _do(spot, ["send-keys", "-t", spot.pane, "--", *keys])


def end(spot: Spot, kind: str, id: str) -> bool:
    """End a `session`, `window` or `pane`; False when it was gone already. Raises when it could not be ended."""
    try:
        _do(spot, [f"kill-{kind}", "-t", id])
    except NotFound:
        return False
    return True


def end_unused(spot: Spot, session: str) -> None:
    """End a session that has this one pane, at which nobody looks, and which shares nothing; any other stays as it is."""
    unused = ("#{==:#{session_windows}#{window_panes},11}", "#{==:#{session_attached}#{session_grouped},00}")
    with suppress(NotFound):
        _do(spot, ["kill-session", "-t", session], wanted=(*unused, "#{==:#{window_linked},0}"))


def session_names(socket: str, owner: User, *, timeout: float = run.TIMEOUT) -> tuple[str, ...] | None:
    """Return what the sessions of a server are called, None when there is no server."""
    spot = Spot(socket, owner, "", timeout=timeout)
    client = _run(spot, ["list-sessions", "-F", "#{session_name}"])
    if client.status is None:
        raise _silent(spot)
    if client.status:
        if _is_gone(client.complaint):
            return None
        raise PerdureError(f"tmux on {socket}: {client.complaint}.")
    return tuple(decode(name) for name in client.answer.split(b"\n") if name)


def new_session(
    socket: str,
    owner: User,
    name: str,
    words: Sequence[str],
    *,
    cwd: str,
    environ: Mapping[str, str],
    inherits: bool,
    prefix: Sequence[str] = (),
    timeout: float = run.TIMEOUT,
) -> Made:
    """Make a session whose one pane runs `words`, or a shell without; starts the server when there is none.

    A server that is started gets `environ`, all of it. One that runs takes over what tmux takes of a new client's
    (`update-environment`), unless `inherits` is False. `prefix` starts the client elsewhere (host/scope.py). Raises
    NameTaken, Refused when the socket is somebody else's, UsageError when it is none, and PerdureError with tmux's own words.
    """
    refuse_strangers(socket, owner)
    command = ["new-session", "-d", *(() if inherits else ("-E",)), "-P", "-F", _MADE, "-s", literal(name)]
    command += ["-c", literal(cwd), *(("--", *map(_word, words)) if words else ())]
    process = run.spawn(
        ["-S", socket, *command],
        owner=owner,
        environ=environ,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        prefix=prefix,
    )
    client = run.Client(process, b"", time.monotonic() + timeout)
    run.gather([client])
    if client.status is None:
        raise Unanswered(f"The tmux server on {socket} did not say within {timeout:g} s whether it made a session.")
    if client.status:
        if client.complaint.startswith("duplicate session"):
            raise NameTaken(f"There is a session called {name!r} already.")
        raise PerdureError(f"tmux made no session: {client.complaint or 'it did not say why'}.")
    ids, _, called = decode(client.answer.removesuffix(b"\n")).partition("|")
    server, session, window, pane = ids.split(" ")
    return Made(int(server), session, called, window, pane)


def _do(
    spot: Spot, words: Sequence[str], *, before: Sequence[str] = (), script: bytes = b"", wanted: Sequence[str] = ()
) -> None:
    """Have one command done. Raises NotFound when what it is about is gone, else PerdureError in tmux's own words.

    `wanted` are formats that have to be true of the pane.
    """
    wanted = list(wanted)
    wanted += [f"#{{==:#{{pid}},{spot.server}}}"] if spot.server is not None else []
    wanted += [f"#{{==:#{{start_time}},{spot.since}}}"] if spot.since is not None else []
    wanted += [f"#{{==:#{{pane_pid}},{spot.first}}}"] if spot.first is not None else []
    if not wanted:
        command = [*map(_word, words)]
    else:
        # By tmux itself, in the same breath: between a look and a command anybody may come.
        inner = line(words).decode("ascii").strip()
        where = ["-t", spot.pane] if spot.first is not None else []
        # tmux compares two at a time.
        condition = reduce(lambda one, other: f"#{{&&:{one},{other}}}", wanted)
        command = ["if-shell", "-F", *where, condition, inner, f"display-message -p {_REPLACED}"]
    client = _run(spot, [*before, *((";",) if before else ()), *command], script)
    if client.status is None:
        raise _silent(spot)
    if client.status and _is_gone(client.complaint):
        raise NotFound(f"{spot.pane or spot.socket} is not there any more.")
    if client.status:
        raise PerdureError(f"tmux refused: {client.complaint}.")
    if client.answer.strip() == _REPLACED.encode():
        what = "server" if spot.first is None else f"program in {spot.pane}, or the server"
        raise NotFound(f"The {what} on {spot.socket} was replaced by another, so nothing was done.")


def _run(spot: Spot, words: Sequence[str], script: bytes = b"") -> run.Client:
    client = run.start(spot.socket, words, owner=spot.owner, script=script, timeout=spot.timeout)
    run.gather([client])
    return client


def _silent(spot: Spot) -> Unanswered:
    return Unanswered(f"The tmux server on {spot.socket} did not answer within {spot.timeout:g} s.")


def _is_gone(complaint: str) -> bool:
    return complaint.startswith(_GONE)


def _word(word: str) -> str:
    """Return a word as an argument: at the end of one, tmux takes a semicolon for the end of the command."""
    return f"{word[:-1]}\\;" if word.endswith(";") else word
