"""What differs between two states of a server. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import Struct

from perdure.model.topology import Link, Pane, Session, Topology, Window

Part = TypeVar("Part", Session, Window, Pane)


class Change(Struct, frozen=True, kw_only=True):
    """One difference: something gone, something new, or one property that changed."""

    kind: str
    #: The session, window or pane, as a person would name it.
    target: str
    #: gone, new or changed.
    change: str
    property: str | None = None
    before: object = None
    after: object = None


# Ids and process numbers name things for tmux and the kernel; a person would not call them a difference.
_NO_DIFFERENCE = frozenset({"id", "pid", "tty", "window", "created_at", "identity", "program"})

_LAYOUTS = frozenset({"layout", "visible_layout"})
# A layout begins with a check sum, and names the pane in each cell.
_CHECK_SUM, _PANE_IN_CELL = re.compile(r"^[0-9a-f]{4},"), re.compile(r"(\d+x\d+,\d+,\d+),\d+(?!x)")


def diff(before: Topology, after: Topology) -> list[Change]:
    """Return what changed, sessions first.

    Within one server process things are matched by tmux's ids; across a restart by name and place, since a new
    server numbers everything anew.
    """
    same = before.process.pid == after.process.pid and before.process.started_at == after.process.started_at
    changes: list[Change] = []
    for kind, left, right in (
        ("session", _sessions(before, by_id=same), _sessions(after, by_id=same)),
        ("window", _windows(before, by_id=same), _windows(after, by_id=same)),
        ("pane", _panes(before, by_id=same), _panes(after, by_id=same)),
    ):
        changes += _compare(kind, left, right)
    if same:  # across a restart, what moved is gone from one place and new in another
        changes += _moved(before, after)
    return [*changes, *_switched(before, after, by_id=same)]


_Named = Mapping[str, tuple[str, Session | Window | Pane]]


def _compare(kind: str, before: _Named, after: _Named) -> Iterator[Change]:
    for key, (name, _) in before.items():
        if key not in after:
            yield Change(kind=kind, target=name, change="gone")
    for key, (name, part) in after.items():
        if key not in before:
            yield Change(kind=kind, target=name, change="new")
            continue
        for property, old, new in _differences(before[key][1], part):
            yield Change(kind=kind, target=name, change="changed", property=property, before=old, after=new)


def _differences(
    before: Session | Window | Pane, after: Session | Window | Pane
) -> Iterator[tuple[str, object, object]]:
    for name in before.__struct_fields__:
        old, new = getattr(before, name), getattr(after, name, None)
        if name not in _NO_DIFFERENCE and (_shape(old) != _shape(new) if name in _LAYOUTS else old != new):
            yield name, old, new
    if isinstance(before, Pane) and isinstance(after, Pane):
        yield from _contents(before, after)


def _shape(layout: object) -> str:
    return _PANE_IN_CELL.sub(r"\1", _CHECK_SUM.sub("", str(layout)))


def _contents(before: Pane, after: Pane) -> Iterator[tuple[str, object, object]]:
    for name in ("agent", "conversation", "certain", "evidence"):
        old, new = getattr(before.identity, name, None), getattr(after.identity, name, None)
        if old != new:
            yield name, old, new
    old_argv, new_argv = (list(each.program.argv) if each.program else None for each in (before, after))
    if old_argv != new_argv:
        yield "program", old_argv, new_argv


def _sessions(topology: Topology, *, by_id: bool) -> _Named:
    return {each.id if by_id else each.name: (each.name, each) for each in topology.sessions}


def _windows(topology: Topology, *, by_id: bool) -> _Named:
    windows = {each.id: each for each in topology.windows}
    named = {}
    for place, link in _places(topology):
        named[link.window if by_id else place] = (place, windows[link.window])
    return named


def _panes(topology: Topology, *, by_id: bool) -> _Named:
    places = {link.window: place for place, link in reversed(_places(topology))}
    named = {}
    for pane in topology.panes:
        place = f"{places[pane.window]}.{pane.index}"
        named[pane.id if by_id else place] = (place, pane)
    return named


def _places(topology: Topology) -> list[tuple[str, Link]]:
    names = {each.id: each.name for each in topology.sessions}
    return [(f"{names[link.session]}:{link.index}", link) for link in topology.links]


def _moved(before: Topology, after: Topology) -> Iterator[Change]:
    """Yield the windows that are at other places now, and the panes that are in another window."""
    for kind, named, old, new in (
        ("window", _windows(after, by_id=True), _homes(before), _homes(after)),
        ("pane", _panes(after, by_id=True), _pane_homes(before), _pane_homes(after)),
    ):
        for id in (each for each in new if each in old):
            # By id: a session that got another name has not moved its windows.
            if set(old[id]) != set(new[id]):
                was, now = (", ".join(homes[id].values()) for homes in (old, new))
                yield Change(kind=kind, target=named[id][0], change="changed", property="place", before=was, after=now)


_Homes = dict[str, dict[object, str]]


def _homes(topology: Topology) -> _Homes:
    homes: _Homes = {}
    for place, link in _places(topology):
        homes.setdefault(link.window, {})[link.session, link.index] = place
    return homes


def _pane_homes(topology: Topology) -> _Homes:
    windows = _windows(topology, by_id=True)
    return {pane.id: {pane.window: windows[pane.window][0]} for pane in topology.panes}


def _switched(before: Topology, after: Topology, *, by_id: bool) -> Iterator[Change]:
    """Yield the sessions that show another of their windows."""
    old, new = (_shown(topology, by_id=by_id) for topology in (before, after))
    named = _sessions(after, by_id=by_id)
    for key in (each for each in new if each in old):
        if old[key] != new[key]:
            yield Change(
                kind="session",
                target=named[key][0],
                change="changed",
                property="active_window",
                before=old[key],
                after=new[key],
            )


def _shown(topology: Topology, *, by_id: bool) -> dict[str, int]:
    names = {each.id: each.name for each in topology.sessions}
    return {link.session if by_id else names[link.session]: link.index for link in topology.links if link.active}


def as_text(value: object) -> str:
    """Return a property's value for a person."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
