"""The supervisor: nothing that happened is lost or told twice, however often writing it down fails."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from perdure.live.recognise import sure_conversation
from perdure.live.supervise import Batch, Left, Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.identity import Evidence
from perdure.model.observation import Ended, Ending, Observation, Reading, Source, Watched
from perdure.model.process import Process
from perdure.model.run import Health, Program, Run, RunState
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Capture
from perdure.model.topology import Pane, PaneDetails
from tests.builders import NOON, a_capture, a_pane, a_process, a_server, an_identity, at

HERE, THERE = a_server(), a_server("other")


class Ids:
    """Gives ids as a store does: none twice, and none while it fails."""

    def __init__(self) -> None:
        self.last = 0
        self.fails = False

    def __call__(self, count: int) -> Sequence[str]:
        if self.fails:
            return ()
        self.last += count
        return [f"r{number}" for number in range(self.last - count + 1, self.last + 1)]


def _capture(*panes: Pane, seconds: float = 0, pid: int = 300) -> Capture:
    capture = a_capture(panes, seconds=seconds)
    process = ServerProcess(pid=pid, started_at=at(-3600 + pid), version="3.4")
    topology = msgspec.structs.replace(capture.topology, process=process)
    return msgspec.structs.replace(capture, topology=topology)


def _died(now: datetime) -> Event:
    return Event(kind=EventKind.SERVER_DIED, at=now, server=HERE.key)


class AnyOrder(RuleBasedStateMachine):
    """Whatever happens, whenever it is written down, and however often that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.supervisor = Supervisor()
        self.ids = Ids()
        self.now = NOON
        self.pid = 300
        #: What a store has: the runs as they last were, and the events in their order.
        self.runs: dict[str, Run] = {}
        self.events: list[Event] = []
        #: Everything that has happened, in order.
        self.happened: list[Event] = []
        self.taken: Batch | None = None

    def _later(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now

    @rule(numbers=st.sets(st.integers(0, 4)), agents=st.sets(st.integers(0, 4)), fails=st.booleans())
    def discover(self, numbers: set[int], agents: set[int], fails: bool) -> None:
        self.ids.fails = fails
        panes = [
            a_pane(number, identity=an_identity(conversation=f"c{number}") if number in agents else None)
            for number in sorted(numbers)
        ]
        now = self._later()
        known = {run.pane for run in self.supervisor.runs}
        left = self.supervisor.discover(
            [_capture(*panes, pid=self.pid)], self.ids, now, reason="periodic_tmux_reconcile"
        )
        here = {run.pane for run in self.supervisor.runs}
        assert here <= {pane.id for pane in panes}
        assert len(here) + left.without_id == len(panes)
        assert here >= known & {pane.id for pane in panes}
        self._note()

    @rule(data=st.data(), state=st.sampled_from(RunState))
    def observe(self, data: st.DataObject, state: RunState) -> None:
        if self.supervisor.runs:
            run = data.draw(st.sampled_from(self.supervisor.runs))
            now = self._later()
            observations: list[Observation] = [
                Reading(source=Source.PROCESS, at=now, state=state, rule="any"),
                Watched(),
                Ended(what=Ending.PANE),
                Ended(what=Ending.PROGRAM, program=Program(pid=1, start_ticks=1)),
            ]
            self.supervisor.observe(run.id, data.draw(st.sampled_from(observations)), now)
            self._note()

    @rule()
    def die(self) -> None:
        self.supervisor.server_died(HERE.key, _died(self.now), self._later())
        self.pid += 1
        assert self.supervisor.runs == []
        self._note()

    @rule(health=st.sampled_from(Health))
    def health(self, health: Health) -> None:
        self.supervisor.health(HERE.key, health)
        self._note()

    @rule()
    def tick(self) -> None:
        self.now += timedelta(minutes=11)
        self.supervisor.tick(self.now)
        self._note()

    @rule()
    def rewrite(self) -> None:
        self.supervisor.rewrite()
        self._note()

    @rule(days=st.integers(0, 2))
    def forget(self, days: int) -> None:
        self.supervisor.forget(self.now - timedelta(days=days))

    @rule()
    def take(self) -> None:
        """Somebody begins to write it down."""
        self.taken = self.supervisor.batch()

    @rule()
    def fail(self) -> None:
        """It could not be written down."""
        self.taken = None

    @rule()
    def record(self) -> None:
        """What was taken is written down; meanwhile more may have happened."""
        if self.taken is not None:
            self.runs |= {run.id: run for run in self.taken.runs}
            self.events += self.taken.events
            self.supervisor.recorded(self.taken)
            self.taken = None

    def _note(self) -> None:
        """See that what is still to be written goes on where the store ends."""
        pending = list(self.supervisor.batch().events)
        known = self.happened[len(self.events) :]
        assert pending[: len(known)] == known
        self.happened += pending[len(known) :]

    @invariant()
    def nothing_is_lost_or_repeated(self) -> None:
        assert [*self.events, *self.supervisor.batch().events] == self.happened

    @invariant()
    def no_id_is_in_two_panes(self) -> None:
        panes = [(run.server.key, run.pane) for run in self.supervisor.runs]
        assert len(panes) == len(set(panes))
        for run in self.supervisor.runs:
            found = self.supervisor.in_pane(run.server.key, run.pane)
            assert found is not None
            assert found.id == run.id

    def teardown(self) -> None:
        """Once everything is written down, the store has every run as it is."""
        batch = self.supervisor.batch()
        stored = self.runs | {run.id: run for run in batch.runs}
        for run in self.supervisor.runs:
            assert stored[run.id] == run
        self.supervisor.recorded(batch)
        assert not self.supervisor.batch()


TestAnyOrder = AnyOrder.TestCase
TestAnyOrder.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)


def test_what_happens_while_it_is_written_down_is_the_next_ones() -> None:
    supervisor = Supervisor()
    supervisor.discover([_capture(a_pane(0))], Ids(), NOON, reason="startup_discovery")
    first = supervisor.batch()
    supervisor.observe("r1", Reading(source=Source.PROCESS, at=at(1), state=RunState.BUSY, rule="make"), at(1))
    supervisor.recorded(first)
    second = supervisor.batch()
    assert [event.kind for event in second.events] == [EventKind.STATE_CHANGED]
    assert [run.status.state for run in second.runs] == [RunState.BUSY]
    supervisor.recorded(second)
    assert not supervisor.batch()


def test_a_pane_without_an_id_is_left_for_later() -> None:
    supervisor, ids = Supervisor(), Ids()
    ids.fails = True
    assert supervisor.discover([_capture(a_pane(0))], ids, NOON, reason="startup_discovery") == Left(without_id=1)
    assert not supervisor.batch()
    ids.fails = False
    assert not supervisor.discover([_capture(a_pane(0))], ids, at(1), reason="startup_discovery")
    assert [run.id for run in supervisor.runs] == ["r1"]


def test_another_program_in_the_same_pane_is_written_down() -> None:
    supervisor = Supervisor()
    supervisor.discover([_capture(a_pane(0))], Ids(), NOON, reason="startup_discovery")
    supervisor.recorded(supervisor.batch())
    supervisor.discover([_capture(a_pane(0, pid=5000))], Ids(), at(1), reason="periodic_tmux_reconcile")
    (run,) = supervisor.batch().runs
    assert run.first == Program(pid=5000, start_ticks=6000)


def test_runs_of_before_are_not_written_again_before_they_are_seen() -> None:
    before = Supervisor()
    before.discover([_capture(a_pane(0))], Ids(), NOON, reason="startup_discovery")
    supervisor = Supervisor(before.runs)
    assert not supervisor.batch()
    assert [run.stale for run in supervisor.runs] == [True]
    supervisor.rewrite()
    assert [run.id for run in supervisor.batch().runs] == ["r1"]


def test_what_ended_long_ago_is_forgotten_once_it_is_written_down() -> None:
    supervisor = Supervisor()
    supervisor.discover([_capture(a_pane(0))], Ids(), NOON, reason="startup_discovery")
    supervisor.server_died(HERE.key, _died(at(1)), at(1))
    supervisor.forget(at(10))
    assert supervisor.get("r1") is not None
    supervisor.recorded(supervisor.batch())
    supervisor.forget(at(0))
    assert supervisor.get("r1") is not None
    supervisor.forget(at(10))
    assert supervisor.get("r1") is None


def _two_agents() -> Supervisor:
    """Two agents in two conversations, as a look has found them."""
    supervisor = Supervisor()
    panes = [a_pane(n, identity=an_identity(conversation=f"c{n}")) for n in (0, 1)]
    supervisor.discover([_capture(*panes)], Ids(), NOON, reason="startup_discovery")
    supervisor.recorded(supervisor.batch())
    return supervisor


def test_an_agent_that_went_on_is_told_once_and_the_look_that_follows_has_nothing_to_add() -> None:
    supervisor = _two_agents()
    supervisor.went_on("r1", an_identity(conversation="new"), at(1))
    (event,) = supervisor.batch().events
    assert (event.kind, event.run) == (EventKind.IDENTITY_CHANGED, "r1")
    assert (event.data["conversation"], event.data["was"]) == ("new", "c0")
    supervisor.recorded(supervisor.batch())
    panes = [a_pane(n, identity=an_identity(conversation=c)) for n, c in enumerate(("new", "c1"))]
    supervisor.discover([_capture(*panes)], Ids(), at(2), reason="any")
    assert not supervisor.batch().events


def test_what_another_run_is_in_is_nobody_elses_before_both_are_looked_at() -> None:
    supervisor = _two_agents()
    supervisor.went_on("r1", an_identity(conversation="c1"), at(1))
    supervisor.went_on("unknown", an_identity(conversation="c2"), at(1))
    assert not supervisor.batch()


def _beginning(*panes: Pane, processes: Sequence[Process] = (), pid: int = 300) -> Capture:
    """A capture that was taken before the first process of its panes was there to be seen."""
    capture = _capture(*panes, pid=pid)
    details = {pane.id: PaneDetails(processes=tuple(processes)) for pane in panes}
    return msgspec.structs.replace(capture, details=msgspec.structs.replace(capture.details, panes=details))


@pytest.mark.parametrize("processes", [(), (a_process(4003, comm="tmux: server", argv=("tmux",)),)])
def test_a_pane_that_has_only_just_begun_is_not_taken_for_anybody_yet(processes: Sequence[Process]) -> None:
    """What is brought back would be taken for something new, and its conversation would have two ids."""
    supervisor, ids = Supervisor(), Ids()
    conversation = a_pane(0, identity=an_identity(conversation="c0ffee"))
    supervisor.discover([_capture(conversation)], ids, NOON, reason="startup_discovery")
    supervisor.server_died(HERE.key, _died(at(1)), at(1))

    new = a_pane(3, index=7)
    left = supervisor.discover([_beginning(new, processes=processes, pid=301)], ids, at(2), reason="any")
    assert (left, supervisor.runs) == (Left(not_begun=1), [])
    back = msgspec.structs.replace(new, identity=an_identity(conversation="c0ffee"))
    assert not supervisor.discover([_capture(back, pid=301)], ids, at(3), reason="any")
    assert [run.id for run in supervisor.runs] == ["r1"]


def test_a_pane_whose_process_is_hidden_is_taken_in_after_a_while() -> None:
    supervisor, ids = Supervisor(), Ids()
    hidden = _beginning(a_pane(3))
    assert supervisor.discover([hidden], ids, at(0), reason="any").not_begun == 1
    assert supervisor.discover([hidden], ids, at(1), reason="any").not_begun == 1
    assert not supervisor.discover([hidden], ids, at(10), reason="any")
    assert [run.id for run in supervisor.runs] == ["r1"]
    # And stays.
    assert not supervisor.discover([hidden], ids, at(11), reason="any")
    assert [run.id for run in supervisor.runs] == ["r1"]


def _starting() -> Pane:
    """A pane with an agent that does not say yet in which conversation it is."""
    return a_pane(0, identity=an_identity(conversation=None, evidence=None, certain=False))


def _fallen(ids: Ids) -> Supervisor:
    """An agent whose server has died, known as r1."""
    supervisor = Supervisor()
    supervisor.discover([_capture(a_pane(0, identity=an_identity()))], ids, NOON, reason="any")
    supervisor.server_died(HERE.key, _died(at(1)), at(1))
    return supervisor


@pytest.mark.parametrize(("conversation", "id"), [("c0ffee", "r1"), ("another", "r2")])
def test_an_agent_in_the_place_of_one_that_fell_is_somebody_once_it_says_who(conversation: str, id: str) -> None:
    """Until then nobody can talk to the one before and be heard by another."""
    ids = Ids()
    supervisor = _fallen(ids)
    for seconds in (2, 4, 8):
        assert supervisor.discover([_capture(_starting(), pid=301)], ids, at(seconds), reason="any") == Left(unsaid=1)
        assert supervisor.runs == []
    said = a_pane(0, identity=an_identity(conversation=conversation))
    assert not supervisor.discover([_capture(said, pid=301)], ids, at(9), reason="any")
    assert [run.id for run in supervisor.runs] == [id]


@pytest.mark.parametrize("seconds", [12, 3600, -3600])
def test_an_agent_that_does_not_say_who_it_is_for_long_is_somebody_new(seconds: float) -> None:
    ids = Ids()
    supervisor = _fallen(ids)
    assert supervisor.discover([_capture(_starting(), pid=301)], ids, at(2), reason="any").unsaid == 1
    assert not supervisor.discover([_capture(_starting(), pid=301)], ids, at(seconds), reason="any")
    assert [run.id for run in supervisor.runs] == ["r2"]


def test_whoever_cannot_wait_finds_somebody_new_in_every_pane() -> None:
    ids = Ids()
    supervisor = _fallen(ids)
    assert not supervisor.discover([_capture(_starting(), pid=301)], ids, at(2), reason="any", at_once=True)
    assert [run.id for run in supervisor.runs] == ["r2"]
    assert not supervisor.discover([_beginning(a_pane(3), pid=302)], ids, at(3), reason="any", at_once=True)
    assert [run.id for run in supervisor.runs] == ["r3"]


def test_a_dead_pane_has_no_process_and_is_taken_in_at_once() -> None:
    supervisor = Supervisor()
    assert not supervisor.discover([_beginning(a_pane(3, dead=True, exit_status=1))], Ids(), at(0), reason="any")
    assert [run.status.state for run in supervisor.runs] == [RunState.EXITED]


def test_what_is_kept_for_a_pane_is_told_of_its_run_as_long_as_it_is_kept() -> None:
    """As `perdure ls` tells it: a restore could not resume it, and nobody is in it."""
    ids = Ids()
    supervisor = _fallen(ids)
    kept = an_identity(evidence=Evidence.KEPT)
    supervisor.discover([_capture(a_pane(0, identity=kept), pid=301)], ids, at(2), reason="any")
    (run,) = supervisor.runs
    assert (run.id, run.tenant, run.program) == ("r1", kept, None)
    supervisor.discover([_capture(a_pane(0), pid=301)], ids, at(3), reason="any")
    (run,) = supervisor.runs
    assert (run.id, run.tenant) == ("r1", None)
    # Whoever takes it up elsewhere is the same run all the same.
    assert sure_conversation(run.identity) == sure_conversation(kept)


@pytest.mark.parametrize(("seconds", "id"), [(3, "r1"), (60, "r2")])
def test_what_a_restore_says_only_then_to_be_kept_for_a_pane_gives_it_its_run_back(seconds: float, id: str) -> None:
    """Unless somebody may have got used to the shell."""
    ids = Ids()
    supervisor = _fallen(ids)
    supervisor.discover([_capture(a_pane(0), pid=301)], ids, at(2), reason="any")
    assert [run.id for run in supervisor.runs] == ["r2"]
    kept = a_pane(0, identity=an_identity(evidence=Evidence.KEPT))
    for _ in range(2):
        assert not supervisor.discover([_capture(kept, pid=301)], ids, at(seconds), reason="any")
        assert [run.id for run in supervisor.runs] == [id]
    told = [(event.kind, event.run) for event in supervisor.batch().events]
    assert ((EventKind.RUN_DELETED, "r2") in told) == (id == "r1")
