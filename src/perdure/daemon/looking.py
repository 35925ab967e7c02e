"""Whole looks at servers: who is in which pane, written down and saved; and the outlines that tell when one is due."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from perdure.agents import agent_of, roster
from perdure.daemon.deaths import Deaths
from perdure.daemon.glances import Glances
from perdure.daemon.keeping import Keeping
from perdure.daemon.known_servers import FOLLOW_UPS, OUTLINE_GAP, OVERLOADED_AFTER, RETRY, Known
from perdure.daemon.seeing import Tenant, settled
from perdure.daemon.stimuli import Key, What
from perdure.daemon.world import World
from perdure.host.demise import Vigil
from perdure.host.processes import is_alive, is_stopped, read_entry
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.observation import Ended, Ending
from perdure.model.run import Health, Program, Run, RunState
from perdure.model.server import Server, ServerProcess
from perdure.model.sighting import Seen
from perdure.model.snapshot import Capture, Miss, Missed
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Memory
from perdure.snapshots.look import Looked, look
from perdure.snapshots.passing import without_temporary
from perdure.snapshots.save import SaveResult
from perdure.tmux.glance import NoServer, Outline, outline

#: An outline that is older than this is taken anew before a whole look, in seconds. One that is older than the look costs
#: another look at most.
FRESH = 1.0
#: How long an outline may take, in seconds: meanwhile nobody else is looked at.
QUICK = 2.0
#: How long what was counted around a server is good for.
VIGIL_FOR = timedelta(seconds=45)


class Looking:
    """The servers, and who was seen in their panes."""

    def __init__(
        self,
        keeping: Keeping,
        supervisor: Supervisor,
        deaths: Deaths,
        glances: Glances,
        tenants: dict[str, Tenant],
        record: Callable[[], None],
        hear_agents: Callable[[Callable[[Run], bool]], None],
        died: Callable[[Known], None],
    ) -> None:
        """`record` writes down what has happened so far: what follows may take its time.

        `hear_agents` takes in how the agents of some runs have ended, where they have: what is not seen any more has often
        ended by itself. `died` takes in that a server is dead.
        """
        self._keeping = keeping
        self._deaths = deaths
        self._glances = glances
        self._tenants = tenants
        self._record = record
        self._hear_agents = hear_agents
        self._died = died
        self.supervisor = supervisor
        #: Every socket that is looked at, by its server's key.
        self.servers: dict[str, Known] = {}
        #: The terminals of runs.
        self.ttys: dict[str, str] = {}
        #: What was read of the options of servers.
        self.memory = Memory()
        #: The processes of servers that were watched before this daemon began.
        self.before: set[tuple[str, ServerProcess | None]] = set()
        #: Servers that were asked something in this round: what they do because of it is no news.
        self.asked: set[Key] = set()

    @property
    def world(self) -> World:
        """What it all stands on."""
        return self._keeping.world

    # Outlines

    def compare_outlines(self, at: float) -> None:
        """Take the outlines that are due; where one is another than before, a whole look is due."""
        for known in list(self.servers.values()):
            due = known.next_outline()
            if due is None or due > at:
                continue
            known.outlined(at)
            if known.process is None:
                continue
            if known.failures:
                # It did something: perhaps it answers now.
                known.look_by(at)
                continue
            found = self._outlined(known)
            if not isinstance(found, Outline):
                self.did_not_answer(known, at)
            elif found.process != known.process or found.digest != known.outline:
                known.outline = found.digest
                known.look_by(at)
                self._end_missing(found, known.server)
            else:
                self._glances.titles(known, found.titles, at)

    def _end_missing(self, found: Outline, server: Server) -> None:
        """End the runs whose panes are not in an outline; those whose server is another by now end with theirs."""

        def is_missing(run: Run) -> bool:
            is_of = run.server.key == server.key and run.process == found.process and not run.stale
            return is_of and run.pane not in found.panes

        self._hear_agents(is_missing)
        for run in filter(is_missing, self.supervisor.runs):
            self.supervisor.observe(run.id, Ended(what=Ending.PANE), self.world.now())
        # Before the look, which takes its time.
        self._record()

    def _outlined(self, known: Known) -> Outline | NoServer | None:
        self.asked.add(Key(What.SERVER, known.server.key))
        timeout = min(self.world.config.tmux.timeout_seconds, QUICK)
        return outline(known.server.socket, known.owner, timeout=timeout)

    def follow(self, known: Known) -> None:
        """See once more whether a server's outline changed: what it did while it was asked goes unnoticed otherwise."""
        self.asked.add(Key(What.SERVER, known.server.key))
        if known.process is not None:
            known.outline_by(self.world.ticking() + OUTLINE_GAP)

    # Whole looks

    def look(
        self,
        servers: Sequence[Known],
        *,
        reason: str,
        missing: Ending = Ending.PANE,
        scrollback: bool = False,
        outlines: bool = True,
    ) -> list[SaveResult]:
        """Look at these servers, write down what has changed, and save it; return what came of that.

        `reason` is why runs are found that were not known, `missing` why those are over that are not there any more.
        Without `outlines` none is taken before: nobody goes on to watch.
        """
        world, now = self.world, self.world.now()
        servers = [known for known in servers if self._may_answer(known, outlines)]
        if not servers:
            return []
        asked = [
            ask(
                known.server.socket,
                known.owner,
                options=not self.memory.is_fresh(known.server.socket, now),
                timeout=world.config.tmux.timeout_seconds,
                knock=known.process is None,
            )
            for known in servers
        ]
        looked = look(asked, world.around, now, scrollback=scrollback, memory=self.memory)
        at = world.ticking()
        seen = [each for each in looked if isinstance(each, Looked)]
        self._hear_agents(_unseen_in([each.capture for each in seen]))
        for known, each in zip(servers, looked, strict=True):
            known.looked(at)
            self.follow(known)
            if isinstance(each, Looked) and known.process not in (None, each.capture.topology.process):
                # It was replaced before anybody noticed its end.
                self._died(known)
            elif isinstance(each, Missed):
                self._missed(known, each, at)
        self.tell_missed(now, seen)
        # Those that are gone first: what was in them may have come to another place.
        self.end_absent(now, {each.capture.server.key for each in seen})
        self._discover([each.capture for each in seen], now, reason, missing)
        for known, each in zip(servers, looked, strict=True):
            if isinstance(each, Looked):
                self._took_in(known, without_temporary(each.capture), now)
        # Before it is saved, which takes its time.
        self._record()
        results = world.keep(seen, now) if seen else []
        self._keeping.saved(results, at)
        self._note_saved(results, now)
        return results

    def _may_answer(self, known: Known, outlines: bool) -> bool:
        """Return whether a server is worth asking; takes its outline, so that whatever changes after that is noticed."""
        at = self.world.ticking()
        if known.is_asleep(at):
            known.looked(at)
            self.did_not_answer(known, at)
            return False
        if known.process is None or not outlines or (known.outline is not None and known.outlined_at >= at - FRESH):
            return True
        found = self._outlined(known)
        known.outline = found.digest if isinstance(found, Outline) else None
        if found is None:
            known.looked(at)
            self.did_not_answer(known, self.world.ticking())
        return found is not None

    def _discover(self, captures: Sequence[Capture], now: datetime, reason: str, missing: Ending) -> None:
        """Take in the panes there are, but for those a restore speaks through."""
        at = self.world.ticking()
        shown = [without_temporary(capture) for capture in captures]
        new_ids = partial(self._keeping.new_ids, at=at)
        left = self.supervisor.discover(shown, new_ids, now, reason=reason, missing=missing)
        for capture in captures:
            if left.not_begun:
                self.servers[capture.server.key].look_by(at + FOLLOW_UPS[0])
            if left.unsaid:
                self.servers[capture.server.key].look_by(at + FOLLOW_UPS[1])
            if left.without_id:
                self.servers[capture.server.key].look_by(max(at + RETRY, self._keeping.next()))

    def _took_in(self, known: Known, capture: Capture, now: datetime) -> None:
        process = capture.topology.process
        if known.process != process:
            self._appeared(known, capture, now)
        known.answered(now)
        known.is_peopled |= bool(capture.topology.panes)
        self._glances.answered(known, self.world.ticking())
        if known.program is not None and (known.vigil_at is None or now - known.vigil_at > VIGIL_FOR):
            # It only tells what has changed since: an old one would blame what is long over.
            known.vigil, known.vigil_at = Vigil.of(known.program), now
        self._healthy(known, Health.HEALTHY)
        agents = roster(self.world.config.agents)
        mine = known.owner.uid == self.world.me.uid
        view = self.world.around.view_of(known.owner) if mine else None
        for pane in capture.topology.panes:
            run = self.supervisor.in_pane(known.server.key, pane.id)
            if run is None:
                continue
            self.ttys[run.id] = pane.tty
            details = capture.details.panes[pane.id]
            who = agent_of(details.processes, agents) if run.program is not None else None
            if who is None:
                self._tenants.pop(run.id, None)
            else:
                adapter, process_of = who
                seen = Seen(
                    server=capture.server,
                    pane=pane.id,
                    title=details.title,
                    process=process_of,
                    tree=details.processes,
                )
                before = self._tenants.get(run.id)
                tenant = Tenant(adapter=adapter, seen=seen, view=view, claim=(None, False))
                self._tenants[run.id] = settled(tenant, before)
            # Who is stopped from elsewhere prints nothing.
            is_halted = who is not None and is_stopped(who[1].pid)
            if run.status.state is RunState.UNKNOWN or run.status.observed_at is None or is_halted:
                self._glances.changed(run.id, self.world.ticking(), printed=False)

    def _appeared(self, known: Known, capture: Capture, now: datetime) -> None:
        process = capture.topology.process
        # One that was there when we last watched is no news.
        is_new = (known.server.key, process) not in self.before
        known.process = process
        entry = read_entry(process.pid)
        known.program = Program(pid=process.pid, start_ticks=entry.start_ticks) if entry is not None else None
        known.vigil = known.vigil_at = None
        data = {"socket": known.server.socket, "pid": process.pid, "panes": len(capture.topology.panes)}
        if is_new:
            self.supervisor.note(Event(kind=EventKind.SERVER_APPEARED, at=now, server=known.server.key, data=data))

    def _missed(self, known: Known, missed: Missed, at: float) -> None:
        known.empty = False
        if missed.reason is Miss.EMPTY:
            known.answered(self.world.now())
            known.empty = True
            self._healthy(known, Health.HEALTHY)
            self._hear_agents(_is_in(known))
            for run in filter(_is_in(known), self.supervisor.runs):
                self.supervisor.observe(run.id, Ended(what=Ending.PANE), self.world.now())
        elif known.process is not None or missed.reason not in (Miss.NO_SERVER, Miss.REFUSED):
            self.did_not_answer(known, at)
        elif missed.reason is Miss.NO_SERVER:
            # Whoever did not answer there before is gone, too: it may have fallen while it was asked.
            known.ended()

    def _note_saved(self, results: Iterable[SaveResult], now: datetime) -> None:
        for each in results:
            known = next((known for known in self.servers.values() if known.server.socket == each.socket), None)
            if known is None:
                continue
            known.snapshot = each.snapshot or known.snapshot
            if each.result == "saved":
                data = {"socket": each.socket, "snapshot": each.snapshot, "panes": each.panes, "agents": each.agents}
                self.supervisor.note(Event(kind=EventKind.SAVED, at=now, server=known.server.key, data=data))

    # Those that do not answer, and those that are not there

    def did_not_answer(self, known: Known, at: float) -> None:
        """What does not answer has changed nothing: only how far it is to be trusted."""
        if known.program is not None and not _lives(known.program):
            self._died(known)
            return
        known.did_not_answer(at)
        self._healthy(known, Health.OVERLOADED if known.failures >= OVERLOADED_AFTER else Health.DEGRADED)

    def _healthy(self, known: Known, health: Health) -> None:
        if known.health is health:
            return
        known.health = health
        self.supervisor.health(known.server.key, health)
        data = {"socket": known.server.socket, "health": health}
        self.supervisor.note(
            Event(kind=EventKind.SERVER_HEALTH, at=self.world.now(), server=known.server.key, data=data)
        )

    def tell_missed(self, now: datetime, seen: Iterable[Looked] = ()) -> None:
        """Say which servers of before died while nobody watched, as far as that is certain; `seen` is what was just seen."""
        processes = {key: known.process for key, known in self.servers.items()}
        processes |= {each.capture.server.key: each.capture.topology.process for each in seen}

        def there(server: Server, process: ServerProcess) -> bool | None:
            known, found = self.servers.get(server.key), processes.get(server.key)
            if found is not None:
                return found == process
            if known is not None and (known.failures or known.empty or known.looked_at == float("-inf")):
                return None
            # One that has lost its socket is still there, and so may be one that just has another's number.
            entry = read_entry(process.pid)
            return None if entry is not None and entry.comm.startswith("tmux") else False

        self._deaths.tell_missed(there, now)

    def end_absent(self, now: datetime, seen: Collection[str]) -> None:
        """End the runs of before whose servers are certainly not there; `seen` are the keys of some that are."""
        for run in self.supervisor.runs:
            known = self.servers.get(run.server.key)
            may_be_there = known is not None and (known.process is not None or known.failures > 0)
            # One that is not looked for any more may still be there.
            may_be_there |= run.server.key in seen or (run.first is not None and _lives(run.first))
            if run.stale and not may_be_there:
                self.supervisor.observe(run.id, Ended(what=Ending.MISSING), now)


def _is_in(known: Known) -> Callable[[Run], bool]:
    return lambda run: run.server.key == known.server.key


def _unseen_in(captures: Sequence[Capture]) -> Callable[[Run], bool]:
    """Return what tells whether a look at its server does not show a run's agent: one that it shows ended after it."""
    servers = {capture.server.key for capture in captures}
    shown = {
        Program(pid=process.pid, start_ticks=process.start_ticks)
        for capture in captures
        for details in capture.details.panes.values()
        for process in details.processes
    }
    return lambda run: run.server.key in servers and run.program not in shown


def _lives(program: Program) -> bool:
    return is_alive(program.pid, program.start_ticks)
