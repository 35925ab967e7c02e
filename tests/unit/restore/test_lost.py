"""What ended with a server and was not seen since."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec import structs

from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.plan import Action, Outcome, Restore, Result, Step
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Snapshot, whereabouts_of
from perdure.model.topology import Link, Session, Topology, Window
from perdure.restore import lost as losing
from perdure.restore.lost import Lost, beside, ended_in_good_order
from tests.builders import a_pane, a_server, a_snapshot, an_identity, at, some_details

FORMER, PRESENT = 1, 2


def saved(server: int, seconds: float, *panes: tuple[str, int, str | None]) -> Snapshot:
    """A snapshot of a server's process: a window of one pane for each session, index and conversation."""
    names = list(dict.fromkeys(name for name, _, _ in panes))
    topology = Topology(
        process=ServerProcess(pid=server, started_at=at(server), version="3.4"),
        sessions=tuple(Session(id=f"${names.index(name)}", name=name, created_at=at(0), path="/") for name in names),
        windows=tuple(
            Window(id=f"@{number}", name="", width=80, height=24, layout="", visible_layout="")
            for number in range(len(panes))
        ),
        links=tuple(
            Link(session=f"${names.index(name)}", window=f"@{number}", index=index)
            for number, (name, index, _) in enumerate(panes)
        ),
        panes=tuple(
            a_pane(number, window=f"@{number}", identity=an_identity(conversation=said) if said else None)
            for number, (_, _, said) in enumerate(panes)
        ),
    )
    return structs.replace(
        a_snapshot(id=f"{server}{seconds}"),
        topology=topology,
        details=some_details(topology),
        taken_at=at(seconds),
        last_seen_at=at(seconds),
    )


def lost(before: Snapshot, since: Iterable[Snapshot], restores: Sequence[Restore]) -> Lost | None:
    return losing.lost(before, map(whereabouts_of, since), restores)


def panes_of(found: Lost | None) -> set[str]:
    return set(found.panes) if found is not None else set()


def test_an_agent_is_known_by_its_conversation_and_a_shell_by_its_place() -> None:
    before = saved(FORMER, 10, ("W", 0, "x"), ("V", 0, "y"), ("U", 0, None), ("W", 3, None))
    after = saved(PRESENT, 20, ("W", 0, None), ("other", 0, "y"))
    assert panes_of(lost(before, [after], ())) == {"%0", "%2", "%3"}
    assert lost(before, [after, structs.replace(before, id="again")], ()) is None
    assert lost(before, [saved(PRESENT, 20, ("a", 0, "x"), ("b", 0, "y"), ("U", 0, None), ("W", 3, None))], ()) is None


def test_nothing_more_is_read_than_has_to_be() -> None:
    before = saved(FORMER, 10, ("W", 0, "x"))

    def since() -> Iterator[Snapshot]:
        yield saved(PRESENT, 20, ("W", 0, "x"))
        raise AssertionError

    assert lost(before, since(), ()) is None


def a_restore(result: Result, *, server: int = PRESENT, began: float = 15, ended: float | None = 18) -> Restore:
    step = Step(n=1, pane="%0", target="W:0.0", action=Action.RESUME, agent="some", conversation="x")
    return Restore(
        id="r",
        snapshot="s",
        server=a_server(),
        began_at=at(began),
        ended_at=None if ended is None else at(ended),
        process=ServerProcess(pid=server, started_at=at(server), version="3.4"),
        outcomes={"%0": Outcome(step=step, result=result, pane="%7")},
    )


def test_what_was_brought_back_and_ended_since_counts_as_seen() -> None:
    before, after = saved(FORMER, 10, ("W", 0, "x")), saved(PRESENT, 20, ("other", 0, None))
    assert lost(before, [after], [a_restore(Result.VERIFIED)]) is None
    for other in (
        a_restore(Result.FAILED),
        a_restore(Result.VERIFIED, server=7),  # that server was never saved
        a_restore(Result.VERIFIED, ended=30),  # nothing tells what became of it
        a_restore(Result.VERIFIED, began=5),  # it was there again when its server ended
    ):
        assert panes_of(lost(before, [after], [other])) == {"%0"}


def test_where_another_is_it_comes_behind_all_of_them() -> None:
    before = saved(FORMER, 10, ("W", 0, "x"), ("V", 2, "y"))
    after = saved(PRESENT, 20, ("W", 0, None), ("W", 5, None))
    found = lost(before, [after], ())
    assert found is not None
    assert [(link.window, link.index) for link in beside(found, [after.topology]).topology.links] == [
        ("@0", 6),
        ("@1", 2),
    ]
    assert beside(found, []) == before


def test_only_the_death_of_this_very_process_tells_how_it_ended() -> None:
    before = saved(FORMER, 10, ("W", 0, "x"))

    def told(seconds: float = 30, server: str = before.server.key, **data: object) -> bool:
        event = Event(kind=EventKind.SERVER_DIED, at=at(seconds), server=server, data={"pid": FORMER, **data})
        return ended_in_good_order(before, [StoredEvent(seq=1, event=event)])

    assert told(in_good_order=True)
    assert not told(in_good_order=False)
    assert not told()
    assert not told(in_good_order=True, pid=9)
    assert not told(in_good_order=True, seconds=0)
    assert not told(in_good_order=True, server="another")
