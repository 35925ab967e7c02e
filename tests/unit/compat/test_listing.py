from __future__ import annotations

from perdure.compat.listing import shown_panes
from tests.unit.compat.topologies import a_link, a_pane, a_session, a_topology


def test_panes_come_by_session_name_window_index_and_pane_index() -> None:
    topology = a_topology(
        [a_session(0, "zoo"), a_session(1, "Ann"), a_session(2, "ümlaut")],
        {"$0": [a_link(0, 0)], "$1": [a_link(1, 2, 7), a_link(1, 1, 3)], "$2": [a_link(2, 3)]},
        [
            a_pane(0, window="@0"),
            a_pane(2, window="@1", index=1),
            a_pane(1, window="@1", index=0),
            a_pane(3, window="@2"),
            a_pane(4, window="@3"),
        ],
    )
    assert [(shown.session.name, shown.link.index, shown.pane.id) for shown in shown_panes(topology)] == [
        ("Ann", 3, "%1"),
        ("Ann", 3, "%2"),
        ("Ann", 7, "%3"),
        ("zoo", 0, "%0"),
        ("ümlaut", 0, "%4"),
    ]


def test_a_window_shown_twice_lists_its_panes_twice() -> None:
    topology = a_topology(
        [a_session(0, "main", group="main"), a_session(1, "side", group="main")],
        {"$0": [a_link(0, 0)], "$1": [a_link(1, 0)]},
        [a_pane(0)],
    )
    assert [shown.session.name for shown in shown_panes(topology)] == ["main", "side"]
