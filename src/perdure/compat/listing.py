"""Panes in the order, and as often, as `tmux list-panes -a` lists them."""

from __future__ import annotations

from typing import NamedTuple

from perdure.model.text import encode
from perdure.model.topology import Link, Pane, Session, Topology


class Shown(NamedTuple):
    """One pane where one session shows it; a window linked twice shows its panes twice."""

    session: Session
    link: Link
    pane: Pane


def sessions_by_name(topology: Topology) -> list[Session]:
    """Return the sessions as tmux lists them: by the bytes of their names."""
    return sorted(topology.sessions, key=lambda session: encode(session.name))


def shown_panes(topology: Topology) -> tuple[Shown, ...]:
    """Return every pane of every session, by session name, window index and pane index."""
    links: dict[str, list[Link]] = {}
    for link in topology.links:
        links.setdefault(link.session, []).append(link)
    panes: dict[str, list[Pane]] = {}
    for pane in sorted(topology.panes, key=lambda pane: pane.index):
        panes.setdefault(pane.window, []).append(pane)
    return tuple(
        Shown(session, link, pane)
        for session in sessions_by_name(topology)
        for link in sorted(links.get(session.id, ()), key=lambda link: link.index)
        for pane in panes.get(link.window, ())
    )
