"""observe -> advance -> record, once around. Everything here runs in one thread, in which the store was opened."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from perdure.agents import agent_of, roster
from perdure.daemon.glances import Glances
from perdure.daemon.known_servers import FOLLOW_UPS, OUTLINE_GAP, OVERLOADED_AFTER, RETRY, Known
from perdure.daemon.leasing import Lease
from perdure.daemon.seeing import Tenant, settled
from perdure.daemon.stimuli import Gone, Key, Round, Stimuli, What
from perdure.daemon.thinking import Thinking
from perdure.daemon.world import World
from perdure.errors import PerdureError
from perdure.host.demise import Vigil, cause
from perdure.host.exits import Exit
from perdure.host.processes import is_alive, read_entry
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind, StoredEvent
from perdure.model.observation import Ended, Ending
from perdure.model.run import Health, Program, Run, RunState
from perdure.model.server import Server
from perdure.model.snapshot import Capture, Miss, Missed
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Memory
from perdure.snapshots.identify import Seen
from perdure.snapshots.look import Looked, look
from perdure.snapshots.save import SaveResult
from perdure.tmux.glance import Outline, outline

#: How often everything is looked at and saved, whether or not anything was noticed.
EVERY = 60.0
#: How often it is seen whether there are new sockets, where nobody tells.
SOCKETS_EVERY = 10.0
#: How often runs that only time can have changed are written down, and the lease prolonged.
CHECKPOINT = 30.0
#: How long what was counted around a server is good for.
VIGIL_FOR = timedelta(seconds=45)
#: What gives reason to think about a run anew.
_STIRRING = frozenset({EventKind.STATE_CHANGED, EventKind.IDENTITY_CHANGED, EventKind.RUN_CREATED})


class Rounds:
    """The daemon's work. `begin` first, then `round` as often as it asks for, then `end`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.supervisor = Supervisor()
        self._lease = Lease(world.store, world.host, world.me.uid)
        self._servers: dict[str, Known] = {}
        self._tenants: dict[str, Tenant] = {}
        self._ttys: dict[str, str] = {}
        self._memory = Memory()
        self._glances = Glances(world, self.supervisor, self._tenants, self._suspect, self._look_later)
        self._thinking = Thinking(world, self.supervisor, lambda id: self._glances.lines.get(id, ()))
        self._paths: dict[Key, str] | None = None
        self._everything_at = 0.0
        self._sockets_at = 0.0
        self._checkpoint_at = 0.0
        #: Servers that were asked something in this round: what they do because of it is no news.
        self._asked: set[Key] = set()
        #: Servers that died and are to be brought back.
        self.to_restore: list[Server] = []

    # The whole of it

    def begin(self) -> Round:
        """Take the lease, remember the runs of before, and look at everything for the first time. Raises `Refused`."""
        now = self.world.now()
        self._lease.take(now)
        self.supervisor = Supervisor(self.world.store.list_runs(host=self.world.host))
        self._glances.supervisor = self._thinking.supervisor = self.supervisor
        self.supervisor.note(Event(kind=EventKind.DAEMON_STARTED, at=now))
        self._find_sockets()
        self._look(list(self._servers.values()), reason="startup_discovery", missing=Ending.MISSING, scrollback=True)
        self._end_absent(now)
        at = self.world.ticking()
        self._everything_at, self._sockets_at, self._checkpoint_at = at + EVERY, at + SOCKETS_EVERY, at + CHECKPOINT
        return self._finished(at)

    def round(self, noticed: Stimuli) -> Round:
        """Take in what was noticed and what is due, write down what came of it, and say what is to be published."""
        at = self.world.ticking()
        self._asked = set()
        for key, gone in noticed.ended.items():
            self._has_ended(key, gone)
        self._notice(noticed, at)
        if noticed.everything:
            self._everything_at = at
        self._see_sockets(noticed, at)
        self._compare_outlines(at)
        self._look_at_due(at)
        for known in self._glances.glance(self._servers, self.world.ticking()):
            self._follow(known)
        self.supervisor.tick(self.world.now())
        self._think(at)
        if at >= self._checkpoint_at:
            self._checkpoint_at = at + CHECKPOINT
            self._lease.take(self.world.now())
        return self._finished(at)

    def end(self) -> tuple[StoredEvent, ...]:
        """Save once more, write everything down and give the lease back."""
        self._look([known for known in self._servers.values() if known.process], reason="shutdown")
        self.supervisor.note(Event(kind=EventKind.DAEMON_STOPPED, at=self.world.now()))
        stored = self.record()
        self._lease.drop()
        return stored

    def counts(self) -> tuple[int, int, int]:
        """Return how many servers are there, how many panes, and how many of those with an agent."""
        runs = self.supervisor.runs
        agents = sum(1 for run in runs if run.program is not None)
        return sum(1 for known in self._servers.values() if known.process), len(runs), agents

    def save(self) -> list[SaveResult]:
        """Look at everything and save it now, with what the panes show."""
        return self._look(list(self._servers.values()), reason="periodic_tmux_reconcile", scrollback=True)

    def health(self) -> dict[str, str]:
        """Return by socket how far what is said of it can be up to date."""
        return {known.server.socket: str(known.health) for known in self._servers.values() if known.process}

    def reload(self) -> None:
        """Read the configuration again; everything is looked at by it in the next round. Raises what is wrong with it."""
        self.world = self.world.reload()
        self._glances.reload(self.world)
        self._thinking.reload(self.world)
        self._everything_at = 0.0

    def record(self) -> tuple[StoredEvent, ...]:
        """Write down what has happened; what cannot be written now is kept for the next time."""
        batch = self.supervisor.batch()
        if not batch:
            return ()
        stored = self.world.store.record(batch.runs, batch.events)
        self.supervisor.recorded(batch)
        self._thinking.recorded()
        return stored

    def _think(self, at: float) -> None:
        """Think about those who have stirred, once they are quiet."""
        stirred = {event.run for event in self.supervisor.batch().events if event.kind in _STIRRING}
        for id in stirred | self._glances.take_stirred():
            if id is not None:
                self._thinking.stirred(id, at)
        self._thinking.think(at)
        self._thinking.forget(lambda id: (run := self.supervisor.get(id)) is not None and not run.is_over)

    def _finished(self, at: float) -> Round:
        try:
            events = self.record()
        except PerdureError:
            # Tried again with the next round, all but the thoughts, which are only worth something now.
            events = self._thinking.not_recorded(at)
        return Round(
            events=events,
            paths=self._watched_paths(),
            programs=self._programs(),
            servers={Key(What.SERVER, key): known.program.pid for key, known in self._servers.items() if known.program},
            asked=frozenset(self._asked),
            next_at=self._next_at(at),
        )

    # What was noticed

    def _notice(self, noticed: Stimuli, at: float) -> None:
        for key in noticed.keys:
            if key.what in (What.PANE, What.AGENT):
                self._glances.changed(key.id, at, printed=key.what is What.PANE)
            elif key.what is What.SPOOL:
                for run in self.supervisor.runs:
                    if run.program is not None:
                        self._glances.changed(run.id, at, printed=False)
            elif key.what is What.SERVER and key.id in self._servers:
                known = self._servers[key.id]
                known.outline_at = known.outline_at or at

    def _has_ended(self, key: Key, gone: Gone) -> None:
        now = self.world.now()
        if key.what is What.SERVER:
            self._server_died(key.id, now, gone.how)
        elif key.what is What.AGENT:
            run = self.supervisor.get(key.id)
            if run is not None and run.program is not None:
                status, number = gone.how.status, gone.how.signal
                ended = Ended(what=Ending.PROGRAM, exit_status=status, exit_signal=number, program=gone.program)
                self.supervisor.observe(run.id, ended, now)
                self._tenants.pop(run.id, None)
                self._suspect(run)

    def _suspect(self, run: Run) -> None:
        """Something about a pane may have changed that only a whole look tells."""
        known = self._servers.get(run.server.key)
        if known is not None:
            at = self.world.ticking()
            for wait in (0.0, *FOLLOW_UPS):
                known.look_by(at + wait)

    def _follow(self, known: Known) -> None:
        """See once more whether a server's outline changed: what it did while it was asked goes unnoticed otherwise."""
        self._asked.add(Key(What.SERVER, known.server.key))
        if known.outline_at is None and known.process is not None:
            known.outline_at = self.world.ticking() + OUTLINE_GAP

    def _look_later(self, run: Run, at: float) -> None:
        known = self._servers.get(run.server.key)
        if known is not None and known.next_look() is None:
            known.look_by(at)

    def _server_died(self, key: str, now: datetime, how: Exit | None = None) -> None:
        known = self._servers.get(key)
        if known is None or known.process is None:
            return
        demise = cause(known.vigil, how) if known.vigil is not None else None
        agents = sum(1 for run in self.supervisor.runs if run.server.key == key and run.program is not None)
        data = {
            "socket": known.server.socket,
            "pid": known.process.pid,
            "cause": demise.kind if demise else "unknown",
            "message": demise.sentence if demise else "Nobody knows why.",
            "agents": agents,
            "snapshot": known.snapshot,
        }
        died = Event(kind=EventKind.SERVER_DIED, at=now, server=key, data=data)
        self.supervisor.server_died(key, died, now)
        known.process = known.program = known.vigil = known.outline = None
        # Another may be listening there already.
        known.look_by(self.world.ticking() + 0.2)
        if self.world.config.live.restore and agents:
            self.to_restore.append(known.server)

    # Which servers there are

    def _see_sockets(self, noticed: Stimuli, at: float) -> None:
        if at >= self._sockets_at or any(key.what is What.SOCKETS for key in noticed.keys):
            self._sockets_at = at + SOCKETS_EVERY
            self._find_sockets()

    def _find_sockets(self) -> None:
        at = self.world.ticking()
        for owner, socket in self.world.sockets():
            server = Server(host=self.world.host, user=owner.name, uid=owner.uid, socket=socket)
            known = self._servers.setdefault(server.key, Known(server=server, owner=owner))
            if known.process is None:
                known.look_by(at)

    def _compare_outlines(self, at: float) -> None:
        timeout = self.world.config.tmux.timeout_seconds
        for known in self._servers.values():
            due = known.next_outline()
            if due is None or due > at or known.process is None:
                continue
            known.outline_at, known.outlined_at = None, at
            self._asked.add(Key(What.SERVER, known.server.key))
            found = outline(known.server.socket, known.owner, timeout=timeout)
            if not isinstance(found, Outline):
                self._did_not_answer(known, at)
            elif found.process != known.process or found.digest != known.outline:
                known.outline = found.digest
                known.look_by(at)
            else:
                self._glances.titles(known, found.titles, at)

    # Whole looks

    def _look_at_due(self, at: float) -> None:
        everything = at >= self._everything_at
        if everything:
            self._everything_at = at + EVERY
        due = [
            known
            for known in self._servers.values()
            if everything or ((when := known.next_look()) is not None and when <= at)
        ]
        if due:
            self._look(due, reason="periodic_tmux_reconcile", scrollback=everything)

    def _look(
        self, servers: Sequence[Known], *, reason: str, missing: Ending = Ending.PANE, scrollback: bool = False
    ) -> list[SaveResult]:
        if not servers:
            return []
        world, now = self.world, self.world.now()
        timeout = world.config.tmux.timeout_seconds
        for known in servers:
            # Before the look: whatever changes after this is noticed by the next.
            self._outline(known)
        asked = [
            ask(
                known.server.socket,
                known.owner,
                options=not self._memory.is_fresh(known.server.socket, now),
                timeout=timeout,
                knock=known.process is None,
            )
            for known in servers
        ]
        looked = look(asked, world.around, now, scrollback=scrollback, memory=self._memory)
        self._paths = None
        at = world.ticking()
        for known in servers:
            known.looked(at)
            self._follow(known)
        captures = [each.capture for each in looked if isinstance(each, Looked)]
        self.supervisor.discover(captures, world.store.new_runs, now, reason=reason, missing=missing)
        for known, each in zip(servers, looked, strict=True):
            if isinstance(each, Missed):
                self._missed(known, each, at)
            else:
                self._took_in(known, each.capture, now)
        results = world.keep([each for each in looked if isinstance(each, Looked)], now)
        self._note_saved(results, now)
        return results

    def _outline(self, known: Known) -> None:
        if known.process is not None and known.outlined_at < self.world.ticking() - 0.01:
            found = outline(known.server.socket, known.owner, timeout=self.world.config.tmux.timeout_seconds)
            known.outline = found.digest if isinstance(found, Outline) else None

    def _took_in(self, known: Known, capture: Capture, now: datetime) -> None:
        process = capture.topology.process
        if known.process != process:
            self._appeared(known, capture, now)
        known.failures, known.seen_at = 0, now
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
            self._ttys[run.id] = pane.tty
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
            if run.status.state is RunState.UNKNOWN or run.status.observed_at is None:
                self._glances.changed(run.id, self.world.ticking(), printed=False)

    def _appeared(self, known: Known, capture: Capture, now: datetime) -> None:
        process = capture.topology.process
        if known.process is not None:
            # It was replaced before anybody noticed its end.
            self.supervisor.note(
                Event(
                    kind=EventKind.SERVER_DIED,
                    at=now,
                    server=known.server.key,
                    data={"socket": known.server.socket, "pid": known.process.pid, "cause": "unknown"},
                )
            )
        known.process = process
        entry = read_entry(process.pid)
        known.program = Program(pid=process.pid, start_ticks=entry.start_ticks) if entry is not None else None
        known.vigil = known.vigil_at = None
        data = {"socket": known.server.socket, "pid": process.pid, "panes": len(capture.topology.panes)}
        self.supervisor.note(Event(kind=EventKind.SERVER_APPEARED, at=now, server=known.server.key, data=data))

    def _missed(self, known: Known, missed: Missed, at: float) -> None:
        if missed.reason in (Miss.NO_SERVER, Miss.REFUSED):
            if known.process is not None and known.program is not None and not _lives(known.program):
                self._server_died(known.server.key, self.world.now())
            return
        if missed.reason is Miss.EMPTY:
            for run in [run for run in self.supervisor.runs if run.server.key == known.server.key]:
                self.supervisor.observe(run.id, Ended(what=Ending.PANE), self.world.now())
            return
        self._did_not_answer(known, at)

    def _did_not_answer(self, known: Known, at: float) -> None:
        """What does not answer has changed nothing: only how far it is to be trusted."""
        if known.program is not None and not _lives(known.program):
            self._server_died(known.server.key, self.world.now())
            return
        known.failures += 1
        known.look_by(at + RETRY * known.failures)
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

    def _end_absent(self, now: datetime) -> None:
        """End the runs of before whose servers are certainly not there."""
        for run in self.supervisor.runs:
            known = self._servers.get(run.server.key)
            is_there = known is not None and (known.process is not None or known.failures > 0)
            if run.stale and not is_there:
                self.supervisor.observe(run.id, Ended(what=Ending.MISSING), now)

    def _note_saved(self, results: Iterable[SaveResult], now: datetime) -> None:
        for each in results:
            known = next((known for known in self._servers.values() if known.server.socket == each.socket), None)
            if known is None:
                continue
            known.snapshot = each.snapshot or known.snapshot
            if each.result == "saved":
                data = {"socket": each.socket, "snapshot": each.snapshot, "panes": each.panes, "agents": each.agents}
                self.supervisor.note(Event(kind=EventKind.SAVED, at=now, server=known.server.key, data=data))

    # What is to be watched

    def _watched_paths(self) -> dict[Key, str]:
        if self._paths is None:
            self._paths = self._found_paths()
        return self._paths

    def _found_paths(self) -> dict[Key, str]:
        paths = {Key(What.TERMINALS): "/dev/pts"}
        for number, directory in enumerate(self.world.socket_dirs()):
            paths[Key(What.SOCKETS, str(number))] = directory
        for number, directory in enumerate(self.world.spools()):
            paths[Key(What.SPOOL, str(number))] = directory
        for run in self.supervisor.runs:
            if run.id in self._ttys and not run.stale:
                paths[Key(What.PANE, run.id)] = self._ttys[run.id]
            tenant = self._tenants.get(run.id)
            for number, path in enumerate(tenant.paths if tenant is not None else ()):
                paths[Key(What.AGENT, f"{run.id}/{number}")] = path
        return paths

    def _programs(self) -> dict[Key, Program]:
        programs = {Key(What.SERVER, key): known.program for key, known in self._servers.items() if known.program}
        for run in self.supervisor.runs:
            if run.program is not None and not run.stale:
                programs[Key(What.AGENT, run.id)] = run.program
        return programs

    def _next_at(self, at: float) -> float:
        times = [self._everything_at, self._sockets_at, self._checkpoint_at]
        for known in self._servers.values():
            times += [each for each in (known.next_look(), known.next_outline()) if each is not None]
        times += [each for each in (self._glances.next(), self._thinking.next()) if each is not None]
        due = self.supervisor.due()
        if due is not None:
            times.append(at + max(0.0, (due - self.world.now()) / timedelta(seconds=1)))
        return min(times)


def _lives(program: Program) -> bool:
    return is_alive(program.pid, program.start_ticks)
