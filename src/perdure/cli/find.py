"""Finding what an argument means: a snapshot, a part of it."""

from __future__ import annotations

import argparse
import os

from perdure.cli._setup import path_argument
from perdure.errors import NotFound, SnapshotNotFound, UsageError
from perdure.live.find import spellings
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


def panes_at(topology: Topology, target: str) -> tuple[Pane, ...]:
    """Return the panes a target means: `%id`, or SESSION[:WINDOW[.PANE]] by exact name and index.

    A session's name holds no colon. A window's may hold dots: it is first taken whole, then up to the last one. A `=`
    before it, as tmux has it, is for names that would be taken for an option.
    """
    found = next((panes for each in spellings(target) if (panes := _panes_at(topology, each))), ())
    if not found:
        raise NotFound(f"There is no {target!r} in this snapshot.")
    return found


def _panes_at(topology: Topology, target: str) -> tuple[Pane, ...]:
    session, _, rest = target.partition(":")
    window, dot, pane_index = rest.rpartition(".")
    return (
        tuple(pane for pane in topology.panes if pane.id == target)
        or _panes(topology, session, rest, "")
        # Without a dot that would be pane 1 of any window, for a window 1 that is not there.
        or (_panes(topology, session, window, pane_index) if dot else ())
    )


def _panes(topology: Topology, session: str, window: str, pane: str) -> tuple[Pane, ...]:
    ids = {each.id for each in topology.sessions if session in (each.name, each.id)}
    names = {each.id: each.name for each in topology.windows}
    windows = {
        link.window
        for link in topology.links
        if link.session in ids and window in ("", str(link.index), names.get(link.window), link.window)
    }
    return tuple(each for each in topology.panes if each.window in windows and pane in ("", str(each.index), each.id))
