"""An id never comes to name another conversation: whatever falls, starts, says who it is soon, late or never, and when anybody looks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import Struct, structs

from perdure.live.recognise import sure_conversation
from perdure.live.supervise import SAYS_WITHIN, Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.identity import Evidence, Identity
from perdure.model.run import Program, Run, number_of
from perdure.model.server import ServerProcess
from perdure.model.snapshot import Capture
from perdure.model.topology import PaneDetails
from tests.builders import NOON, a_capture, a_pane, a_process, a_server, an_identity, at

HERE = a_server()
PLACES = st.integers(0, 2)
SAID = [None, None, Evidence.GUESS, Evidence.REGISTRY]
CONVERSATIONS = st.sampled_from(["c1", "c2", "c3", "c4"])


class Tenant(Struct):
    """An agent in a pane: what it is in, and what can be seen of that."""

    pid: int
    conversation: str
    #: What it would be guessed to be in.
    guess: str
    #: What its pane tells: that it is an agent, which conversation it may be in, or which it is in.
    says: Evidence | None = None

    @property
    def program(self) -> Program:
        return Program(pid=self.pid, start_ticks=1000 + self.pid)

    @property
    def identity(self) -> Identity:
        told = {None: None, Evidence.GUESS: self.guess, Evidence.REGISTRY: self.conversation}[self.says]
        return an_identity(conversation=told, evidence=self.says, certain=self.says is Evidence.REGISTRY)


class Falling(RuleBasedStateMachine):
    """A server that falls again and again, with agents that begin in the same places and say only later who they are."""

    def __init__(self) -> None:
        super().__init__()
        self.supervisor = Supervisor()
        self.now = NOON
        self.server = 300
        #: Who is in which place; None: a shell.
        self.tenants: dict[int, Tenant | None] = {}
        #: Where which agent was last certainly known to be in which conversation, by id.
        self.known: dict[str, tuple[Program, str]] = {}
        self._pids, self._numbers = count(5000), count(1)

    def _ids(self, many: int) -> list[str]:
        return [f"r{next(self._numbers)}" for _ in range(many)]

    def _agents(self) -> Iterator[Tenant]:
        return (each for each in self.tenants.values() if each is not None)

    def _is_free(self, conversation: str) -> bool:
        return all(each.conversation != conversation for each in self._agents())

    @rule(place=PLACES, conversation=CONVERSATIONS, guess=CONVERSATIONS, says=st.sampled_from(SAID))
    def begin(self, place: int, conversation: str, guess: str, says: Evidence | None) -> None:
        if place not in self.tenants and self._is_free(conversation):
            self.tenants[place] = Tenant(pid=next(self._pids), conversation=conversation, guess=guess, says=says)

    @rule(place=PLACES)
    def open_shell(self, place: int) -> None:
        self.tenants.setdefault(place, None)

    @rule(place=PLACES)
    def say(self, place: int) -> None:
        """It has started, and says who it is."""
        if (tenant := self.tenants.get(place)) is not None:
            tenant.says = Evidence.REGISTRY

    @rule(place=PLACES, conversation=CONVERSATIONS)
    def go_on(self, place: int, conversation: str) -> None:
        """The same program leaves its conversation for another."""
        tenant = self.tenants.get(place)
        if tenant is not None and tenant.says is Evidence.REGISTRY and self._is_free(conversation):
            tenant.conversation = conversation

    @rule(is_noticed=st.booleans())
    def fall(self, is_noticed: bool) -> None:
        self.tenants.clear()
        self.server += 1
        if is_noticed:
            died = Event(kind=EventKind.SERVER_DIED, at=self.now, server=HERE.key)
            self.supervisor.server_died(HERE.key, died, self.now)

    @rule()
    def begin_to_watch_anew(self) -> None:
        """The next daemon knows what the last one has written down."""
        ids = list(dict.fromkeys([*self.known, *(run.id for run in self.supervisor.runs)]))
        self.supervisor = Supervisor(filter(None, map(self.supervisor.get, ids)))

    @rule(seconds=st.sampled_from([0.3, 1, 5, 11]))
    def look(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
        over = [run for run in map(self.supervisor.get, self.known) if run is not None and run.is_over]
        before = {sure_conversation(run.identity): run.id for run in sorted(over, key=_ended)}
        there = {(run.process and run.process.pid, run.pane) for run in self.supervisor.runs}
        self.supervisor.discover([self._capture()], self._ids, self.now, reason="any")
        for place, tenant in self.tenants.items():
            run = self.supervisor.in_pane(HERE.key, f"%{place}")
            assert run is not None or (tenant is not None and tenant.says is not Evidence.REGISTRY)
            if run is None or tenant is None:
                continue
            assert run.program == tenant.program
            sure = sure_conversation(tenant.identity)
            if sure in before and (self.server, f"%{place}") not in there:
                assert run.id == before[sure], "whoever comes back with its conversation has its id"
            if sure is not None:
                self.known[run.id] = (tenant.program, tenant.conversation)

    @precondition(lambda self: self.tenants)
    @rule()
    def wait(self) -> None:
        """However little an agent says, it has a run in the end."""
        self.look(0.3)
        self.look(SAYS_WITHIN.total_seconds())
        assert {run.pane for run in self.supervisor.runs} == {f"%{place}" for place in self.tenants}

    @invariant()
    def an_id_names_another_conversation_only_where_the_same_program_went_on(self) -> None:
        """Not even while nobody can know it yet."""
        agents = {each.program: each.conversation for each in self._agents()}
        for run in self.supervisor.runs:
            if run.id not in self.known or run.program not in agents or not self._is_of_now(run):
                continue
            program, conversation = self.known[run.id]
            assert run.program == program or agents[run.program] == conversation

    def _is_of_now(self, run: Run) -> bool:
        return run.process is not None and run.process.pid == self.server

    def _capture(self) -> Capture:
        panes, details = [], {}
        for place, tenant in self.tenants.items():
            shell = a_process(4000 + place)
            tree = (shell,) if tenant is None else (shell, a_process(tenant.pid, ppid=shell.pid))
            panes.append(a_pane(place, identity=tenant.identity if tenant else None))
            details[f"%{place}"] = PaneDetails(processes=tree, agent_pid=tenant.pid if tenant else None)
        capture = a_capture(panes)
        process = ServerProcess(pid=self.server, started_at=at(self.server), version="3.4")
        return structs.replace(
            capture,
            topology=structs.replace(capture.topology, process=process),
            details=structs.replace(capture.details, panes=details),
        )


def _ended(run: Run) -> tuple[object, int]:
    return (run.ended_at, number_of(run.id) or 0)


TestFalling = Falling.TestCase
TestFalling.settings = settings(max_examples=150, stateful_step_count=30, deadline=None)
