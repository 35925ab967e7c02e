"""What a target means."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.cli.find import panes_at, part_at
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
    with pytest.raises(UsageError, match=r"say '%1:0\.1' for the pane, '=%1' for the session"):
        part_at(topology, "%1")
    assert part_at(topology, "=%1").kind == part_at(topology, "%1:").kind == "session"
    assert part_at(topology, "%0").id == "%0"
    with pytest.raises(NotFound):
        part_at(topology, "=%0")


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
