"""Finding what an argument means: a snapshot, a part of it."""

from __future__ import annotations

from perdure.errors import NotFound, SnapshotNotFound
from perdure.model.snapshot import CAPTURED, Snapshot
from perdure.model.topology import Pane, Topology
from perdure.ports import SnapshotStore


def find_snapshot(store: SnapshotStore, name: str) -> Snapshot:
    """Return the snapshot an argument means: an id, the beginning of one, or `latest`."""
    if name != "latest":
        return store.get_snapshot(name)
    newest = next((each for each in store.list_snapshots() if each.origin == CAPTURED), None)
    if newest is None:
        raise SnapshotNotFound("Nothing is saved yet; `perdure save` keeps what runs now.")
    return store.get_snapshot(newest.id)


def panes_at(topology: Topology, target: str) -> tuple[Pane, ...]:
    """Return the panes a target means: `%id`, or SESSION[:WINDOW[.PANE]] by exact name and index.

    A session name cannot hold a colon, nor can an index hold a dot, so this reads in one way only.
    """
    if target.startswith("%"):
        found = tuple(pane for pane in topology.panes if pane.id == target)
    else:
        session, _, rest = target.partition(":")
        window, _, pane_index = rest.partition(".")
        found = _panes(topology, session, window, pane_index)
    if not found:
        raise NotFound(f"There is no {target!r} in this snapshot.")
    return found


def _panes(topology: Topology, session: str, window: str, pane: str) -> tuple[Pane, ...]:
    ids = {each.id for each in topology.sessions if session in (each.name, each.id)}
    names = {each.id: each.name for each in topology.windows}
    windows = {
        link.window
        for link in topology.links
        if link.session in ids and window in ("", str(link.index), names.get(link.window), link.window)
    }
    return tuple(each for each in topology.panes if each.window in windows and pane in ("", str(each.index), each.id))
