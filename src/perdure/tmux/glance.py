"""Short looks at a running server: at some panes, or at how everything is laid out. One tmux client each.

Much cheaper than a whole survey (`formats.survey`), and asked for often: when something was printed, when tmux did
anything at all. Whatever is not understood to the last byte is no answer.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from perdure.errors import TmuxMissing
from perdure.model.digest import digest_of
from perdure.model.server import ServerProcess
from perdure.model.text import decode
from perdure.model.user import User
from perdure.tmux import run
from perdure.tmux.formats import WHO, Record
from perdure.tmux.parse import Garbled, Row, moment, number, read_greeting, read_process, read_record
from perdure.tmux.sockets import is_deserted, owner_of

# A client's window and pane are those it shows.
_CLIENT = Record("C", ("client_control_mode", "client_activity", "pane_id", "client_flags"), ())
_PANE = Record(
    "G",
    (
        "pane_id",
        "window_index",
        "pane_index",
        "pane_pid",
        "pane_dead",
        "pane_dead_status",
        "pane_dead_signal",
        "pane_in_mode",
        "alternate_on",
        "pane_width",
        "pane_height",
        "session_attached",
    ),
    ("session_name", "window_name", "pane_title"),
)
# The layout of everything. Of a server with many windows every further word of a record is felt, so nothing is asked
# for that follows from the rest: the current and the last window are the first two of a session's stack, and a zoomed
# window's layout as a whole cannot change.
_SESSION = Record("S", ("session_id", "session_stack"), ("session_name", "session_group"))
_LINK = Record(
    "W",
    ("session_id", "window_id", "window_index", "window_zoomed_flag", "window_visible_layout"),
    ("window_name",),
)
_PLACED = Record(
    "P",
    ("pane_id", "window_id", "pane_index", "pane_active", "pane_last", "pane_pid", "pane_dead"),
    ("pane_title",),
)


class Glimpse(Struct, frozen=True, kw_only=True):
    """One pane as it is now. Where its window is in several sessions, its place is the one tmux would name."""

    #: The session's name.
    session: str
    #: The window's number in it.
    window: int
    window_name: str
    #: The pane's number in the window.
    index: int
    title: str
    pid: int
    dead: bool
    exit_status: int | None
    exit_signal: int | None
    in_mode: bool
    #: Whether its program has the whole screen to itself.
    alternate: bool
    width: int
    height: int
    #: How many clients the session has.
    attached: int
    #: Whether a client shows this pane as the active one; not a program in control mode, nor a suspended client.
    visible: bool
    #: When the last of those clients did something; None when there is none.
    client_activity_at: datetime | None
    #: What it shows, a pane's height of lines; None when it was not wanted.
    lines: tuple[str, ...] | None


class Glance(Struct, frozen=True, kw_only=True):
    """Who answered, and the panes that were asked for and are there, by their ids."""

    process: ServerProcess
    panes: Mapping[str, Glimpse]


class Outlined(Struct, frozen=True, kw_only=True):
    """A pane of an outline."""

    title: str
    dead: bool
    pid: int


class Outline(Struct, frozen=True, kw_only=True):
    """How everything is laid out. Two with the same `digest` differ in titles at most."""

    process: ServerProcess
    digest: str
    #: By their ids.
    panes: Mapping[str, Outlined]

    @property
    def titles(self) -> dict[str, str]:
        """The panes' titles by their ids."""
        return {id: pane.title for id, pane in self.panes.items()}


class NoServer(Struct, frozen=True, kw_only=True):
    """Certainly nobody listens on the socket."""

    socket: str


def glance(socket: str, owner: User, panes: Mapping[str, bool], *, timeout: float = run.TIMEOUT) -> Glance | None:
    """Look at panes by their ids, at the visible lines of those whose value is True.

    A pane that is gone is absent. None when the server did not answer, or not in full: then nothing is known about any.
    A server is never started by it, and nothing is changed. `process` tells whether it is still the one the ids are of.
    """
    mark = os.urandom(8).hex()
    answer = _asked(socket, owner, ["source-file", "-"], timeout, script=_script(mark, panes))
    try:
        return read_glance(answer, mark, panes) if answer is not None else None
    except Garbled:
        return None


def outline(socket: str, owner: User, *, timeout: float = run.TIMEOUT) -> Outline | NoServer | None:
    """Return how everything on a server is laid out; None when it did not answer, or not in full.

    A server is never started by it, and nothing is changed.
    """
    mark = os.urandom(8).hex()
    command = ["display-message", "-p", f"{mark} begin {WHO}", ";", "list-sessions", "-F", _SESSION.format, ";"]
    command += ["list-windows", "-a", "-F", _LINK.format, ";", "list-panes", "-a", "-F", _PLACED.format, ";"]
    command += ["display-message", "-p", f"{mark} end {WHO}"]
    answer = _asked(socket, owner, command, timeout)
    try:
        if answer is not None:
            return read_outline(answer, mark)
    except Garbled:
        pass
    return NoServer(socket=socket) if _is_nobody_there(socket) else None


def read_glance(answer: bytes, mark: str, panes: Mapping[str, bool]) -> Glance:
    """Take the answer to a glance at these panes apart; raises `Garbled` for anything that does not fit."""
    process, at = read_greeting(answer, mark)
    clients, at = _records(answer, at, _CLIENT)
    watching = _watching(clients)
    found = {}
    marker = f"{mark} ".encode()
    for id, wants_lines in panes.items():
        if not answer.startswith(marker + b"G", at):
            raise Garbled("a pane was not told of")
        row, at = read_record(answer, at + len(marker) + 1, _PANE)
        # From the newline before: of a pane that is gone there is not a single line.
        end = answer.find(b"\n" + marker, at - 1) + 1
        if not end or (end > at and not (wants_lines and row.words[0])):
            raise Garbled("something stands where a pane should")
        if row.words[0]:
            lines = _lines(answer[at:end]) if wants_lines else None
            found[id] = _glimpse(id, row, watching.get(id, ()), lines)
        at = end
    _check_ending(answer, at, mark, process)
    return Glance(process=process, panes=found)


def read_outline(answer: bytes, mark: str) -> Outline:
    """Take the answer to an outline apart; raises `Garbled` for anything that does not fit."""
    process, at = read_greeting(answer, mark)
    begun = at
    sessions, at = _records(answer, at, _SESSION)
    windows, at = _records(answer, at, _LINK)
    laid_out = answer[begun:at]
    placed, at = _records(answer, at, _PLACED)
    if {row.words[0] for row in windows} != {row.words[0] for row in sessions}:
        raise Garbled("a window belongs to no session, or a session has no window")
    if {row.words[1] for row in placed} != {row.words[1] for row in windows}:
        raise Garbled("a pane belongs to no window, or a window has no pane")
    _check_ending(answer, at, mark, process)
    parts = [laid_out, *(" ".join(row.words).encode("latin-1") for row in placed)]
    panes = {}
    for row in placed:
        id, _, _, _, _, pid, dead = row.words
        panes[id] = Outlined(title=row.texts[0], dead=dead == "1", pid=number(pid))
    return Outline(process=process, digest=digest_of(b"\n".join(parts)), panes=panes)


def _script(mark: str, panes: Mapping[str, bool]) -> bytes:
    """One command a line, so that a pane which is gone costs only itself."""
    script = [f"display-message -p '{mark} begin {WHO}'", f"list-clients -F '{_CLIENT.format}'"]
    for id, wants_lines in panes.items():
        if not (id.startswith("%") and id[1:].isdecimal() and id.isascii()):
            raise ValueError(f"{id!r} is no pane's id")
        # For a pane that is not there this prints a record with nothing in it.
        script.append(f"display-message -p -t '{id}' '{mark} {_PANE.format}'")
        if wants_lines:
            script.append(f"capture-pane -p -t '{id}'")
    script.append(f"display-message -p '{mark} end {WHO}'")
    return "\n".join(script).encode() + b"\n"


def _asked(socket: str, owner: User, command: Sequence[str], timeout: float, script: bytes = b"") -> bytes | None:
    """Return what tmux printed, None when it did not come to an end."""
    try:
        if owner_of(socket) != owner.uid:
            # Whoever listens there would be handed our environment.
            return None
        client = run.start(socket, command, owner=owner, script=script, timeout=timeout)
    except (OSError, TmuxMissing):
        # No process to be had, or tmux is just being replaced by a newer one: it is asked again later.
        return None
    run.gather([client])
    return client.answer if client.status is not None else None


def _is_nobody_there(socket: str) -> bool:
    try:
        return owner_of(socket) is None or is_deserted(socket)
    except OSError:
        return False


def _records(answer: bytes, at: int, record: Record) -> tuple[list[Row], int]:
    """Return the records of one kind that stand there, and where the rest begins."""
    rows, letter = [], record.letter.encode()
    while answer.startswith(letter, at):
        row, at = read_record(answer, at + 1, record)
        rows.append(row)
    return rows, at


def _check_ending(answer: bytes, at: int, mark: str, process: ServerProcess) -> None:
    last = f"{mark} end ".encode()
    if not answer.startswith(last, at) or not answer.endswith(b"\n"):
        raise Garbled("the answer is cut short")
    if read_process(answer[at + len(last) :]) != process:
        raise Garbled("another server answered in the end")


def _watching(clients: Sequence[Row]) -> Mapping[str, Sequence[datetime]]:
    """Return by the panes that clients show when those clients last did something."""
    found: dict[str, list[datetime]] = {}
    for row in clients:
        control, activity, pane, flags = row.words
        if control != "1" and "suspended" not in flags.split(","):
            found.setdefault(pane, []).append(moment(activity))
    return found


def _glimpse(id: str, row: Row, watching: Sequence[datetime], lines: tuple[str, ...] | None) -> Glimpse:
    pane, window, index, pid, dead, status, signal, mode, alternate, width, height, attached = row.words
    session, window_name, title = row.texts
    if pane != id:
        raise Garbled("another pane was told of")
    return Glimpse(
        session=session,
        window=number(window),
        window_name=window_name,
        index=number(index),
        title=title,
        pid=number(pid),
        dead=dead == "1",
        exit_status=number(status) if status else None,
        exit_signal=number(signal) if signal else None,
        in_mode=mode not in ("", "0"),
        alternate=alternate == "1",
        width=number(width),
        height=number(height),
        attached=number(attached or "0"),
        visible=bool(watching),
        client_activity_at=max(watching, default=None),
        lines=lines,
    )


def _lines(text: bytes) -> tuple[str, ...]:
    return tuple(decode(line) for line in text.removesuffix(b"\n").split(b"\n"))
