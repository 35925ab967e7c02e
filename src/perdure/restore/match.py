"""What of a snapshot is there already. Pure.

Within one server process tmux's ids tell; a new server numbers everything anew, so there a session is known by its
exact name, a window by its index in that session, and panes by their order in that window.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from perdure.model.topology import Link, Pane, Topology


class There(Struct, frozen=True, kw_only=True):
    """Ids of the snapshot's sessions, windows and panes that are there, with what they are called now."""

    sessions: Mapping[str, str] = {}
    windows: Mapping[str, str] = {}
    panes: Mapping[str, str] = {}


def match(saved: Topology, living: Topology | None, making: frozenset[str] = frozenset()) -> There:
    """Return what of `saved` lives. Nothing living stands for two things of the snapshot.

    `making` is what an interrupted restore was about to make: a session of these may not have its name yet, nor its
    first window its index.
    """
    if living is None:
        return There()
    same = (saved.process.pid, saved.process.started_at) == (living.process.pid, living.process.started_at)
    sessions = _sessions(saved, living, by_id=same)
    sessions |= _half_made_sessions(saved, living, sessions, making)
    windows = _first_windows(saved, living, sessions, making)
    windows = _windows(saved, living, sessions, windows, by_id=same)
    return There(sessions=sessions, windows=windows, panes=_panes(saved, living, windows, by_id=same))


def free_index(wanted: int, used: Iterable[int]) -> int:
    """Return the index itself when it is free, else the first one above all that are used."""
    taken = set(used)
    return wanted if wanted not in taken else max(taken) + 1


def _sessions(saved: Topology, living: Topology, *, by_id: bool) -> dict[str, str]:
    found = _same_ids((each.id for each in saved.sessions), (each.id for each in living.sessions)) if by_id else {}
    taken = set(found.values())
    names = {each.name: each.id for each in living.sessions if each.id not in taken}
    return found | {each.id: names[each.name] for each in saved.sessions if each.id not in found and each.name in names}


def _half_made_sessions(
    saved: Topology, living: Topology, known: Mapping[str, str], making: frozenset[str]
) -> dict[str, str]:
    """A group is called after its first session, which has the group's name until it is given its own."""
    names = {each.name: each.id for each in living.sessions if each.id not in known.values()}
    left = (each for each in saved.sessions if each.id in making and each.id not in known)
    return {each.id: names.pop(each.group) for each in left if each.group in names}


def _first_windows(
    saved: Topology, living: Topology, sessions: Mapping[str, str], making: frozenset[str]
) -> dict[str, str]:
    """The only window of a session that is being made is its first one, wherever it stands."""
    places: dict[str, list[str]] = {}
    for link in living.links:
        places.setdefault(link.session, []).append(link.window)
    found: dict[str, str] = {}
    for session in sessions.keys() & making:
        only = places.get(sessions[session], [])
        first = next((link.window for link in saved.links if link.session == session), None)
        if len(only) == 1 and first is not None:
            found[first] = only[0]
    return found


def _windows(
    saved: Topology, living: Topology, sessions: Mapping[str, str], known: Mapping[str, str], *, by_id: bool
) -> dict[str, str]:
    found = dict(known)
    if by_id:
        found |= _same_ids((each.id for each in saved.windows), (each.id for each in living.windows))
    taken = set(found.values())
    places = {(link.session, link.index): link.window for link in living.links if link.window not in taken}
    for link in saved.links:
        session = sessions.get(link.session)
        # A session that lived on has kept its ids: another window in this place was made by somebody since.
        if session is None or link.window in found or (by_id and session == link.session):
            continue
        window = places.get((session, link.index))
        if window is not None and window not in taken:
            found[link.window] = window
            taken.add(window)
    return found


def _panes(saved: Topology, living: Topology, windows: Mapping[str, str], *, by_id: bool) -> dict[str, str]:
    found = _same_ids((each.id for each in saved.panes), (each.id for each in living.panes)) if by_id else {}
    now, then = by_window(living.panes), by_window(saved.panes)
    for window, panes in then.items():
        there = windows.get(window)
        if there is None or (by_id and there == window):
            continue
        for pane, other in zip(panes, now.get(there, ()), strict=False):
            found.setdefault(pane.id, other.id)
    return found


def _same_ids(saved: Iterable[str], living: Iterable[str]) -> dict[str, str]:
    now = set(living)
    return {id: id for id in saved if id in now}


def by_window(panes: Iterable[Pane]) -> dict[str, list[Pane]]:
    """Return the panes of each window in their order."""
    found: dict[str, list[Pane]] = {}
    for pane in sorted(panes, key=lambda pane: pane.index):
        found.setdefault(pane.window, []).append(pane)
    return found


def used_indexes(links: Iterable[Link]) -> dict[str, set[int]]:
    """Return which indexes are taken in each session."""
    found: dict[str, set[int]] = {}
    for link in links:
        found.setdefault(link.session, set()).add(link.index)
    return found
