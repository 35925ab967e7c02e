"""The `<user>.tsv` manifest of `tmux-persist`: one line per session with its name, directory and conversation.

The script reads it with tab as its field separator, and a shell takes several tabs in a row for one: a column
in the middle is never empty here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from perdure.compat.imported import UNSEEN_SIZE, broken, imported_process, rows
from perdure.compat.listing import sessions_by_name, shown_panes
from perdure.model.identity import Evidence, Identity
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Details, Link, Pane, Session, Topology, Window

#: The agent whose conversations the script resumes.
CLAUDE = "claude"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_UNWRITABLE = re.compile(r"[\t\n]")
# A tmux client without UTF-8 turns the script's tabs into underscores: name, pid and directory in one column.
_RUN_TOGETHER = re.compile(r".*_\d+_(?:/.*)?", re.DOTALL)
# Not a directory, and the script starts a session whose directory is missing at home.
_AT_HOME = "~"


def to_tsv(snapshot: Snapshot) -> tuple[str, tuple[str, ...]]:
    """Return the manifest, sessions by name, and a sentence for each session whose line cannot say what is so.

    The text is in the sense of `model.text`. A conversation stands in one line only: the script would start
    an agent for each.
    """
    panes: dict[str, list[Pane]] = {}
    for shown in shown_panes(snapshot.topology):
        panes.setdefault(shown.session.id, []).append(shown.pane)
    lines: list[str] = []
    warnings: list[str] = []
    told: set[str] = set()
    for session in sessions_by_name(snapshot.topology):
        if _UNWRITABLE.search(session.name):
            warnings.append(f"Session {session.name!r} is left out: its name has a tab or a line break.")
            continue
        pane, conversation = _chosen(panes.get(session.id, []), told)
        told.add(conversation)
        if not conversation and any(_conversation(pane) for pane in panes.get(session.id, ())):
            warnings.append(f"Session {session.name!r} shows a conversation that another session's line resumes.")
        cwd = _directory(session, pane, warnings)
        lines.append(f"{session.name}\t{cwd}\t{conversation}\n")
    return "".join(lines), tuple(warnings)


def from_tsv(raw: bytes, *, server: Server, taken_at: datetime) -> Capture:
    """Return what the manifest tells: sessions with one window and one pane each, conversations as guesses.

    Raises `ImportFailed` with the line of what is wrong.
    """
    found = list(_sessions(raw))
    topology = Topology(
        process=imported_process(taken_at),
        sessions=tuple(
            Session(id=f"${n}", name=name, created_at=taken_at, path=cwd) for n, (name, cwd, _) in enumerate(found)
        ),
        windows=tuple(_window(n, conversation) for n, (_, _, conversation) in enumerate(found)),
        links=tuple(Link(session=f"${n}", window=f"@{n}", index=0, active=True) for n in range(len(found))),
        panes=tuple(_pane(n, cwd, conversation) for n, (_, cwd, conversation) in enumerate(found)),
    )
    return Capture(server=server, taken_at=taken_at, topology=topology, details=Details())


def _chosen(panes: list[Pane], told: set[str]) -> tuple[Pane | None, str]:
    """Return the pane a session's line is about: the first with a conversation of its own, else the first."""
    for pane in panes:
        conversation = _conversation(pane)
        if conversation and conversation not in told:
            return pane, conversation
    return (panes[0] if panes else None), ""


def _conversation(pane: Pane) -> str:
    identity = pane.identity
    if identity is None or identity.agent != CLAUDE or not identity.certain or identity.prompted is False:
        return ""
    conversation = identity.conversation or ""
    return conversation if _UUID.fullmatch(conversation) else ""


def _directory(session: Session, pane: Pane | None, warnings: list[str]) -> str:
    """Return where the session starts again: a conversation is only found from where it was begun."""
    begun = pane.identity.home if pane and pane.identity and _conversation(pane) else None
    cwd = begun or (pane and (pane.cwd or pane.start_path)) or session.path
    if not cwd:
        warnings.append(f"Session {session.name!r} has no directory that is known; it will start at home.")
        return _AT_HOME
    bad = _UNWRITABLE.search(cwd)
    if not bad:
        return cwd
    parent = cwd[: bad.start()].rpartition("/")[0] or "/"
    warnings.append(f"Session {session.name!r} will start in {parent!r}: {cwd!r} has a tab or a line break.")
    return parent


def _sessions(raw: bytes) -> Iterator[tuple[str, str, str]]:
    names: set[str] = set()
    for number, columns in rows(raw):
        if len(columns) != 3:
            raise broken(number, f"there are {len(columns)} columns instead of 3")
        name, cwd, conversation = columns
        if not name:
            raise broken(number, "the session has no name")
        if name in names:
            raise broken(number, f"session {name!r} was there before")
        if not cwd and _RUN_TOGETHER.fullmatch(name):
            raise broken(number, "the columns run together, as a save under a locale without UTF-8 leaves them")
        if conversation and not _UUID.fullmatch(conversation):
            raise broken(number, f"{conversation!r} is not a conversation's id")
        names.add(name)
        yield name, cwd, conversation


def _window(number: int, conversation: str) -> Window:
    width, height = UNSEEN_SIZE
    name = CLAUDE if conversation else ""
    return Window(id=f"@{number}", name=name, width=width, height=height, layout="", visible_layout="")


def _pane(number: int, cwd: str, conversation: str) -> Pane:
    width, height = UNSEEN_SIZE
    return Pane(
        id=f"%{number}",
        window=f"@{number}",
        index=0,
        pid=0,
        tty="",
        width=width,
        height=height,
        active=True,
        cwd=cwd,
        start_path=cwd,
        command=CLAUDE if conversation else "",
        identity=_identity(conversation) if conversation else None,
    )


def _identity(conversation: str) -> Identity:
    return Identity(
        agent=CLAUDE,
        conversation=conversation,
        evidence=Evidence.GUESS,
        because=("imported from a tmux-persist manifest, which takes the newest transcript for the right one",),
    )
