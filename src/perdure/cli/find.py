"""Finding what an argument means: a snapshot, a part of it."""

from __future__ import annotations

import argparse
import os
from typing import Literal

from msgspec import Struct

from perdure.cli._setup import path_argument
from perdure.errors import NotFound, SnapshotNotFound, UsageError
from perdure.live.find import both, spelled_for, spellings, which_session
from perdure.model.snapshot import CAPTURED, Snapshot, SnapshotSummary
from perdure.model.topology import Pane, Topology
from perdure.ports import SnapshotStore
from perdure.tmux.sockets import canonical


def add_latest_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the argument that says which server `latest` is about."""
    parser.add_argument(
        "--socket",
        metavar="PATH",
        type=lambda text: canonical(path_argument(text)),
        help="whose 'latest' is meant, when several servers are saved",
    )


def find_snapshot(store: SnapshotStore, name: str, *, uid: int, socket: str | None) -> Snapshot:
    """Return the snapshot an argument means: an id, the beginning of one, or `latest`.

    `latest` is the last good one of the server on `socket`; else of the only server there is, or of the default one
    of user `uid`. Which of several others is meant cannot be known.
    """
    if name != "latest":
        return store.get_snapshot(name)
    last: dict[str, SnapshotSummary] = {}
    for each in store.list_snapshots():
        if each.origin == CAPTURED and socket in (None, each.server.socket):
            last.setdefault(each.server.key, each)
    if not last:
        where = f" of {socket}" if socket else ""
        raise SnapshotNotFound(f"Nothing is saved{where} yet; `perdure save` keeps what runs now.")
    mine = [each for each in last.values() if _is_default(each, uid)]
    chosen = mine if len(mine) == 1 else list(last.values())
    if len(chosen) > 1:
        sockets = ", ".join(sorted({each.server.socket for each in chosen}))
        raise UsageError(f"Several servers are saved; say which one with --socket PATH: {sockets}.")
    return store.get_snapshot(chosen[0].id)


def _is_default(snapshot: SnapshotSummary, uid: int) -> bool:
    server = snapshot.server
    return server.uid == uid and os.path.basename(server.socket) == "default"


class Part(Struct, frozen=True, kw_only=True):
    """What a target means of a server: panes, and the one thing they are. Never empty."""

    panes: tuple[Pane, ...]
    #: `parts` where it is more than one session, window or pane.
    kind: Literal["session", "window", "pane", "parts"]
    #: tmux's id of that one thing, "" of several.
    id: str = ""
    #: The sessions it is named by; all there are for a pane that is named by its id.
    sessions: frozenset[str]


def panes_at(topology: Topology, target: str) -> tuple[Pane, ...]:
    """Return the panes a target means, as `part_at` finds them."""
    return part_at(topology, target).panes


def part_at(topology: Topology, target: str) -> Part:
    """Return what a target means: `%id`, or SESSION[:WINDOW[.PANE]] by exact name and index.

    A session's name holds no colon. A window's may hold dots: it is first taken whole, then up to the last one. A `=`
    before it, as tmux has it, is for names that would be taken for an option or for an id. Raises NotFound, and
    UsageError for a pane's id that a session is called by, and for what may be the name of two sessions.
    """
    pane = next((each for each in topology.panes if each.id == target), None)
    named = [part for each in spellings(target) if (part := _named(topology, each, as_given=each == target))]
    if pane is not None and named:
        place = [place_of(topology, pane)]
        raise UsageError(both(target, "pane", place, _ids(named[0]), place))
    if pane is not None:
        return Part(panes=(pane,), kind="pane", id=pane.id, sessions=frozenset(each.id for each in topology.sessions))
    if not named:
        raise NotFound(f"There is no {target!r} in this snapshot.")
    if len(named) > 1:
        names = {each.id: each.name for each in topology.sessions}
        found = [(names[min(part.sessions)], _ids(part)) for part in named]
        raise UsageError(which_session(target, found, names.values()))
    return named[0]


def place_of(topology: Topology, pane: Pane) -> str:
    """Return where a pane is, as a person would name it."""
    link = next(each for each in topology.links if each.window == pane.window)
    session = next(each for each in topology.sessions if each.id == link.session)
    return f"{session.name}:{link.index}.{pane.index}"


def session_called(topology: Topology, place: str, id: str) -> str:
    """Return a target that means a session, or a place in it, and neither an option, a pane nor another session.

    `place` begins with its name; the `id` will do where there is no such target.
    """
    name, colon, rest = place.partition(":")
    spelled = spelled_for(name, [each.name for each in topology.sessions])
    if spelled is None:
        return id
    return f"{spelled}:{rest}" if colon or spelled.startswith("%") else spelled


def _ids(part: Part) -> list[str]:
    return [pane.id for pane in part.panes]


def _named(topology: Topology, target: str, *, as_given: bool) -> Part | None:
    session, _, rest = target.partition(":")
    window, dot, pane_index = rest.rpartition(".")
    # With a `=` before it, it is a name and no id.
    sessions = frozenset(
        each.id for each in topology.sessions if session == each.name or (as_given and session == each.id)
    )
    kind: Literal["session", "window", "pane"]
    if panes := _panes(topology, sessions, rest, ""):
        kind, ids = ("window", {each.window for each in panes}) if rest else ("session", set(sessions))
    # Without a dot that would be pane 1 of any window, for a window 1 that is not there.
    elif dot and (panes := _panes(topology, sessions, window, pane_index)):
        kind, ids = "pane", {each.id for each in panes}
    else:
        return None
    if len(ids) > 1:
        return Part(panes=panes, kind="parts", sessions=sessions)
    return Part(panes=panes, kind=kind, id=ids.pop(), sessions=sessions)


def _panes(topology: Topology, sessions: frozenset[str], window: str, pane: str) -> tuple[Pane, ...]:
    names = {each.id: each.name for each in topology.windows}
    windows = {
        link.window
        for link in topology.links
        if link.session in sessions and window in ("", str(link.index), names.get(link.window), link.window)
    }
    return tuple(each for each in topology.panes if each.window in windows and pane in ("", str(each.index), each.id))
