"""A snapshot from before a fall and a later one: agents win over shells, the later agent over the earlier."""

from __future__ import annotations

from msgspec import structs

from perdure.model.identity import Identity
from perdure.model.snapshot import Snapshot
from perdure.model.topology import Pane
from perdure.restore.left_out import sentence, still_left_out
from perdure.restore.merge import merged
from tests.builders import a_capture, a_pane, a_snapshot, a_topology, an_identity


def snapshot_of(*conversations: str | None, pid: int = 300, first: int = 0) -> Snapshot:
    """One window with a pane for each: an agent in a conversation, or a shell."""
    panes = [
        a_pane(number + first, index=number, identity=an_identity(conversation=each) if each else None)
        for number, each in enumerate(conversations)
    ]
    capture = a_capture(panes)
    topology = a_topology(panes, pid=pid)
    return a_snapshot(structs.replace(capture, topology=topology), id=f"{pid:016x}")


def found(panes: tuple[Pane, ...]) -> list[str | None]:
    def conversation(identity: Identity | None) -> str | None:
        return identity.conversation if identity else None

    return [conversation(pane.identity) for pane in sorted(panes, key=lambda pane: pane.index)]


def test_killed_agents_leave_shells_and_come_back() -> None:
    result = merged(snapshot_of("A", "B", "C"), snapshot_of(None, "B", None))
    assert found(result.snapshot.topology.panes) == ["A", "B", "C"]
    assert result.left_out == ()


def test_who_went_on_comes_back_where_he_went() -> None:
    result = merged(snapshot_of("A", "B"), snapshot_of("A2", None))
    assert found(result.snapshot.topology.panes) == ["A2", "B"]
    assert result.left_out == ()


def test_a_conversation_is_where_it_was_last() -> None:
    # A's pane is closed; another pane has taken it up.
    latest = snapshot_of("A", first=1)
    result = merged(snapshot_of("A", "B"), latest)
    assert found(result.snapshot.topology.panes) == [None, "A"]


def test_on_another_server_the_later_one_has_the_place_and_the_other_is_named() -> None:
    result = merged(snapshot_of("A", "B", "C"), snapshot_of("NEW", None, pid=301))
    assert found(result.snapshot.topology.panes) == ["NEW", "B", "C"]
    (left,) = result.left_out
    assert (left.snapshot, left.target, left.conversation, left.is_taken) == (f"{300:016x}", "work:0.0", "A", True)
    assert sentence(left) == (
        f"{left.agent} in A (work:0.0) was there before, and another has its place now;"
        f" `perdure restore --from {left.snapshot} work` brings it back, once no other pane is in work:0.0"
    )
    # Unless something else brings it back.
    user = left.user
    assert still_left_out([left, left], {(user, left.agent, "B")}) == [left]
    assert still_left_out([left], {(user, left.agent, "A")}) == []


def test_what_is_chosen_has_each_conversation_once() -> None:
    result = merged(snapshot_of("A", "B", "C", "D"), snapshot_of("B", "A", None, pid=301))
    assert sorted(filter(None, found(result.snapshot.topology.panes))) == ["A", "B", "C", "D"]
    assert result.left_out == ()
