"""Servers made of nothing: any topology tmux could have, and what carrying a plan out does to it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import msgspec
from hypothesis import strategies as st

from perdure.model.plan import Plan, Restore
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Link, Pane, Session, Topology, Window
from perdure.restore.match import PLACEHOLDER
from perdure.restore.places import arrange
from perdure.restore.plan import targets
from tests.builders import a_capture, a_pane, a_program, a_server, a_snapshot, an_identity, at

replace = msgspec.structs.replace

NAMES = ["w1", "w10", "w", "*", "?", "[a]", "=w1", "$1", "@2", "%3", "{last}", "a b", "日本語"]


def a_window(number: int, **changes: object) -> Window:
    window = Window(id=f"@{number}", name="main", width=80, height=24, layout="", visible_layout="")
    return replace(window, **changes)


def a_session(number: int, name: str = "", group: str = "") -> Session:
    return Session(id=f"${number}", name=name or f"s{number}", created_at=at(-60), path="/home/dev", group=group)


def a_topology_of(
    sessions: list[Session],
    links: list[Link],
    panes: list[Pane],
    *,
    pid: int = 300,
    windows: list[Window] | None = None,
) -> Topology:
    ids = sorted({link.window for link in links}, key=lambda id: int(id[1:]))
    return Topology(
        process=ServerProcess(pid=pid, started_at=at(-3600), version="3.4"),
        sessions=tuple(sessions),
        windows=tuple(windows or [a_window(int(id[1:])) for id in ids]),
        links=tuple(sorted(links, key=lambda link: (int(link.session[1:]), link.index))),
        panes=tuple(panes),
    )


def a_snapshot_of(topology: Topology) -> Snapshot:
    return a_snapshot(replace(a_capture(), topology=topology))


#: What may be in a pane. No two panes of one server are certainly in one conversation, so ids are made by number.
KINDS = ["shell", "shell", "agent", "guess", "fresh", "unknown", "program", "dead"]


def filled(pane: Pane, kind: str, number: int) -> Pane:
    if kind == "agent":
        return replace(pane, identity=an_identity(conversation=f"c{number}"), program=a_program("some"))
    if kind == "guess":
        return replace(pane, identity=an_identity(conversation=f"c{number}", certain=False), program=a_program("some"))
    if kind == "fresh":
        return replace(pane, identity=an_identity(conversation=f"c{number}", prompted=False), program=a_program("some"))
    if kind == "unknown":
        return replace(pane, identity=an_identity(conversation=None, certain=False), program=a_program("some"))
    if kind == "program":
        return replace(pane, program=a_program("vim", "notes"))
    return replace(pane, dead=True, exit_status=3, cwd="") if kind == "dead" else pane


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Sessions alone, in groups and with linked windows; panes of every kind."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, min_size=1, max_size=4))
    numbers, sessions, links = count(), [], []
    groups: dict[str, list[Link]] = {}
    for place, name in enumerate(names):
        group = draw(st.sampled_from(["", "", "g", name]))
        sessions.append(a_session(place, name, group))
        if group in groups:
            links += [replace(link, session=f"${place}") for link in groups[group]]
            continue
        own = []
        for index in sorted(draw(st.sets(st.integers(0, 6), min_size=1, max_size=3))):
            shared = sorted({link.window for link in links}, key=lambda id: int(id[1:]))
            window = draw(st.sampled_from([*shared, None])) if shared else None
            own.append(Link(session=f"${place}", window=window or f"@{next(numbers)}", index=index))
        links += own
        groups |= {group: own} if group else {}
    panes: list[Pane] = []
    for id in dict.fromkeys(link.window for link in links):
        for index in range(draw(st.integers(1, 3))):
            number = len(panes)
            kind = draw(st.sampled_from(KINDS))
            panes.append(filled(a_pane(number, window=id, index=index), kind, number))
    return a_topology_of(sessions, links, panes)


class World:
    """A server that does as tmux does, as far as a plan can tell."""

    def __init__(self, living: Topology | None, *, pid: int = 400) -> None:
        process = ServerProcess(pid=pid, started_at=at(0), version="3.4")
        self.process = living.process if living else process
        self.sessions = {each.id: each for each in living.sessions} if living else {}
        self.windows = {each.id: each for each in living.windows} if living else {}
        self.links = list(living.links) if living else []
        self.panes = list(living.panes) if living else []
        used = [int(id[1:]) for id in (*self.sessions, *self.windows, *(pane.id for pane in self.panes))]
        # No server gives an id twice; a new one begins anew.
        self._numbers = count(max(99, *used, 0) + 1 if living else 0)

    @property
    def topology(self) -> Topology | None:
        if not self.sessions:
            return None
        found = a_topology_of(list(self.sessions.values()), self.links, self.panes, windows=list(self.windows.values()))
        return replace(found, process=self.process)

    def session(self, name: str, group: str = "") -> str:
        id = f"${next(self._numbers)}"
        assert name not in {each.name for each in self.sessions.values()}, "a name is there once"
        self.sessions[id] = Session(id=id, name=name, created_at=at(0), group=group)
        return id

    def window(self, session: str, index: int, start_command: str) -> tuple[str, str]:
        id = f"@{next(self._numbers)}"
        self.windows[id] = a_window(int(id[1:]))
        self.link(session, id, index)
        return id, self.pane(id, 0, start_command)

    def link(self, session: str, window: str, index: int) -> None:
        group = self.sessions[session].group
        for id, each in self.sessions.items():
            if id == session or (group and each.group == group):
                assert index not in {link.index for link in self.links if link.session == id}, "an index is free"
                self.links.append(Link(session=id, window=window, index=index))

    def pane(self, window: str, place: int, start_command: str) -> str:
        id = f"%{next(self._numbers)}"
        own = sorted((pane for pane in self.panes if pane.window == window), key=lambda pane: pane.index)
        own.insert(place, a_pane(int(id[1:]), window=window, start_command=start_command))
        self.panes = [pane for pane in self.panes if pane.window != window]
        self.panes += [replace(pane, index=index) for index, pane in enumerate(own)]
        return id

    def move(self, session: str, window: str, index: int) -> None:
        places = [link for link in self.links if link.session == session and link.window == window]
        group = self.sessions[session].group
        for link in list(self.links):
            is_there = link.session == session or (group and self.sessions[link.session].group == group)
            if is_there and link.window == window and link.index == places[0].index:
                self.links[self.links.index(link)] = replace(link, index=index)

    def end_window(self, window: str) -> None:
        self.links = [link for link in self.links if link.window != window]
        self.panes = [pane for pane in self.panes if pane.window != window]
        del self.windows[window]


class CarryingOut:
    """The builder without tmux: everything it makes, one thing at a time."""

    def __init__(self, snapshot: Snapshot, plan: Plan, world: World, *, base_index: int = 0) -> None:
        self._saved = snapshot.topology
        self._plan = plan
        self._world = world
        self._base = base_index
        self._sessions, self._windows, self._panes = dict(plan.sessions), dict(plan.windows), dict(plan.panes)
        self._numbers = {pane.id: n for n, (_, pane) in enumerate(targets(self._saved), 1)}

    def all(self) -> None:
        for act in self.acts():
            act()

    def acts(self) -> Iterator[Callable[[], object]]:
        places = arrange(self._saved, self._plan, self._world.topology)
        for new in places.sessions:
            if new.shares is None:
                yield lambda new=new: self._session(new.session.id, new.name, next(iter(new.makes), None))  # type: ignore[misc]
        yield self._move_away
        for link in self._plan.moves:
            yield lambda link=link: self._move(link)  # type: ignore[misc]
        for new in places.sessions:
            if new.shares is not None:
                yield lambda new=new: self._follow(new.session, new.shares)  # type: ignore[misc]
        for session in self._saved.sessions:
            yield lambda session=session: self._rename(session)  # type: ignore[misc]
        makes = [*(link for new in places.sessions for link in new.makes), *places.makes]
        for link in makes:
            yield lambda link=link: self._window(link)  # type: ignore[misc]
        for pane in sorted(self._saved.panes, key=lambda pane: pane.index):
            if pane.id in self._plan.making:
                yield lambda pane=pane: self._pane(pane)  # type: ignore[misc]
        for link in [*(link for new in places.sessions for link in new.links), *places.links]:
            yield lambda link=link: self._world.link(  # type: ignore[misc]
                self._sessions[link.session], self._windows[link.window], link.index
            )
        yield self._tidy

    def _words(self, pane: str) -> str:
        found = next(each for each in self._saved.panes if each.id == pane)
        mark = f"/bin/sh -c x perdure /home/dev/restores/r1/{self._numbers[pane]}.text"
        return mark if found.identity or found.program else ""

    def _first(self, window: str) -> str:
        panes = sorted((p for p in self._saved.panes if p.window == window), key=lambda pane: pane.index)
        return next(pane.id for pane in panes if pane.id in self._plan.making)

    def _session(self, id: str, name: str, link: Link | None) -> None:
        self._sessions[id] = self._world.session(name)
        if link is None:
            self._world.window(self._sessions[id], self._base, " ".join(PLACEHOLDER))
        else:
            self._make(self._sessions[id], link, self._base)

    def _make(self, session: str, link: Link, index: int) -> None:
        pane = self._first(link.window)
        self._windows[link.window], self._panes[pane] = self._world.window(session, index, self._words(pane))

    def _move_away(self) -> None:
        for pane in list(self._world.panes):
            if pane.start_command == " ".join(PLACEHOLDER):
                for link in [each for each in self._world.links if each.window == pane.window][:1]:
                    self._world.move(link.session, pane.window, 99)
        for new in arrange(self._saved, self._plan, None).sessions:
            if new.shares is None and new.makes:
                self._move(new.makes[0])

    def _move(self, link: Link) -> None:
        if link.session in self._sessions and link.window in self._windows:
            self._world.move(self._sessions[link.session], self._windows[link.window], link.index)

    def _follow(self, session: Session, leader: str) -> None:
        world, lead = self._world, self._sessions[leader]
        group = world.sessions[lead].group or world.sessions[lead].name
        world.sessions[lead] = replace(world.sessions[lead], group=group)
        self._sessions[session.id] = id = world.session(session.name, group)
        world.links += [replace(link, session=id) for link in world.links if link.session == lead]

    def _rename(self, session: Session) -> None:
        id = self._sessions.get(session.id)
        if id is not None and (session.id in self._plan.making or session.id in self._plan.unfinished):
            self._world.sessions[id] = replace(self._world.sessions[id], name=session.name)

    def _window(self, link: Link) -> None:
        if link.window not in self._windows:
            self._make(self._sessions[link.session], link, link.index)

    def _pane(self, pane: Pane) -> None:
        if pane.id in self._panes:
            return
        own = sorted((p for p in self._saved.panes if p.window == pane.window), key=lambda pane: pane.index)
        before = [self._panes[each.id] for each in own[: own.index(pane)] if each.id in self._panes]
        window = self._windows[pane.window]
        now = sorted((p for p in self._world.panes if p.window == window), key=lambda pane: pane.index)
        places = [each.id for each in now]
        place = places.index(before[-1]) + 1 if before and before[-1] in places else 0
        self._panes[pane.id] = self._world.pane(window, place, self._words(pane.id))

    def _tidy(self) -> None:
        for pane in list(self._world.panes):
            if pane.start_command == " ".join(PLACEHOLDER):
                self._world.end_window(pane.window)


def begun_by(plan: Plan) -> Restore:
    """The journal's word of a restore that carries this plan out."""
    return Restore(
        id="r1",
        snapshot=plan.snapshot,
        server=a_server(),
        began_at=at(0),
        making=plan.making | plan.unfinished,
        links=plan.links,
    )


def shape(topology: Topology | None) -> object:
    """What a person would see: names, places, and which pane is for what."""
    assert topology is not None
    names = {session.id: session.name for session in topology.sessions}
    panes: dict[str, list[str]] = {}
    for pane in sorted(topology.panes, key=lambda pane: pane.index):
        panes.setdefault(pane.window, []).append(pane.start_command)
    links = sorted((names[link.session], link.index, panes[link.window]) for link in topology.links)
    shared = sorted(
        sorted((names[link.session], link.index) for link in topology.links if link.window == window.id)
        for window in topology.windows
    )
    return links, shared
