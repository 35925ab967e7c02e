from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.model.identity import Evidence
from perdure.model.topology import Link, Pane, Session, Topology, Window
from perdure.snapshots.diff import Change, as_text, diff
from tests.builders import NOON, a_pane, a_program, a_topology, an_identity

replace = msgspec.structs.replace
NAMES = ["main", "logs", "a:b", "日本語", ""]


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    """Sessions that share some windows, with panes of every kind."""
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=4))
    sessions = tuple(Session(id=f"${place}", name=name, created_at=NOON) for place, name in enumerate(names))
    links, windows, panes = [], {}, []
    for session in sessions:
        for index in sorted(draw(st.sets(st.integers(0, 5), min_size=1, max_size=3))):
            window = draw(st.integers(0, 5))
            links.append(Link(session=session.id, window=f"@{window}", index=index))
            windows[window] = Window(
                id=f"@{window}", name=draw(st.sampled_from(NAMES)), width=80, height=24, layout="l", visible_layout="l"
            )
    for number, window in enumerate(w for w in windows for _ in range(2)):
        panes.append(
            a_pane(
                number,
                window=f"@{window}",
                index=number % 2,
                title=draw(st.sampled_from(NAMES)),
                program=draw(st.sampled_from([None, a_program("vim"), a_program("tail", "-f")])),
                identity=draw(st.sampled_from([None, an_identity(), an_identity(conversation="other")])),
            )
        )
    return replace(
        a_topology(), sessions=sessions, links=tuple(links), windows=tuple(windows.values()), panes=tuple(panes)
    )


def restarted(topology: Topology) -> Topology:
    """The same things under a new server: other numbers everywhere."""
    sessions = tuple(replace(each, id=f"${int(each.id[1:]) + 50}", created_at=NOON) for each in topology.sessions)
    windows = tuple(replace(each, id=f"@{int(each.id[1:]) + 50}") for each in topology.windows)
    links = tuple(
        replace(each, session=f"${int(each.session[1:]) + 50}", window=f"@{int(each.window[1:]) + 50}")
        for each in topology.links
    )
    panes = tuple(
        replace(
            each,
            id=f"%{int(each.id[1:]) + 50}",
            window=f"@{int(each.window[1:]) + 50}",
            pid=each.pid + 50,
            tty="/dev/pts/77",
        )
        for each in topology.panes
    )
    process = replace(topology.process, pid=topology.process.pid + 1)
    return replace(topology, process=process, sessions=sessions, windows=windows, links=links, panes=panes)


@given(topologies())
def test_nothing_differs_from_itself(topology: Topology) -> None:
    assert diff(topology, topology) == []


@given(topologies())
def test_a_restart_that_brought_everything_back_is_no_difference(topology: Topology) -> None:
    assert diff(topology, restarted(topology)) == []


@given(topologies(), topologies())
def test_what_is_gone_one_way_is_new_the_other(one: Topology, other: Topology) -> None:
    forth, back = diff(one, other), diff(other, one)
    assert sum(each.change == "gone" for each in forth) == sum(each.change == "new" for each in back)
    changed = {
        (each.property, each.before, each.after) for each in forth if each.change == "changed" and is_plain(each)
    }
    assert changed == {
        (each.property, each.after, each.before) for each in back if each.change == "changed" and is_plain(each)
    }


def is_plain(change: Change) -> bool:
    return isinstance(change.before, str) and isinstance(change.after, str)


@given(topologies(), topologies())
def test_across_a_restart_things_are_told_by_name_and_place(one: Topology, other: Topology) -> None:
    new = restarted(other)
    gone = {each.target for each in diff(one, new) if each.kind == "session" and each.change == "gone"}
    assert gone == {session.name for session in one.sessions} - {session.name for session in other.sessions}


def with_panes(*panes: Pane) -> Topology:
    return a_topology(panes)


def test_one_pane_more_and_one_less() -> None:
    two, one = with_panes(a_pane(0), a_pane(1)), with_panes(a_pane(0))
    assert diff(one, two) == [Change(kind="pane", target="work:0.1", change="new")]
    assert diff(two, one) == [Change(kind="pane", target="work:0.1", change="gone")]


@pytest.mark.parametrize(
    ("property", "before", "after"),
    [
        ("title", "one", "two"),
        ("cwd", "/a", "/b"),
        ("command", "bash", "vim"),
        ("active", True, False),
        ("dead", False, True),
        ("options", {}, {"@x": "1"}),
        ("width", 80, 40),
    ],
)
def test_a_property_of_a_pane(property: str, before: object, after: object) -> None:
    one, two = (with_panes(replace(a_pane(), **{property: value})) for value in (before, after))
    (change,) = diff(one, two)
    assert (change.kind, change.target, change.change) == ("pane", "work:0.0", "changed")
    assert (change.property, change.before, change.after) == (property, before, after)


def test_another_conversation_and_another_certainty() -> None:
    one = with_panes(a_pane(identity=an_identity(conversation="A")))
    two = with_panes(a_pane(identity=an_identity(conversation="B", certain=False, evidence=Evidence.GUESS)))
    assert {(each.property, each.before, each.after) for each in diff(one, two)} == {
        ("conversation", "A", "B"),
        ("certain", True, False),
        ("evidence", "registry", "guess"),
    }
    new = {each.property for each in diff(with_panes(a_pane()), one)}
    assert new == {"agent", "conversation", "certain", "evidence"}


def test_another_program_is_told_by_its_arguments() -> None:
    one, two = with_panes(a_pane(program=a_program("vim", "a"))), with_panes(a_pane(program=a_program("vim", "b c")))
    (change,) = diff(one, two)
    assert (change.property, change.before, change.after) == ("program", ["vim", "a"], ["vim", "b c"])
    assert diff(with_panes(a_pane()), one)[0].before is None


def test_numbers_of_the_machine_are_no_difference() -> None:
    assert diff(with_panes(a_pane()), with_panes(a_pane(pid=1, tty="/dev/pts/9"))) == []


def test_sessions_and_windows() -> None:
    one = a_topology()
    renamed = replace(one, sessions=(replace(one.sessions[0], name="play"),))
    assert [(each.kind, each.change, each.property) for each in diff(one, renamed)] == [("session", "changed", "name")]
    wide = replace(one, windows=(replace(one.windows[0], width=200),))
    assert [(each.kind, each.target, each.property) for each in diff(one, wide)] == [("window", "work:0", "width")]
    again = replace(renamed, process=replace(one.process, pid=1))
    assert [(each.kind, each.target, each.change) for each in diff(one, again)] == [
        ("session", "work", "gone"),
        ("session", "play", "new"),
        ("window", "work:0", "gone"),
        ("window", "play:0", "new"),
        ("pane", "work:0.0", "gone"),
        ("pane", "play:0.0", "new"),
    ]


def two_windows() -> Topology:
    """Two windows of a session, the first one shown."""
    one = a_topology([a_pane(0), a_pane(1), a_pane(2, window="@1", index=0)])
    other = replace(one.windows[0], id="@1", name="logs")
    links = (*one.links, Link(session="$0", window="@1", index=1))
    return replace(one, windows=(*one.windows, other), links=links)


def test_a_window_that_moved() -> None:
    before = two_windows()
    after = replace(before, links=(before.links[0], replace(before.links[1], index=7)))
    (change,) = diff(before, after)
    assert (change.kind, change.target, change.property) == ("window", "work:7", "place")
    assert (change.before, change.after) == ("work:1", "work:7")
    linked = replace(before, links=(*before.links, Link(session="$0", window="@1", index=9)))
    assert [(each.before, each.after) for each in diff(before, linked)] == [("work:1", "work:1, work:9")]


def test_a_pane_that_moved_into_another_window() -> None:
    before = two_windows()
    after = replace(before, panes=(before.panes[0], replace(before.panes[1], window="@1"), before.panes[2]))
    (change,) = diff(before, after)
    assert (change.kind, change.target, change.property) == ("pane", "work:1.1", "place")
    assert (change.before, change.after) == ("work:0", "work:1")


@pytest.mark.parametrize("restart", [False, True])
def test_a_session_that_shows_another_window(restart: bool) -> None:
    before = two_windows()
    links = (replace(before.links[0], active=False, last=True), replace(before.links[1], active=True))
    after = replace(before, links=links)
    (change,) = diff(before, restarted(after) if restart else after)
    assert (change.kind, change.target, change.property) == ("session", "work", "active_window")
    assert (change.before, change.after) == (0, 1)


def test_another_name_for_a_session_moves_nothing() -> None:
    before = two_windows()
    after = replace(before, sessions=(replace(before.sessions[0], name="play"),))
    assert [each.property for each in diff(before, after)] == ["name"]


@pytest.mark.parametrize(
    ("value", "text"), [("a b", "a b"), (None, "null"), (True, "true"), (["a", "b c"], '["a","b c"]'), ({}, "{}")]
)
def test_a_value_for_a_person(value: object, text: str) -> None:
    assert as_text(value) == text


def test_the_panes_and_the_check_sum_in_a_layout_are_no_difference() -> None:
    before = a_topology()
    window = before.windows[0]
    was, same, other = (
        "b05b,80x24,0,0[80x12,0,0,0,80x11,0,13{40x11,0,13,1,39x11,41,13,2}]",
        "3262,80x24,0,0[80x12,0,0,2,80x11,0,13{40x11,0,13,3,39x11,41,13,44}]",
        "3262,80x24,0,0[80x12,0,0,2,80x11,0,13{39x11,0,13,3,40x11,40,13,44}]",
    )
    saved, alike, unlike = (replace(before, windows=(replace(window, layout=each),)) for each in (was, same, other))
    assert diff(saved, alike) == []
    assert [change.property for change in diff(saved, unlike)] == ["layout"]
