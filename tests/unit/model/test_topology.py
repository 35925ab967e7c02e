from __future__ import annotations

from tests.builders import a_pane, a_topology, an_identity


def test_agents_are_counted_by_pane_whether_or_not_their_conversation_is_known() -> None:
    panes = [a_pane(0), a_pane(1, identity=an_identity()), a_pane(2, identity=an_identity(conversation=None))]
    assert a_topology(panes).agents == 2
