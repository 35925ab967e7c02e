"""observe -> advance -> record, once around. Everything here runs in one thread, in which the store was opened."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from functools import partial

from perdure.agents import agent_of, roster
from perdure.daemon.glances import Glances
from perdure.daemon.keeping import Keeping
from perdure.daemon.known_servers import FOLLOW_UPS, OUTLINE_GAP, OVERLOADED_AFTER, RETRY, Known
from perdure.daemon.seeing import Tenant, settled
from perdure.daemon.stimuli import Gone, Key, Round, Stimuli, What
from perdure.daemon.telling import Publish, Telling
from perdure.daemon.thinking import Thinking
from perdure.daemon.untold import KINDS, begun, untold
from perdure.daemon.watched import Programs, paths_of
from perdure.daemon.world import World
from perdure.errors import ConfigError, StoreUnusable
from perdure.host.demise import Demise, DemiseKind, Vigil, cause
from perdure.host.exits import Exit
from perdure.host.processes import is_alive, read_entry
from perdure.live.lifetimes import AT_START, NOTICED
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.observation import Ended, Ending
from perdure.model.run import Health, Program, Run, RunState
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Miss, Missed
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Memory
from perdure.snapshots.identify import Seen
from perdure.snapshots.look import Looked, look
from perdure.snapshots.passing import without_temporary
from perdure.snapshots.save import SaveResult
from perdure.tmux.glance import NoServer, Outline, outline

#: How often everything is looked at and saved, whether or not anything was noticed.
EVERY = 60.0
#: How often it is seen whether there are new sockets, where nobody tells.
SOCKETS_EVERY = 10.0
#: An outline that is older than this is taken anew before a whole look, in seconds. One that is older than the look costs
#: another look at most.
FRESH = 1.0
#: How long an outline may take, in seconds: meanwhile nobody else is looked at.
QUICK = 2.0
#: How long what was counted around a server is good for.
VIGIL_FOR = timedelta(seconds=45)
#: More than there ever are of one kind.
_ALL = 1_000_000
#: What gives reason to think about a run anew.
_STIRRING = frozenset({EventKind.STATE_CHANGED, EventKind.IDENTITY_CHANGED, EventKind.RUN_CREATED})


class Rounds:
    """The daemon's work. `begin` first, then `round` as often as it asks for, then `end`."""

    def __init__(self, world: World, publish: Publish) -> None:
        self._keeping = Keeping(world)
        #: Tells of every event as soon as it is stored, in order.
        self.telling = Telling(publish)
        self.supervisor = Supervisor()
        self._servers: dict[str, Known] = {}
        self._tenants: dict[str, Tenant] = {}
        self._ttys: dict[str, str] = {}
        self._memory = Memory()
        self._glances = Glances(
            world, self.supervisor, self._tenants, self._suspect, self._look_later, self._did_not_answer
        )
        self._thinking = Thinking(world, self.supervisor, lambda id: self._glances.lines.get(id, ()))
        self._paths: dict[Key, str] | None = None
        self._programs = Programs()
        self._everything_at = 0.0
        self._sockets_at = 0.0
        #: The processes of servers that were watched before this daemon began.
        self._before: set[tuple[str, ServerProcess | None]] = set()
        #: Servers that were asked something in this round: what they do because of it is no news.
        self._asked: set[Key] = set()
        #: Servers that died and are to be brought back.
        self.to_restore: list[Server] = []
        #: Servers that a daemon before this one was to bring back, by the events of their deaths.
        self._deaths: dict[str, Event] = {}

    @property
    def world(self) -> World:
        """What it all stands on."""
        return self._keeping.world

    # The whole of it

    def begin(self) -> Round:
        """Take the lease, remember the runs of before, and look at everything for the first time. Raises `Refused`."""
        now = self.world.now()
        self._keeping.begin(self.world.ticking(), now)
        self.supervisor = Supervisor(self.world.store.list_runs(host=self.world.host))
        self._glances.supervisor = self._thinking.supervisor = self.supervisor
        self._before = {(run.server.key, run.process) for run in self.supervisor.runs}
        self.supervisor.note(Event(kind=EventKind.DAEMON_STARTED, at=now))
        self._deaths = begun(self.world.store.read_events(limit=_ALL, kinds=KINDS))
        self._tell_restored()
        self._find_sockets()
        self._look(list(self._servers.values()), reason=AT_START, missing=Ending.MISSING, scrollback=True)
        self._end_absent(now, set())
        at = self.world.ticking()
        self._everything_at, self._sockets_at = at + EVERY, at + SOCKETS_EVERY
        return self._finished(at)

    def round(self, noticed: Stimuli) -> Round:
        """Take in what was noticed and what is due, write down what came of it, and say what is to be watched.

        Raises `Refused` when another daemon has taken over.
        """
        at = self.world.ticking()
        self._asked = set()
        if self._keeping.mend(at, self.world.now()):
            # All of it again: what was written before may be in another database.
            self.supervisor.rewrite()
            self._everything_at = at
        self._keeping.hold(at, self.world.now())
        for key, gone in noticed.ended.items():
            self._has_ended(key, gone)
        self._notice(noticed, at)
        self._see_sockets(noticed, at)
        self._compare_outlines(at)
        self._look_at_due(at)
        for known in self._glances.glance(self._servers, self.world.ticking()):
            self._follow(known)
        self.supervisor.tick(self.world.now())
        self._think(at)
        return self._finished(at)

    def end(self) -> None:
        """Save once more, write everything down and give the lease back."""
        self._keeping.mend(self.world.ticking(), self.world.now(), at_once=True)
        self.record(last=True)
        # Not those that hang: whoever wants us to end does not wait for them.
        there = [known for known in self._servers.values() if known.process and not known.failures]
        self._look(there, reason="shutdown", scrollback=True, outlines=False)
        self._thinking.close()
        self.supervisor.note(Event(kind=EventKind.DAEMON_STOPPED, at=self.world.now()))
        self.record(last=True)
        self._keeping.end()

    def counts(self) -> tuple[int, int, int]:
        """Return how many servers are there, how many panes, and how many of those with an agent."""
        runs = self.supervisor.runs
        agents = sum(1 for run in runs if run.program is not None)
        return sum(1 for known in self._servers.values() if known.process), len(runs), agents

    def save(self) -> list[SaveResult]:
        """Look at everything and save it now, with what the panes show."""
        return self._look(list(self._servers.values()), reason=NOTICED, scrollback=True)

    def health(self) -> dict[str, str]:
        """Return by socket how far what is said of it can be up to date."""
        return {known.server.socket: str(known.health) for known in self._servers.values() if known.process}

    def reload(self) -> None:
        """Read the configuration again; everything is looked at by it in the next round. Raises what is wrong with it."""
        fresh = self.world.reload()
        if fresh.host != self.world.host:
            raise ConfigError(
                "The name of this machine cannot change while it is watched; `perdure up` has to begin anew."
            )
        self._keeping.world = fresh
        self._keeping.hold_now()
        self._glances.reload(fresh)
        self._thinking.reload(fresh)
        self._everything_at = self._sockets_at = 0.0

    def record(self, *, last: bool = False) -> None:
        """Write down what has happened and publish it; what cannot be written now is kept for the next time."""
        at = self.world.ticking()
        stored = self._keeping.record(self.supervisor, at, at_once=last)
        if stored is None:
            # All but the thoughts, which are only worth something now.
            self.telling.unstored(self._thinking.not_recorded(at))
        elif stored:
            self._thinking.recorded()
            self.telling.own(stored)

    def _think(self, at: float) -> None:
        """Think about those who have stirred, once they are quiet."""
        stirred = {event.run for event in self.supervisor.batch().events if event.kind in _STIRRING}
        for id in stirred | self._glances.take_stirred():
            if id is not None:
                self._thinking.stirred(id, at)
        self._thinking.think(at)

    def _finished(self, at: float) -> Round:
        self.record()
        runs = self.supervisor.runs
        if self._paths is None:
            self._paths = paths_of(self.world, runs, self._ttys, self._tenants)
        return Round(
            paths=self._paths,
            programs=self._programs.of(self._servers, runs),
            servers={Key(What.SERVER, key): known.program.pid for key, known in self._servers.items() if known.program},
            asked=frozenset(self._asked),
            needs_terminals=any(known.empty for known in self._servers.values()),
            next_at=self._next_at(at),
        )

    # What was noticed

    def _notice(self, noticed: Stimuli, at: float) -> None:
        # What was printed first: it explains what servers did.
        for key in sorted(noticed.keys, key=lambda key: key.what is What.SERVER):
            self._notice_one(key, at, told=True)
        for key in noticed.polled:
            self._notice_one(key, at, told=False)
        if noticed.everything:
            for run in self.supervisor.runs:
                self._glances.changed(run.id, at, printed=False, told=False)
            for known in self._servers.values():
                known.outline_by(at)
                if known.empty:
                    known.look_by(at)

    def _notice_one(self, key: Key, at: float, *, told: bool) -> None:
        if key.what in (What.PANE, What.AGENT):
            self._glances.changed(key.id, at, printed=key.what is What.PANE, told=told)
            if key.what is What.AGENT and told:
                self._glances.spoke(key.id, at)
            known = self._server_of(key.id)
            if known is not None:
                known.printed_at = at
        elif key.what is What.SPOOL:
            # There may be another directory to watch by now.
            self._paths = None
            for run in self.supervisor.runs:
                if run.program is not None:
                    self._glances.changed(run.id, at, printed=False)
        elif key.what is What.SERVER and key.id in self._servers:
            self._servers[key.id].stirred(at)
        elif key.what is What.TERMINALS:
            for known in self._servers.values():
                if known.empty:
                    self._look_soon(known, at)

    def _has_ended(self, key: Key, gone: Gone) -> None:
        now = self.world.now()
        if key.what is What.SERVER:
            known = self._servers.get(key.id)
            # Another may have come to its place before its end was noticed.
            if known is not None and known.program == gone.program:
                self._server_died(known, now, gone.how)
        elif key.what is What.AGENT:
            run = self.supervisor.get(key.id)
            if run is not None and run.program == gone.program:
                status, number = gone.how.status, gone.how.signal
                ended = Ended(what=Ending.PROGRAM, exit_status=status, exit_signal=number, program=gone.program)
                self.supervisor.observe(run.id, ended, now)
                self._tenants.pop(run.id, None)
                self._suspect(run, FOLLOW_UPS)
        elif key.what is What.PANE:
            run, known = self.supervisor.get(key.id), self._server_of(key.id)
            if run is not None and run.first == gone.program and known is not None:
                known.hurry(self.world.ticking())

    def _suspect(self, run: Run, again: Sequence[float]) -> None:
        """Something about a pane may have changed that only a whole look tells, now or when it is looked at again."""
        if known := self._server_of(run.id):
            self._look_soon(known, self.world.ticking(), again)

    def _server_of(self, id: str) -> Known | None:
        run = self.supervisor.get(id)
        return None if run is None else self._servers.get(run.server.key)

    def _look_soon(self, known: Known, at: float, again: Sequence[float] = FOLLOW_UPS) -> None:
        """Look at a server at once, and again: what has just begun may still be on its way."""
        for wait in (0.0, *again):
            known.look_by(at + wait)

    def _follow(self, known: Known) -> None:
        """See once more whether a server's outline changed: what it did while it was asked goes unnoticed otherwise."""
        self._asked.add(Key(What.SERVER, known.server.key))
        if known.process is not None:
            known.outline_by(self.world.ticking() + OUTLINE_GAP)

    def _look_later(self, run: Run, at: float) -> None:
        known = self._servers.get(run.server.key)
        if known is not None and known.next_look() is None:
            known.look_by(at)

    def _server_died(self, known: Known, now: datetime, how: Exit | None = None) -> None:
        if known.process is None:
            return
        key = known.server.key
        demise = cause(known.vigil, how) if known.vigil is not None else None
        agents = sum(1 for run in self.supervisor.runs if run.server.key == key and run.program is not None)
        restoring = bool(self.world.config.live.restore and agents and not _was_told_to(demise))
        data = {
            "socket": known.server.socket,
            "pid": known.process.pid,
            "cause": demise.kind if demise else DemiseKind.UNKNOWN,
            "message": demise.sentence if demise else "The tmux server is gone; how it ended is not known.",
            "agents": agents,
            "snapshot": known.snapshot,
            "restoring": restoring,
        }
        died = Event(kind=EventKind.SERVER_DIED, at=now, server=key, data=data)
        self.supervisor.server_died(key, died, now)
        known.ended()
        # Another may be listening there already.
        known.look_by(self.world.ticking() + 0.2)
        if restoring:
            self.to_restore.append(known.server)

    def _tell_restored(self) -> None:
        """Tell of restores that the daemon before this one has begun, once they have ended."""
        try:
            told = untold(self._deaths, self.world.store.list_restores()) if self._deaths else ()
        except StoreUnusable:
            return  # whoever writes to it says so
        for event in told:
            del self._deaths[str(event.server)]
            self.supervisor.note(event)

    # Which servers there are

    def _see_sockets(self, noticed: Stimuli, at: float) -> None:
        is_told = any(key.what is What.SOCKETS for key in noticed.keys)
        if is_told or noticed.everything or at >= self._sockets_at:
            self._sockets_at = at + SOCKETS_EVERY
            self._find_sockets(again=is_told)

    def _find_sockets(self, *, again: bool = False) -> None:
        """Look at sockets at which nobody was known to listen; `again` where somebody may be just about to."""
        at = self.world.ticking()
        listed = set()
        for owner, socket in self.world.sockets():
            server = Server(host=self.world.host, user=owner.name, uid=owner.uid, socket=socket)
            is_new = server.key not in self._servers
            known = self._servers.setdefault(server.key, Known(server=server, owner=owner))
            listed.add(server.key)
            if known.process is None and not known.failures:
                if again or is_new:
                    self._look_soon(known, at)
                else:
                    known.look_by(at)
        for key in self._servers.keys() - listed:
            if self._servers[key].process is None:
                self._memory.forget(self._servers.pop(key).server.socket)

    def _compare_outlines(self, at: float) -> None:
        for known in list(self._servers.values()):
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
                self._did_not_answer(known, at)
            elif found.process != known.process or found.digest != known.outline:
                known.outline = found.digest
                known.look_by(at)
                self._end_missing(found, known.server)
            else:
                self._glances.titles(known, found.titles, at)

    def _end_missing(self, found: Outline, server: Server) -> None:
        """End the runs whose panes are not in an outline; those whose server is another by now end with theirs."""
        for run in self.supervisor.runs:
            is_of = run.server.key == server.key and run.process == found.process and not run.stale
            if is_of and run.pane not in found.panes:
                self.supervisor.observe(run.id, Ended(what=Ending.PANE), self.world.now())
        # Before the look, which takes its time.
        self.record()

    def _outlined(self, known: Known) -> Outline | NoServer | None:
        self._asked.add(Key(What.SERVER, known.server.key))
        timeout = min(self.world.config.tmux.timeout_seconds, QUICK)
        return outline(known.server.socket, known.owner, timeout=timeout)

    # Whole looks

    def _look_at_due(self, at: float) -> None:
        everything = at >= self._everything_at
        if everything:
            self._everything_at = at + EVERY
            self._forget()
            self._tell_restored()
        due = [
            known
            for known in self._servers.values()
            if everything or ((when := known.next_look()) is not None and when <= at)
        ]
        if due:
            self._look(due, reason=NOTICED, scrollback=everything)

    def _look(
        self,
        servers: Sequence[Known],
        *,
        reason: str,
        missing: Ending = Ending.PANE,
        scrollback: bool = False,
        outlines: bool = True,
    ) -> list[SaveResult]:
        world, now = self.world, self.world.now()
        servers = [known for known in servers if self._may_answer(known, outlines)]
        if not servers:
            return []
        asked = [
            ask(
                known.server.socket,
                known.owner,
                options=not self._memory.is_fresh(known.server.socket, now),
                timeout=world.config.tmux.timeout_seconds,
                knock=known.process is None,
            )
            for known in servers
        ]
        looked = look(asked, world.around, now, scrollback=scrollback, memory=self._memory)
        self._paths = None
        at = world.ticking()
        for known, each in zip(servers, looked, strict=True):
            known.looked(at)
            self._follow(known)
            if isinstance(each, Looked) and known.process not in (None, each.capture.topology.process):
                # It was replaced before anybody noticed its end.
                self._server_died(known, now)
            elif isinstance(each, Missed):
                self._missed(known, each, at)
        seen = [each for each in looked if isinstance(each, Looked)]
        # Those that are gone first: what was in them may have come to another place.
        self._end_absent(now, {each.capture.server.key for each in seen})
        self._discover([each.capture for each in seen], now, reason, missing)
        for known, each in zip(servers, looked, strict=True):
            if isinstance(each, Looked):
                self._took_in(known, without_temporary(each.capture), now)
        # Before it is saved, which takes its time.
        self.record()
        results = world.keep(seen, now) if seen else []
        self._keeping.saved(results, at)
        self._note_saved(results, now)
        return results

    def _may_answer(self, known: Known, outlines: bool) -> bool:
        """Return whether a server is worth asking; takes its outline, so that whatever changes after that is noticed."""
        at = self.world.ticking()
        if known.is_asleep(at):
            known.looked(at)
            self._did_not_answer(known, at)
            return False
        if known.process is None or not outlines or (known.outline is not None and known.outlined_at >= at - FRESH):
            return True
        found = self._outlined(known)
        known.outline = found.digest if isinstance(found, Outline) else None
        if found is None:
            known.looked(at)
            self._did_not_answer(known, self.world.ticking())
        return found is not None

    def _discover(self, captures: Sequence[Capture], now: datetime, reason: str, missing: Ending) -> None:
        """Take in the panes there are, but for those a restore speaks through."""
        at = self.world.ticking()
        shown = [without_temporary(capture) for capture in captures]
        new_ids = partial(self._keeping.new_ids, at=at)
        left = self.supervisor.discover(shown, new_ids, now, reason=reason, missing=missing)
        for capture in captures:
            if left.not_begun:
                self._servers[capture.server.key].look_by(at + FOLLOW_UPS[0])
            if left.without_id:
                self._servers[capture.server.key].look_by(max(at + RETRY, self._keeping.next()))

    def _forget(self) -> None:
        """Let go of what is known of runs that are over."""

        def goes_on(id: str) -> bool:
            run = self.supervisor.get(id)
            return run is not None and not run.is_over

        for known in (self._ttys, self._tenants):
            for id in [id for id in known if not goes_on(id)]:
                del known[id]
        self._glances.forget(goes_on)
        self._thinking.forget(goes_on)
        self._end_absent(self.world.now(), set())
        self.supervisor.forget(self.world.now() - timedelta(days=self.world.config.retention.runs_days))

    def _took_in(self, known: Known, capture: Capture, now: datetime) -> None:
        process = capture.topology.process
        if known.process != process:
            self._appeared(known, capture, now)
        known.answered(now)
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
        # One that was there when we last watched is no news.
        is_new = (known.server.key, process) not in self._before
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
            for run in [run for run in self.supervisor.runs if run.server.key == known.server.key]:
                self.supervisor.observe(run.id, Ended(what=Ending.PANE), self.world.now())
        elif known.process is not None or missed.reason not in (Miss.NO_SERVER, Miss.REFUSED):
            self._did_not_answer(known, at)

    def _did_not_answer(self, known: Known, at: float) -> None:
        """What does not answer has changed nothing: only how far it is to be trusted."""
        if known.program is not None and not _lives(known.program):
            self._server_died(known, self.world.now())
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

    def _end_absent(self, now: datetime, seen: Collection[str]) -> None:
        """End the runs of before whose servers are certainly not there; `seen` are the keys of some that are."""
        for run in self.supervisor.runs:
            known = self._servers.get(run.server.key)
            may_be_there = known is not None and (known.process is not None or known.failures > 0)
            # One that is not looked for any more may still be there.
            may_be_there |= run.server.key in seen or (run.first is not None and _lives(run.first))
            if run.stale and not may_be_there:
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

    def _next_at(self, at: float) -> float:
        times = [self._everything_at, self._sockets_at, self._keeping.next()]
        for known in self._servers.values():
            times += [each for each in (known.next_look(), known.next_outline()) if each is not None]
        times += [each for each in (self._glances.next(), self._thinking.next()) if each is not None]
        due = self.supervisor.due()
        if due is not None:
            times.append(at + max(0.0, (due - self.world.now()) / timedelta(seconds=1)))
        return min(times)


def _was_told_to(demise: Demise | None) -> bool:
    """Return whether a server is known to have ended because somebody ended it, or its last session.

    Where the kernel does not tell it is taken for an accident: what comes back can be ended again, what does not is lost.
    """
    return demise is not None and demise.kind is DemiseKind.EXITED and demise.detail.get("exit_status") == 0


def _lives(program: Program) -> bool:
    return is_alive(program.pid, program.start_ticks)
