"""observe -> advance -> record, once around. Everything here runs in one thread, in which the store was opened."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from perdure.daemon.chat_upkeep import ChatUpkeep
from perdure.daemon.current import Current
from perdure.daemon.deaths import Deaths
from perdure.daemon.ends import fell, in_turn
from perdure.daemon.glances import Glances
from perdure.daemon.job_watch import JobWatch
from perdure.daemon.keeping import Keeping, Trouble
from perdure.daemon.known_servers import FOLLOW_UPS, Known
from perdure.daemon.looking import Looking
from perdure.daemon.seeing import Tenant
from perdure.daemon.stimuli import Gone, Key, Round, Stimuli, What
from perdure.daemon.telling import Publish, Telling
from perdure.daemon.thinking import Thinking
from perdure.daemon.untold import Promise
from perdure.daemon.watched import Programs, paths_of
from perdure.daemon.world import World
from perdure.errors import ConfigError
from perdure.live.lifetimes import AT_START, NOTICED
from perdure.live.supervise import Supervisor
from perdure.model.event import Event, EventKind
from perdure.model.observation import Ended, Ending
from perdure.model.run import Run
from perdure.model.server import Server
from perdure.snapshots.save import SaveResult

#: How often everything is looked at and saved, whether or not anything was noticed.
EVERY = 60.0
#: How often it is seen whether there are new sockets, where nobody tells.
SOCKETS_EVERY = 10.0
#: How long an agent may take to end after a server that has ended in good order, in seconds, to have ended by itself.
LINGERS = 0.2
_MOMENT = 0.005
#: What gives reason to think about a run anew.
_STIRRING = frozenset({EventKind.STATE_CHANGED, EventKind.IDENTITY_CHANGED, EventKind.RUN_CREATED})


class Rounds:
    """The daemon's work. `begin` first, then `round` as often as it asks for, then `end`."""

    def __init__(self, world: World, publish: Publish, ended_by_now: Callable[[], Mapping[Key, Gone]] = dict) -> None:
        """`ended_by_now` tells which processes have ended of those that were asked for, also where a round is told later."""
        self._ended_by_now = ended_by_now
        self._keeping = Keeping(world)
        #: Tells of every event as soon as it is stored, in order.
        self.telling = Telling(publish)
        #: The runs as they were last written down; others may look at it, whatever is done here meanwhile.
        self.current = Current()
        self.supervisor = Supervisor()
        self._tenants: dict[str, Tenant] = {}
        self._deaths = Deaths(self._keeping, self.supervisor)
        self._glances = Glances(
            world,
            self.supervisor,
            self._tenants,
            self._suspect,
            self._look_later,
            lambda known, at: self._looking.did_not_answer(known, at),
        )
        self._looking = Looking(
            self._keeping,
            self.supervisor,
            self._deaths,
            self._glances,
            self._tenants,
            self.record,
            self._hear_agents,
            lambda known: self._died(known, self._heard().get(Key(What.SERVER, known.server.key))),
        )
        self._thinking = Thinking(world, self.supervisor, lambda id: self._glances.lines.get(id, ()))
        self._jobs = JobWatch(self._keeping)
        self._chats = ChatUpkeep(self._keeping)
        self._paths: dict[Key, str] | None = None
        self._programs = Programs()
        self._everything_at = 0.0
        self._sockets_at = 0.0

    @property
    def to_restore(self) -> list[Server]:
        """Servers that died and are to be brought back; whoever does so takes them out."""
        return self._deaths.to_restore

    @property
    def _servers(self) -> dict[str, Known]:
        return self._looking.servers

    @property
    def world(self) -> World:
        """What it all stands on."""
        return self._keeping.world

    # The whole of it

    def begin(self) -> Round:
        """Take the lease, remember the runs of before, and look at everything for the first time. Raises `Refused`."""
        now = self.world.now()
        self._keeping.begin(self.world.ticking(), now)
        runs = self.world.store.list_runs(host=self.world.host)
        self._keeping.knows(run.id for run in runs)
        self.supervisor = Supervisor(runs)
        for part in (self._glances, self._thinking, self._looking, self._deaths):
            part.supervisor = self.supervisor
        self._looking.before = {(run.server.key, run.process) for run in self.supervisor.runs}
        going_on = self._deaths.begin(runs)
        data = {"restoring": going_on} if going_on else {}
        self.supervisor.note(Event(kind=EventKind.DAEMON_STARTED, at=now, data=data))
        self._deaths.tell_restored()
        self._find_sockets()
        self._look(list(self._servers.values()), reason=AT_START, missing=Ending.MISSING, scrollback=True)
        self._looking.tell_missed(now)
        self._looking.end_absent(now, set())
        at = self.world.ticking()
        # What was thought of anybody before may be about something it has done with since.
        for run in self.supervisor.runs:
            self._thinking.stirred(run.id, at)
        self._jobs.look(at)
        self._everything_at, self._sockets_at = at + EVERY, at + SOCKETS_EVERY
        return self._finished(at)

    def round(self, noticed: Stimuli) -> Round:
        """Take in what was noticed and what is due, write down what came of it, and say what is to be watched.

        Raises `Refused` when another daemon has taken over.
        """
        at = self.world.ticking()
        self._looking.asked = set()
        if self._keeping.mend(at, self.world.now()):
            # All of it again: what was written before may be in another database.
            self.supervisor.rewrite()
            self._everything_at = at
            self._jobs.begin_anew()
        self._keeping.hold(at, self.world.now())
        for key, gone in in_turn(self._heard() | noticed.ended):
            self._has_ended(key, gone)
        self._notice(noticed, at)
        self._see_sockets(noticed, at)
        self._looking.compare_outlines(at)
        self._look_at_due(at)
        for known in self._glances.glance(self._servers, self.world.ticking()):
            self._looking.follow(known)
        self.supervisor.tick(self.world.now())
        self._think(at)
        self._jobs.look(at)
        self._chats.look(at)
        return self._finished(at)

    def end(self) -> None:
        """Save once more, write everything down and give the lease back."""
        self._keeping.mend(self.world.ticking(), self.world.now(), at_once=True)
        self.record(last=True)
        # Not those that hang: whoever wants us to end does not wait for them.
        there = [known for known in self._servers.values() if known.process and not known.failures]
        self._look(there, reason="shutdown", scrollback=True, outlines=False)
        self.supervisor.note(Event(kind=EventKind.DAEMON_STOPPED, at=self.world.now()))
        self.record(last=True)
        self._thinking.close()
        self._keeping.end()

    def counts(self) -> tuple[int, int, int]:
        """Return how many servers are there, how many panes, and how many of those with an agent."""
        runs = self.supervisor.runs
        agents = sum(1 for run in runs if run.program is not None)
        return sum(1 for known in self._servers.values() if known.process), len(runs), agents

    def save(self, server: str | None = None) -> list[SaveResult]:
        """Look at everything, or at the server of this key, and save it now, with what the panes show."""
        servers = [known for key, known in self._servers.items() if server in (None, key)]
        return self._look(servers, reason=NOTICED, scrollback=True)

    def promised(self, server: Server) -> Promise | None:
        """Return why a server is to be brought back; None when it is not, or not any more."""
        return self._deaths.promised(server)

    def restored(self, promise: Promise, began_at: datetime, told: Event) -> None:
        """Take in that a restore has ended which was begun then, with the event that tells so.

        What it has made may be gone by now, and nobody may have seen it. Where that was seen and is to be brought back,
        too, nothing is told yet.
        """
        server = promise.server
        self._deaths.restored(promise, began_at, told)
        if known := self._servers.get(server.key):
            self._look_soon(known, self.world.ticking())
        self._looking.tell_missed(self.world.now())

    @property
    def trouble(self) -> Trouble | None:
        """Why what happens is not written down at present, and since when; None when it is. Anybody may look."""
        return self._keeping.trouble

    def has_lease(self) -> bool:
        """Prolong the lease now; return whether that could be. Where another has it the next round raises `Refused`."""
        return self._keeping.has_lease(self.world.ticking(), self.world.now())

    def is_recorded(self, id: str) -> bool:
        """Write down what can be, and return whether all that has become of a run is."""
        self.record()
        return all(run.id != id for run in self.supervisor.batch().runs)

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
        self._jobs.begin_anew()
        self._everything_at = self._sockets_at = 0.0

    def record(self, *, last: bool = False) -> None:
        """Write down what has happened and publish it; what cannot be written now is kept for the next time."""
        at = self.world.ticking()
        self._keep_up(at)
        stored = self._keeping.record(self.supervisor, at, at_once=last)
        # Before anybody is told: whoever then looks sees at least that.
        self.current = self.current.follow(self.supervisor.runs)
        if stored is None:
            # All but the thoughts, which are only worth something now.
            self.telling.unstored(self._thinking.not_recorded(at))
        elif stored:
            self._thinking.recorded()
            self.telling.own(stored)

    def _think(self, at: float) -> None:
        """Think about those who have stirred, once they are quiet."""
        for id in self._glances.take_stirred():
            self._thinking.stirred(id, at)
        self._thinking.think(at)

    def _keep_up(self, at: float) -> None:
        """See that what is said of a run changes with its state, in what is written down together."""
        happened = self.supervisor.batch().events
        for id in {event.run for event in happened if event.run is not None and event.kind in _STIRRING}:
            self._thinking.stirred(id, at)
        self._thinking.keep_up({event.run for event in happened if event.kind is EventKind.STATE_CHANGED})

    def _finished(self, at: float) -> Round:
        self.record()
        runs = self.supervisor.runs
        if self._paths is None:
            self._paths = paths_of(self.world, runs, self._looking.ttys, self._tenants)
        return Round(
            paths=self._paths,
            programs=self._programs.of(self._servers, runs, self._jobs.programs),
            servers={Key(What.SERVER, key): known.program.pid for key, known in self._servers.items() if known.program},
            asked=frozenset(self._looking.asked),
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
            self._jobs.appeared(at)
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
        elif key.what is What.JOBS:
            self._jobs.appeared(at)
        elif key.what is What.TERMINALS:
            for known in self._servers.values():
                if known.empty:
                    self._look_soon(known, at)

    def _has_ended(self, key: Key, gone: Gone) -> None:
        if key.what is What.SERVER:
            known = self._servers.get(key.id)
            # Another may have come to its place before its end was noticed.
            if known is not None and known.program == gone.program:
                self._died(known, gone)
        elif key.what is What.AGENT:
            self._agent_ended(key.id, gone)
        elif key.what is What.JOB:
            self._jobs.ended(key.id, self.world.ticking())
        elif key.what is What.PANE:
            run, known = self.supervisor.get(key.id), self._server_of(key.id)
            if run is not None and run.first == gone.program and known is not None:
                known.hurry(self.world.ticking())

    def _agent_ended(self, id: str, gone: Gone) -> None:
        run = self.supervisor.get(id)
        if run is not None and run.program == gone.program:
            status, number = gone.how.status, gone.how.signal
            ended = Ended(what=Ending.PROGRAM, exit_status=status, exit_signal=number, program=gone.program)
            self.supervisor.observe(run.id, ended, self.world.now())
            self._deaths.agent_ended(run, gone.at)
            self._tenants.pop(run.id, None)
            self._suspect(run, FOLLOW_UPS)

    def _heard(self) -> dict[Key, Gone]:
        """Return which agents and servers have ended by now: those of a moment are taken in together, and in their turn."""
        ended = self._ended_by_now()
        return {key: gone for key, gone in ended.items() if key.what in (What.AGENT, What.SERVER)}

    def _hear_agents(self, is_gone: Callable[[Run], bool]) -> None:
        """Take in how the agents of these runs have ended, where they have, before anything else is said of that.

        But for agents whose server fell: they have ended with it.
        """
        heard = self._heard()
        for key, gone in heard.items():
            run = self.supervisor.get(key.id) if key.what is What.AGENT else None
            if run is not None and is_gone(run) and not fell(heard.get(Key(What.SERVER, run.server.key))):
                self._agent_ended(key.id, gone)

    def _died(self, known: Known, gone: Gone | None) -> None:
        """A server is dead, and with it all that is not known to have ended by itself."""
        if gone is not None and gone.program == known.program and not fell(gone):
            self._hear_last(known, min(gone.at, self.world.ticking()) + LINGERS)
        self._deaths.died(known, self.world.now(), gone)

    def _hear_last(self, known: Known, until: float) -> None:
        """Take in how the agents ended after which a server had nothing left.

        tmux is done with a pane as soon as nobody has its terminal open: the process in it may end a moment after all of
        tmux has.
        """

        def is_in(run: Run) -> bool:
            return run.server.key == known.server.key and run.program is not None

        self._hear_agents(is_in)
        while any(map(is_in, self.supervisor.runs)) and self.world.ticking() < until:
            time.sleep(_MOMENT)
            self._hear_agents(is_in)

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

    def _look_later(self, run: Run, at: float) -> None:
        known = self._servers.get(run.server.key)
        if known is not None and known.next_look() is None:
            known.look_by(at)

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
                self._looking.memory.forget(self._servers.pop(key).server.socket)

    # Whole looks

    def _look_at_due(self, at: float) -> None:
        everything = at >= self._everything_at
        if everything:
            self._everything_at = at + EVERY
            self._forget()
            for id in self._tenants:
                # Whatever was told or not: nobody is taken for long for what they were.
                self._glances.changed(id, at, printed=False, told=False)
            self._deaths.tell_restored()
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
        # There may be others to watch by now.
        self._paths = None
        return self._looking.look(servers, reason=reason, missing=missing, scrollback=scrollback, outlines=outlines)

    def _forget(self) -> None:
        """Let go of what is known of runs that are over."""

        def goes_on(id: str) -> bool:
            run = self.supervisor.get(id)
            return run is not None and not run.is_over

        for known in (self._looking.ttys, self._tenants):
            for id in [id for id in known if not goes_on(id)]:
                del known[id]
        self._glances.forget(goes_on)
        self._thinking.forget(goes_on)
        self._looking.end_absent(self.world.now(), set())
        self.supervisor.forget(self.world.now() - timedelta(days=self.world.config.retention.runs_days))

    def _next_at(self, at: float) -> float:
        times = [self._everything_at, self._sockets_at, self._keeping.next(), self._jobs.next(), self._chats.next()]
        for known in self._servers.values():
            times += [each for each in (known.next_look(), known.next_outline()) if each is not None]
        times += [each for each in (self._glances.next(), self._thinking.next()) if each is not None]
        due = self.supervisor.due()
        if due is not None:
            times.append(at + max(0.0, (due - self.world.now()) / timedelta(seconds=1)))
        return min(times)
