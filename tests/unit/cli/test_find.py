"""What a target means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.find import panes_at, part_at, session_called
from perdure.errors import NotFound, UsageError
from perdure.model.topology import Link, Session, Topology, Window
from tests.builders import NOON, a_pane, a_topology


def _two_sessions() -> Topology:
    """`w1` and `w10`, a window each; `w10` shows the window of `w1` too."""
    one = a_topology([a_pane(0), a_pane(1)], session="w1")
    window = Window(id="@1", name="7", width=80, height=24, layout="", visible_layout="")
    return Topology(
        process=one.process,
        sessions=(*one.sessions, Session(id="$1", name="w10", created_at=NOON)),
        windows=(*one.windows, window),
        links=(*one.links, Link(session="$1", window="@1", index=3), Link(session="$1", window="@0", index=5)),
        panes=(*one.panes, a_pane(2, window="@1", index=0)),
    )


@pytest.mark.parametrize(
    ("target", "panes"),
    [
        ("w1", ["%0", "%1"]),
        ("w10", ["%0", "%1", "%2"]),
        ("w10:3", ["%2"]),
        ("w10:7", ["%2"]),
        ("w10:5.1", ["%1"]),
        ("w1:main.0", ["%0"]),
        ("$1:@1", ["%2"]),
        ("%2", ["%2"]),
        ("w10:.0", ["%0", "%2"]),
    ],
)
def test_a_target_means_the_panes_it_names(target: str, panes: list[str]) -> None:
    assert [pane.id for pane in panes_at(_two_sessions(), target)] == panes


@pytest.mark.parametrize("target", ["", "w", "w1:9", "w1:1", "w1:0.9", "%9", ":", ".", "w1:.9"])
def test_a_target_that_names_nothing_is_not_found(target: str) -> None:
    with pytest.raises(NotFound):
        panes_at(_two_sessions(), target)


@pytest.mark.parametrize(
    ("target", "kind", "id"),
    [
        ("w1", "session", "$0"),
        ("=w10:", "session", "$1"),
        ("$1", "session", "$1"),
        ("w10:3", "window", "@1"),
        ("w1:0", "window", "@0"),
        ("w1:0.1", "pane", "%1"),
        ("%2", "pane", "%2"),
        ("w10:.0", "parts", ""),
        ("w10:.", "parts", ""),
    ],
)
def test_a_target_is_one_thing_or_several(target: str, kind: str, id: str) -> None:
    part = part_at(_two_sessions(), target)
    assert (part.kind, part.id) == (kind, id)


def test_a_session_that_is_called_like_a_pane_is_told_from_it() -> None:
    topology = a_topology([a_pane(0), a_pane(1)], session="%1")
    with pytest.raises(UsageError, match=r"say '%1:0\.1' for the pane, '%1:' for the session"):
        part_at(topology, "%1")
    assert part_at(topology, "=%1").kind == part_at(topology, "%1:").kind == "session"
    assert part_at(topology, "%0").id == "%0"
    with pytest.raises(NotFound):
        part_at(topology, "=%0")


def _called(*names: str) -> Topology:
    """A session with a window of a pane for each name: `$0`, `@0`, `%0`, and so on."""
    numbered = list(enumerate(names))
    return Topology(
        process=a_topology().process,
        sessions=tuple(Session(id=f"${number}", name=name, created_at=NOON) for number, name in numbered),
        windows=tuple(
            Window(id=f"@{number}", name="w", width=80, height=24, layout="", visible_layout="")
            for number, _ in numbered
        ),
        links=tuple(Link(session=f"${number}", window=f"@{number}", index=0) for number, _ in numbered),
        panes=tuple(a_pane(number, window=f"@{number}", index=0) for number, _ in numbered),
    )


@pytest.mark.parametrize(("target", "rest"), [("=x", ""), ("=x:", ""), ("=x:0", "0"), ("=x:0.0", "0.0"), ("=x:w", "w")])
def test_a_name_behind_an_equals_sign_that_is_a_session_with_and_without_it_is_neither(target: str, rest: str) -> None:
    topology = _called("x", "=x")
    with pytest.raises(UsageError) as raised:
        part_at(topology, target)
    assert f"say '==x:{rest}' for '=x', 'x:{rest}' for 'x'." in raised.value.message
    assert [pane.id for pane in panes_at(topology, f"x:{rest}")] == ["%0"]
    assert [pane.id for pane in panes_at(topology, f"==x:{rest}")] == ["%1"]


def test_an_equals_sign_says_that_it_is_a_name_and_no_id() -> None:
    topology = _called("$1", "other")
    assert part_at(topology, "=$1").id == part_at(topology, session_called(topology, "$1", "%0")).id == "$0"
    with pytest.raises(NotFound):
        part_at(_called("one", "other"), "=$1")


@given(st.lists(st.text(alphabet="=-%x\\", min_size=1, max_size=4), unique=True, min_size=1, max_size=6))
def test_what_is_said_to_mean_a_session_means_that_one(names: list[str]) -> None:
    topology = _called(*names)
    for number, name in enumerate(names):
        for place in (name, f"{name}:0.0"):
            target = session_called(topology, place, f"${number}")
            assert not target.startswith("-")
            assert [pane.id for pane in panes_at(topology, target)] == [f"%{number}"]


@given(st.text())
def test_any_target_finds_panes_or_nothing(target: str) -> None:
    try:
        found = panes_at(_two_sessions(), target)
    except NotFound:
        return
    assert found


def test_a_window_name_with_a_dot_is_found() -> None:
    topology = a_topology([a_pane(0)])
    named = Window(id="@0", name="app.py", width=80, height=24, layout="", visible_layout="")
    renamed = Topology(
        process=topology.process,
        sessions=topology.sessions,
        windows=(named,),
        links=topology.links,
        panes=topology.panes,
    )
    assert [pane.id for pane in panes_at(renamed, "work:app.py")] == ["%0"]
    assert [pane.id for pane in panes_at(renamed, "work:app.py.0")] == ["%0"]
