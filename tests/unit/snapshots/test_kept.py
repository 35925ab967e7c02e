"""What is kept for a pane in which a restore could not resume its conversation."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from perdure.model.identity import AgentDetails, Evidence, Identity
from perdure.model.plan import Kept
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Snapshot
from perdure.model.topology import Pane
from perdure.snapshots.kept import OPTION, mark_of, with_kept
from perdure.snapshots.remember import Held
from tests.builders import NOON, a_capture, a_pane, a_program, a_server, a_snapshot, an_identity

MARK = mark_of("r1", "%7")
COMMAND = a_program("some", "--fast")
KEPT = Kept(identity=an_identity(home="/home/dev/x"), program=COMMAND, agent=AgentDetails(task="the task"))
FOUND = an_identity(home="/home/dev/x", evidence=Evidence.KEPT)


def marked(number: int = 0, mark: str = MARK, *, identity: Identity | None = None, dead: bool = False) -> Pane:
    return a_pane(number, options={OPTION: mark}, identity=identity, dead=dead)


class World:
    """What was saved before, what the journal says, and what others hold."""

    def __init__(self, before: Capture | None = None, *, held: Sequence[Identity] = ()) -> None:
        self._before = None if before is None else a_snapshot(before)
        self._held = [Held(identity=each, started_at=NOON, place="elsewhere") for each in held]
        self.asked: list[object] = []

    def earlier(self, server: Server) -> Snapshot | None:
        self.asked.append(server)
        return self._before

    def journalled(self, restore: str, pane: str) -> Kept | None:
        self.asked.append((restore, pane))
        return KEPT if (restore, pane) == ("r1", "%7") else None

    def elsewhere(self) -> list[Held]:
        self.asked.append("elsewhere")
        return self._held

    def keep(self, *captures: Capture) -> list[Capture]:
        return with_kept(captures, self.earlier, self.journalled, self.elsewhere)

    def identities(self, *panes: Pane) -> list[Identity | None]:
        (found,) = self.keep(a_capture(panes))
        return [pane.identity for pane in found.topology.panes]


def test_the_first_save_after_a_restore_asks_the_journal() -> None:
    (found,) = World().keep(a_capture([marked()]))
    (pane,) = found.topology.panes
    assert (pane.identity, pane.program) == (FOUND, COMMAND)
    details = found.details.panes["%0"]
    assert details.agent == AgentDetails(task="the task")
    assert details.agent_pid is None
    assert details.because


def test_it_stays_as_uncertain_as_it_was() -> None:
    guess = an_identity(certain=False, evidence=Evidence.GUESS)
    captures = [a_capture([marked()])]
    (found,) = with_kept(captures, lambda _: None, lambda *_: Kept(identity=guess), tuple)
    assert found.topology.panes[0].identity == msgspec.structs.replace(guess, evidence=Evidence.KEPT)


def test_the_saves_that_follow_ask_nobody_but_the_one_before() -> None:
    world = World(World().keep(a_capture([marked()]))[0])
    (found,) = world.keep(a_capture([marked()]))
    assert (found.topology.panes[0].identity, found.topology.panes[0].program) == (FOUND, COMMAND)
    assert found.details.panes["%0"].agent == AgentDetails(task="the task")
    assert ("r1", "%7") not in world.asked


@pytest.mark.parametrize("there", [None, an_identity(), an_identity(conversation="another"), an_identity("other")])
def test_it_is_void_once_somebody_had_the_pane(there: Identity | None) -> None:
    before = a_capture([marked(identity=there)])
    assert World(before).identities(marked()) == [None]


def test_an_agent_that_never_came_up_has_not_had_the_pane() -> None:
    launched = an_identity(evidence=Evidence.LAUNCH)
    assert World(a_capture([marked(identity=launched)])).identities(marked()) == [an_identity(evidence=Evidence.KEPT)]


@pytest.mark.parametrize(
    "before",
    [
        a_capture([a_pane(identity=an_identity(evidence=Evidence.LAUNCH))]),
        a_capture([a_pane(identity=an_identity(evidence=Evidence.ARGV))]),
        a_capture([a_pane()]),
        a_capture([marked(mark=mark_of("r0", "%7"))]),
        a_capture([marked(5)]),
    ],
)
def test_what_was_saved_before_the_mark_says_nothing(before: Capture) -> None:
    """A restore takes its time, and saves come in between."""
    assert World(before).identities(marked()) == [FOUND]


def test_nor_does_a_pane_of_another_run_of_the_server() -> None:
    before = a_capture([marked()])
    process = msgspec.structs.replace(before.topology.process, pid=301)
    other = msgspec.structs.replace(before, topology=msgspec.structs.replace(before.topology, process=process))
    assert World(other).identities(marked()) == [FOUND]


def test_what_any_other_pane_has_is_not_kept() -> None:
    other = a_pane(1, identity=an_identity(certain=False, evidence=Evidence.GUESS))
    assert World().identities(marked(), other) == [None, other.identity]
    assert World(held=[an_identity()]).identities(marked()) == [None]
    on_another = a_capture([other], server=a_server("other"))
    first, _ = World().keep(a_capture([marked()]), on_another)
    assert first.topology.panes[0].identity is None


def test_a_conversation_of_another_profile_is_another() -> None:
    other = a_pane(1, identity=an_identity(profile="copied"))
    assert World().identities(marked(), other) == [FOUND, other.identity]


def test_it_is_kept_for_one_pane_only() -> None:
    assert World().identities(marked(), marked(1)) == [FOUND, None]


@pytest.mark.parametrize("mark", ["", "r1", "r1:", ":%7", "r2:%7", "r1:%8", "no mark: at all"])
def test_a_mark_that_leads_nowhere_keeps_nothing(mark: str) -> None:
    assert World().identities(marked(mark=mark)) == [None]


def test_a_dead_pane_and_an_agent_stay_what_they_are() -> None:
    agent = an_identity(conversation="another")
    assert World().identities(marked(dead=True), marked(1, identity=agent)) == [None, agent]


def test_without_a_mark_nobody_is_asked() -> None:
    world, capture = World(), a_capture([a_pane(), a_pane(1, identity=an_identity())])
    assert world.keep(capture) == [capture]
    assert world.asked == []
