from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.topology import Link, Topology
from perdure.restore.match import Begun, free_index, match, step_in
from tests.builders import a_pane, an_identity
from tests.unit.restore.made import NAMES, a_session, a_topology_of, topologies

replace = msgspec.structs.replace


def link(session: int, window: int, index: int) -> Link:
    return Link(session=f"${session}", window=f"@{window}", index=index)


WORK = a_topology_of(
    [a_session(0, "work")],
    [link(0, 0, 0), link(0, 1, 3)],
    [a_pane(0, window="@0"), a_pane(1, window="@0"), a_pane(2, window="@1", index=0)],
)


def renumbered(topology: Topology) -> Topology:
    return replace(topology, process=replace(topology.process, pid=999))


def test_nothing_is_there_without_a_server() -> None:
    there = match(WORK, None)
    assert not there.sessions
    assert not there.windows
    assert not there.panes


@given(st.sampled_from(NAMES), st.sampled_from(NAMES))
def test_a_session_is_known_by_its_exact_name(name: str, other: str) -> None:
    saved = replace(WORK, sessions=(a_session(0, name),))
    living = a_topology_of([a_session(5, other)], [link(5, 7, 0)], [a_pane(9, window="@7")], pid=999)
    assert match(saved, living).sessions == ({"$0": "$5"} if name == other else {})


def test_a_new_server_s_windows_are_known_by_index_and_panes_by_order() -> None:
    living = a_topology_of(
        [a_session(1, "work")],
        [link(1, 5, 0), link(1, 6, 2)],
        [a_pane(7, window="@5", index=1), a_pane(8, window="@6", index=1)],
        pid=999,
    )
    there = match(WORK, living)
    assert there.windows == {"@0": "@5"}
    assert there.panes == {"%0": "%7"}


def test_within_one_server_ids_tell_also_after_a_move_and_a_new_name() -> None:
    living = a_topology_of(
        [a_session(0, "renamed"), a_session(4, "work")],
        [link(0, 0, 9), link(4, 1, 0)],
        [a_pane(1, window="@0"), a_pane(2, window="@1"), a_pane(30, window="@0", index=2)],
    )
    there = match(WORK, living)
    assert there.sessions == {"$0": "$0"}
    assert there.windows == {"@0": "@0", "@1": "@1"}
    assert there.panes == {"%1": "%1", "%2": "%2"}


def test_another_window_in_the_place_of_one_that_is_gone_is_somebody_s() -> None:
    living = a_topology_of(
        [a_session(0, "work")], [link(0, 0, 0), link(0, 8, 3)], [a_pane(0, window="@0"), a_pane(9, window="@8")]
    )
    assert match(WORK, living).windows == {"@0": "@0"}


def test_what_a_restore_made_in_a_session_that_lived_on_is_its_own() -> None:
    living = a_topology_of(
        [a_session(0, "work")],
        [link(0, 0, 0), link(0, 8, 3)],
        [a_pane(0, window="@0"), a_pane(20, window="@0", index=1), a_pane(9, window="@8", index=0)],
    )
    there = match(WORK, living, Begun(making=frozenset({"@1", "%2", "%1"})))
    assert there.windows == {"@0": "@0", "@1": "@8"}
    assert there.panes == {"%0": "%0", "%1": "%20", "%2": "%9"}


def test_a_restore_knows_where_it_put_a_window_whose_place_was_taken() -> None:
    living = a_topology_of(
        [a_session(0, "work")],
        [link(0, 0, 0), link(0, 7, 3), link(0, 8, 4)],
        [a_pane(0, window="@0"), a_pane(1, window="@0"), a_pane(7, window="@7"), a_pane(8, window="@8")],
    )
    begun = Begun(making=frozenset({"@1", "%2"}), links=(link(0, 1, 4),))
    assert match(WORK, living, begun).windows["@1"] == "@8"


def test_a_pane_with_the_words_of_another_step_is_never_taken_by_its_place() -> None:
    agent = an_identity()
    saved = replace(WORK, panes=tuple(replace(pane, identity=agent) for pane in WORK.panes))
    living = a_topology_of([a_session(3, "work")], [link(3, 5, 0)], [a_pane(7, window="@5")], pid=999)
    begun = Begun(making=frozenset({"$0", "@0", "@1", "%0", "%1", "%2"}), marked={"%7": "%1"})
    assert match(saved, living, begun).panes == {"%1": "%7"}


def test_a_first_session_has_its_group_s_name_until_it_is_given_its_own() -> None:
    saved = replace(WORK, sessions=(a_session(0, "mine", "work"),))
    living = a_topology_of([a_session(3, "work")], [link(3, 5, 1)], [a_pane(7, window="@5")], pid=999)
    assert not match(saved, living).sessions
    there = match(saved, living, Begun(making=frozenset({"$0", "@0", "%0"})))
    assert there.sessions == {"$0": "$3"}
    assert there.windows == {"@0": "@5"}


@pytest.mark.parametrize(
    ("words", "step"),
    [
        ("", None),
        ("/bin/sh -c x perdure prelude /home/dev/.perdure/restores/0af/12.text 0", 12),
        ("/bin/sh -c x perdure prelude '/home/dev/a b/restores/0af/3.gate' /restores/0af/9.text", 3),
        ("/bin/sh -c x perdure prelude /restores/0af/1000007.text", 7),
        ("/bin/sh -c x perdure prelude /restores/0aff/3.text", None),
        ("tail -f /restores/0af/notes", None),
    ],
)
def test_the_step_a_pane_was_started_for(words: str, step: int | None) -> None:
    assert step_in(words, "0af") == step


@given(topologies(), topologies(), st.booleans(), st.data())
def test_nothing_living_stands_for_two_things(
    saved: Topology, living: Topology, same: bool, data: st.DataObject
) -> None:
    ids = sorted(each.id for part in (saved.sessions, saved.windows, saved.panes) for each in part)
    making = data.draw(st.sets(st.sampled_from(ids)))
    there = match(
        saved,
        living if same else renumbered(living),
        Begun(making=frozenset(making)),
    )
    for pairs in (there.sessions, there.windows, there.panes):
        assert len(set(pairs.values())) == len(pairs)


@given(topologies(), st.booleans())
def test_everything_is_there_when_nothing_happened(saved: Topology, same: bool) -> None:
    there = match(saved, saved if same else renumbered(saved))
    assert set(there.sessions) == {each.id for each in saved.sessions}
    assert there.windows == {each.id: each.id for each in saved.windows}
    assert there.panes == {each.id: each.id for each in saved.panes}


@given(st.integers(0, 9), st.sets(st.integers(0, 9)))
def test_an_index_is_kept_when_it_is_free(wanted: int, used: set[int]) -> None:
    found = free_index(wanted, used)
    assert found not in used
    assert found == wanted or wanted in used
