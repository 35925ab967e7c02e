"""What ended with a server that another has followed, and was not seen since. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, structs

from perdure.model.event import EventKind, StoredEvent
from perdure.model.plan import Restore, Result
from perdure.model.snapshot import Snapshot, Whereabouts
from perdure.model.topology import Pane, Topology
from perdure.restore.living import conversation_of

#: An agent and a conversation of it.
_Said = tuple[str, str]
#: A session's name and an index in it.
_Place = tuple[str, int]


class Lost(Struct, frozen=True, kw_only=True):
    """The panes of a snapshot that ended with their server, and the sessions that showed them."""

    snapshot: Snapshot
    panes: frozenset[str]
    sessions: frozenset[str]


def lost(snapshot: Snapshot, since: Iterable[Whereabouts], restores: Sequence[Restore]) -> Lost | None:
    """Return what was in a server when it was last saved and is in none of the snapshots since; None when nothing is.

    An agent is known by its conversation: one that was anywhere since has come back, and whoever ended it then did so on
    purpose. Whatever else there was is known by the place of its window. What `restores` brought back counts once the
    server they did that on was saved again. `since` is read no further than it has to be.
    """
    topology = snapshot.topology
    said = {key for pane in topology.panes if (key := _said(pane)) is not None}
    places = set(_places(topology))
    for each in since:
        said -= each.conversations
        places -= each.places
        for restore in restores:
            if restore.server.key == snapshot.server.key and _tells_of(each, restore, snapshot):
                said -= {key for key, _ in _back(restore)}
                places -= {place for _, place in _back(restore)}
        if not said and not places:
            return None
    shown = _shown_at(topology)
    gone = {window for window, at in shown.items() if at <= places}
    gone |= {pane.window for pane in topology.panes if _said(pane) in said}
    panes = frozenset(
        pane.id for pane in topology.panes if pane.window in gone and (_said(pane) is None or _said(pane) in said)
    )
    if not panes:
        return None
    windows = {pane.window for pane in topology.panes if pane.id in panes}
    sessions = frozenset(link.session for link in topology.links if link.window in windows)
    return Lost(snapshot=snapshot, panes=panes, sessions=sessions)


def beside(lost: Lost, others: Iterable[Topology]) -> Snapshot:
    """Return the snapshot with what was lost where nothing of these others is: its windows are put behind all of theirs.

    A window that a session shows twice stays where it was.
    """
    topology = lost.snapshot.topology
    others = list(others)
    taken = {place for each in others for place in _places(each)}
    windows = {pane.window for pane in topology.panes if pane.id in lost.panes}
    times = Counter((link.session, link.window) for link in topology.links)
    twice = {window for (_, window), number in times.items() if number > 1}
    moving = [
        window for window, at in _shown_at(topology).items() if window in windows - twice and not taken.isdisjoint(at)
    ]
    free = 1 + max((link.index for each in (topology, *others) for link in each.links), default=0)
    moved = {window: free + number for number, window in enumerate(moving)}
    links = tuple(structs.replace(link, index=moved.get(link.window, link.index)) for link in topology.links)
    return structs.replace(lost.snapshot, topology=structs.replace(topology, links=links))


def ended_in_good_order(snapshot: Snapshot, deaths: Iterable[StoredEvent]) -> bool:
    """Return whether the server behind a snapshot is known to have been told to end, or to have had no session left."""
    process = snapshot.topology.process
    return any(
        each.event.server == snapshot.server.key
        and each.event.kind is EventKind.SERVER_DIED
        and each.event.data.get("pid") == process.pid
        and each.event.at >= process.started_at
        and each.event.data.get("in_good_order") is True
        for each in deaths
    )


def _tells_of(later: Whereabouts, restore: Restore, snapshot: Snapshot) -> bool:
    """Whether a snapshot tells what has become of what a restore brought back after another."""
    if restore.process != later.process or restore.began_at < snapshot.last_seen_at:
        return False
    return later.last_seen_at > (restore.ended_at or restore.began_at)


def _back(restore: Restore) -> Iterator[tuple[_Said | None, _Place]]:
    """Yield the agents a restore brought back, None for other panes, each with the place of its window."""
    for outcome in restore.outcomes.values():
        step = outcome.step
        if outcome.pane is None or outcome.result is Result.FAILED:
            continue
        name, _, rest = step.target.rpartition(":")
        is_agent = step.agent is not None and step.conversation is not None
        is_in_it = outcome.result in (Result.VERIFIED, Result.UNVERIFIED)
        said = (str(step.agent), str(step.conversation)) if is_agent and is_in_it else None
        yield said, (name, int(rest.partition(".")[0]))


def _said(pane: Pane) -> _Said | None:
    # Without the profile, of which the journal of restores does not tell.
    key = conversation_of(pane.identity)
    return None if key is None else (key[0], key[2])


def _places(topology: Topology) -> Iterator[_Place]:
    names = {session.id: session.name for session in topology.sessions}
    return ((names[link.session], link.index) for link in topology.links)


def _shown_at(topology: Topology) -> dict[str, set[_Place]]:
    """The places of each window."""
    shown: dict[str, set[_Place]] = {}
    for link, place in zip(topology.links, _places(topology), strict=True):
        shown.setdefault(link.window, set()).add(place)
    return shown
