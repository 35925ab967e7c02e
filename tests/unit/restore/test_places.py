from __future__ import annotations

import msgspec
from hypothesis import given

from perdure.model.plan import Plan
from perdure.model.topology import Link, Session, Topology
from perdure.restore.places import Places, arrange
from perdure.restore.plan import Living, Policy, plan
from tests.builders import a_pane
from tests.unit.restore.made import a_session, a_snapshot_of, a_topology_of, topologies

replace = msgspec.structs.replace


def link(session: int, window: int, index: int) -> Link:
    return Link(session=f"${session}", window=f"@{window}", index=index)


def saved(sessions: list[Session], *links: Link) -> Topology:
    windows = sorted({int(each.window[1:]) for each in links})
    return a_topology_of(sessions, list(links), [a_pane(n, window=f"@{n}") for n in windows])


def arranged(topology: Topology, living: Topology | None = None) -> tuple[Plan, Places]:
    made = plan(a_snapshot_of(topology), Living(topology=living), {}, Policy())
    return made, arrange(topology, made, living)


def test_the_first_session_that_shows_a_window_makes_it() -> None:
    topology = saved([a_session(0), a_session(1)], link(0, 0, 0), link(0, 1, 1), link(1, 1, 0), link(1, 2, 4))
    first, second = arranged(topology)[1].sessions
    assert first.makes == (link(0, 0, 0), link(0, 1, 1))
    assert (second.makes, second.links) == ((link(1, 2, 4),), (link(1, 1, 0),))


def test_a_window_shown_twice_by_one_session_is_made_once() -> None:
    (only,) = arranged(saved([a_session(0)], link(0, 0, 0), link(0, 0, 5)))[1].sessions
    assert (only.makes, only.links) == ((link(0, 0, 0),), (link(0, 0, 5),))


def test_a_session_that_is_there_makes_a_window_before_a_new_one_does() -> None:
    topology = saved([a_session(0, "new"), a_session(1, "old")], link(0, 0, 0), link(1, 1, 0), link(1, 0, 1))
    living = a_topology_of([a_session(9, "old")], [link(9, 9, 0)], [a_pane(9, window="@9")], pid=999)
    places = arranged(topology, living)[1]
    assert places.makes == (link(1, 0, 1),)
    assert (places.sessions[0].makes, places.sessions[0].links) == ((), (link(0, 0, 0),))


def a_group(*names: str) -> Topology:
    sessions = [a_session(n, name, "work") for n, name in enumerate(names)]
    return saved(sessions, *(link(n, 0, 0) for n in range(len(names))))


def test_only_the_first_of_a_group_brings_windows_and_it_goes_first() -> None:
    first, second = arranged(a_group("other", "work"))[1].sessions
    assert (first.session.name, first.name, first.shares) == ("work", "work", None)
    assert (second.session.name, second.shares) == ("other", "$1")
    assert not second.makes
    assert not second.links


def test_a_group_is_called_after_its_first_session_even_when_that_is_gone() -> None:
    places = arranged(a_group("a", "b"))[1]
    assert [(new.name, new.session.name) for new in places.sessions] == [("work", "a"), ("b", "b")]
    assert places.alone == ()


def test_the_name_of_a_group_is_not_taken_from_a_session_that_has_it() -> None:
    living = a_topology_of([a_session(9, "work")], [link(9, 9, 0)], [a_pane(9, window="@9")], pid=999)
    assert arranged(a_group("a", "b"), living)[1].sessions[0].name == "a"


def test_a_group_of_one_is_known() -> None:
    assert arranged(a_group("a"))[1].alone == ("$0",)
    assert arranged(a_group("a", "b"))[1].alone == ()


def test_a_new_session_joins_the_group_that_is_there() -> None:
    living = a_topology_of([a_session(9, "b", "work")], [link(9, 9, 0)], [a_pane(9, window="@9")], pid=999)
    (new,) = arranged(a_group("a", "b"), living)[1].sessions
    assert (new.session.name, new.shares, new.makes, new.links) == ("a", "$1", (), ())


def test_a_window_a_living_group_lacks_is_made_once() -> None:
    sessions = [a_session(0, "a", "work"), a_session(1, "b", "work")]
    topology = saved(sessions, *(link(s, w, w) for s in (0, 1) for w in (0, 1)))
    there = saved(sessions, link(0, 0, 0), link(1, 0, 0))
    places = arranged(topology, replace(there, process=replace(there.process, pid=999)))[1]
    assert (places.makes, places.links) == ((link(0, 1, 1),), ())


def test_sessions_that_only_have_the_names_of_a_group_each_get_the_window() -> None:
    topology = saved([a_session(0, "a", "work"), a_session(1, "b", "work")], *(link(s, 1, 1) for s in (0, 1)))
    there = saved([a_session(0, "a"), a_session(1, "b")], link(0, 5, 0), link(1, 6, 0))
    places = arranged(topology, replace(there, process=replace(there.process, pid=999)))[1]
    assert (places.makes, places.links) == ((link(0, 1, 1),), (link(1, 1, 1),))


@given(topologies())
def test_every_window_is_made_once_and_everything_has_its_place(topology: Topology) -> None:
    made, places = arranged(topology)
    makes = [link for new in places.sessions for link in new.makes]
    assert sorted(link.window for link in makes) == sorted(window.id for window in topology.windows)
    followers = {new.session.id for new in places.sessions if new.shares is not None}
    placed = {*makes, *(link for new in places.sessions for link in new.links)}
    assert placed == {link for link in made.links if link.session not in followers}
    names = [new.name for new in places.sessions]
    assert len(set(names)) == len(names)
    seen: set[str] = set()
    for new in places.sessions:
        assert new.shares is None or new.shares in seen
        seen.add(new.session.id)


def test_a_name_that_is_taken_is_not_taken_twice() -> None:
    topology = saved(
        [a_session(0, "a"), a_session(1, "b"), a_session(2, "b-2")], link(0, 0, 0), link(1, 1, 0), link(2, 2, 0)
    )
    living = a_topology_of([a_session(0, "b")], [link(0, 0, 0)], [a_pane(0, window="@0")])
    assert [(new.called, new.name) for new in arranged(topology, living)[1].sessions] == [
        ("b-3", "b-3"),
        ("b-2", "b-2"),
    ]


def test_a_group_of_the_same_name_does_not_take_ours_in() -> None:
    living = a_topology_of([a_session(9, "mine", "work")], [link(9, 9, 0)], [a_pane(9, window="@9")], pid=999)
    first, second = arranged(a_group("work", "other"), living)[1].sessions
    assert (first.called, first.name, first.shares) == ("work", "work-2", None)
    assert (second.called, second.shares) == ("other", "$0")
