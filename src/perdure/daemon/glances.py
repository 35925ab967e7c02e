"""Short looks at panes in which something was printed, or whose agents have said something."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import structs

from perdure.agents import roster
from perdure.daemon.known_servers import FOLLOW_UPS, Known
from perdure.daemon.seeing import (
    Occupant,
    Tenant,
    at_a_halt,
    at_prompt,
    by_title,
    looked_again,
    may_be_an_agent,
    on_screen,
    told,
)
from perdure.daemon.world import World
from perdure.host.processes import is_stopped
from perdure.live.advance import same_title
from perdure.live.pace import LINES_GAP, TITLED_GAP, Pace
from perdure.live.supervise import Supervisor
from perdure.model.observation import STOPPED, Ended, Ending, Sighted
from perdure.model.run import Place, Run, RunState
from perdure.tmux.glance import Glimpse, glance

#: How often it is seen whether an agent went on to another conversation, in seconds.
CLAIM_GAP = 1.0
#: The same when what it keeps about itself has changed.
SPOKEN_GAP = 0.2
#: When a program that is no agent was started or has ended, its server is looked at this much later.
LATER = 5.0
#: After something was printed by a shell, it is seen again this much later what has its terminal.
SHELL_AGAIN = (0.25, 1.0)
#: How long a glance may take, in seconds: meanwhile nobody else is looked at.
QUICK = 2.0
#: How long after the last key a person is taken to be still there.
PRESENT = timedelta(minutes=5)


class Glances:
    """Which panes are looked at when, and what is seen there."""

    def __init__(
        self,
        world: World,
        supervisor: Supervisor,
        tenants: dict[str, Tenant],
        suspect: Callable[[Run, Sequence[float]], None],
        later: Callable[[Run, float], None],
        unanswered: Callable[[Known, float], None],
    ) -> None:
        self._world = world
        self._later = later
        self._unanswered = unanswered
        self._agents = roster(world.config.agents)
        self.supervisor = supervisor
        self._tenants = tenants
        self._suspect = suspect
        self._pace: Pace[str] = Pace()
        self._printed: set[str] = set()
        #: Those whose titles say that they are busy.
        self._titled: set[str] = set()
        self._polled: set[str] = set()
        self._stirred: set[str] = set()
        #: Panes that could not be looked at, by the keys of their servers.
        self._missed: dict[str, set[str]] = {}
        #: When it was last seen, and will be next, whether an agent went on to another conversation.
        self._claimed_at: dict[str, float] = {}
        self._claims_at: dict[str, float] = {}
        #: Who had the terminal of a pane that is no agent's, and when that is seen again, or whether an agent goes on.
        self._occupants: dict[str, Occupant | None] = {}
        self._shells_at: dict[str, list[float]] = {}
        #: What each pane last showed, for those who think about it.
        self.lines: dict[str, Sequence[str]] = {}

    def take_stirred(self) -> set[str]:
        """Return the agents that have printed something since the last time."""
        stirred, self._stirred = self._stirred, set()
        return stirred

    def reload(self, world: World) -> None:
        """Go on with another configuration."""
        self._world, self._agents = world, roster(world.config.agents)

    def changed(self, id: str, at: float, *, printed: bool, told: bool = True) -> None:
        """Have a run looked at. Where nobody told that it is worth it, what it shows tells whether it has printed something."""
        id = id.partition("/")[0]
        self._pace.changed(id, at)
        if printed and told:
            self._printed.add(id)
        elif not told:
            self._polled.add(id)

    def spoke(self, id: str, at: float) -> None:
        """What an agent keeps about itself has changed: see at once whether it went on to another conversation."""
        id = id.partition("/")[0]
        self._claims_at[id] = max(at, self._claimed_at.get(id, float("-inf")) + SPOKEN_GAP)

    def next(self) -> float | None:
        """When the next run is to be looked at."""
        times = [*(times[0] for times in self._shells_at.values()), *self._claims_at.values()]
        return min([each for each in (self._pace.next(), *times) if each is not None], default=None)

    def titles(self, known: Known, panes: Mapping[str, str], at: float) -> None:
        """Have those looked at whose titles are others than the ones that are known."""
        for pane, title in panes.items():
            run = self.supervisor.in_pane(known.server.key, pane)
            if run is not None and not same_title(run.title, title):
                self._pace.changed(run.id, at)

    def glance(self, servers: Mapping[str, Known], at: float) -> list[Known]:
        """Look at the panes whose turn it is, all of a server in one go; return the servers that were asked."""
        self._see_shells_again(at)
        taken = self._pace.take(at, self._rest)
        wanted: dict[str, dict[str, bool]] = {}
        for id, reads in taken.items():
            run = self.supervisor.get(id)
            if run is None or run.is_over or run.stale:
                continue
            wanted.setdefault(run.server.key, {})[run.pane] = reads and id in self._tenants
        asked = []
        for key, panes in wanted.items():
            known = servers.get(key)
            if known is not None and known.process is not None:
                if not known.failures:
                    asked.append(known)
                self._glance_at(known, panes, at)
        self._see_claims(at)
        return asked

    def answered(self, known: Known, at: float) -> None:
        """Have those looked at that could not be while their server did not answer."""
        for pane in self._missed.pop(known.server.key, ()):
            run = self.supervisor.in_pane(known.server.key, pane)
            if run is not None:
                self._pace.changed(run.id, at)

    def forget(self, keep: Callable[[str], bool]) -> None:
        """Let go of what is known of runs that are over."""
        self._pace.forget(keep)
        for ids in (self._printed, self._polled, self._stirred, self._titled):
            ids.intersection_update([id for id in ids if keep(id)])
        for known in (self._claimed_at, self._claims_at, self._occupants, self._shells_at, self.lines):
            for id in [id for id in known if not keep(id)]:
                del known[id]

    def _rest(self, id: str) -> float:
        """Return how long a pane's lines are left alone after they were read."""
        run = self.supervisor.get(id)
        if run is None or run.status.state is not RunState.BUSY:
            return 0.0
        return TITLED_GAP if id in self._titled else LINES_GAP

    def _glance_at(self, known: Known, panes: Mapping[str, bool], at: float) -> None:
        timeout = min(self._world.config.tmux.timeout_seconds, QUICK)
        seen = None if known.failures else glance(known.server.socket, known.owner, panes, timeout=timeout)
        if seen is None or seen.process != known.process:
            # They are looked at again once their server is.
            self._missed.setdefault(known.server.key, set()).update(panes)
            if seen is None and not known.failures:
                self._unanswered(known, at)
            elif seen is not None:
                known.look_by(at)
            return
        for pane in panes:
            run = self.supervisor.in_pane(known.server.key, pane)
            glimpse = seen.panes.get(pane)
            if run is None:
                continue
            if glimpse is None:
                self._suspect(run, FOLLOW_UPS)
            else:
                self._take_in(run, glimpse, at)

    def _take_in(self, run: Run, glimpse: Glimpse, at: float) -> None:
        now = self._world.now()
        observe = self.supervisor.observe
        printed = run.id in self._printed or self._shows_more(run.id, glimpse)
        self._printed.discard(run.id)
        self._polled.discard(run.id)
        if printed and run.id in self._tenants:
            self._stirred.add(run.id)
        place = Place(
            session=glimpse.session, window=glimpse.window, pane=glimpse.index, window_name=glimpse.window_name
        )
        observe(
            run.id,
            Sighted(
                place=place,
                title=glimpse.title,
                attached=glimpse.attached,
                watched=_is_watched(glimpse, now),
                output_at=now if printed else None,
            ),
            now,
        )
        if glimpse.dead:
            ended = Ended(what=Ending.PROGRAM, exit_status=glimpse.exit_status, exit_signal=glimpse.exit_signal)
            observe(run.id, ended, now)
            return
        tenant = self._tenants.get(run.id)
        if tenant is None:
            self._see_shell(run, at)
            # What was typed is printed before what it starts has started, and that may print nothing at all.
            self._shells_at[run.id] = [at + wait for wait in SHELL_AGAIN]
            return
        for reading in told(tenant):
            observe(run.id, reading, now)
        if not self._see_halt(run, tenant, at):
            self._see_screen(run, tenant, glimpse, now)
        self._claims_at.setdefault(run.id, max(at, self._claimed_at.get(run.id, float("-inf")) + CLAIM_GAP))

    def _see_halt(self, run: Run, tenant: Tenant, at: float) -> bool:
        """Return whether the agent was stopped; while it is, it is seen again a little later whether it goes on."""
        now = self._world.now()
        reading = at_a_halt(tenant, now)
        self.supervisor.observe(run.id, reading, now)
        if reading.rule == STOPPED:
            # Who lets it go on says so before it does.
            self._shells_at[run.id] = [at + wait for wait in SHELL_AGAIN]
        return reading.rule == STOPPED

    def _shows_more(self, id: str, glimpse: Glimpse) -> bool:
        """Whether a pane that nobody tells of shows something else than the last time."""
        before = self.lines.get(id)
        return id in self._polled and glimpse.lines is not None and before is not None and before != glimpse.lines

    def _see_screen(self, run: Run, tenant: Tenant, glimpse: Glimpse, now: datetime) -> None:
        titled = by_title(tenant, glimpse.title, now)
        if glimpse.lines is not None:
            self.lines[run.id] = glimpse.lines
            self.supervisor.observe(run.id, on_screen(tenant, glimpse.lines, glimpse.title, now), now)
        elif titled is not None:
            self.supervisor.observe(run.id, titled, now)
        elif run.id in self._titled:
            # It was busy by its title and is not any more: what it is instead only its lines tell.
            self._pace.read_again(run.id)
        if titled is not None:
            self._titled.add(run.id)
        else:
            self._titled.discard(run.id)

    def _see_claims(self, at: float) -> None:
        """See whether agents that have stirred went on to another conversation; not more often than is needed."""
        for id in [id for id, due in self._claims_at.items() if due <= at]:
            del self._claims_at[id]
            run, tenant = self.supervisor.get(id), self._tenants.get(id)
            if run is None or run.is_over or tenant is None:
                continue
            self._claimed_at[id] = at
            again, certain = looked_again(structs.replace(tenant, seen=structs.replace(tenant.seen, title=run.title)))
            if again.claim == tenant.claim:
                continue
            self._tenants[id] = structs.replace(tenant, claim=again.claim)
            if certain is not None and run.program is not None and run.program.pid == tenant.seen.process.pid:
                # At once: a look at the whole server takes its time, and says no more about this.
                self.supervisor.went_on(id, certain, self._world.now())
            self._suspect(run, ())

    def _see_shells_again(self, at: float) -> None:
        for id, times in list(self._shells_at.items()):
            if times[0] > at:
                continue
            run = self.supervisor.get(id)
            if run is not None and not run.is_over:
                self._see_again(run, at)
            later = [each for each in times if each > at]
            if later:
                self._shells_at[id] = later
            else:
                del self._shells_at[id]

    def _see_again(self, run: Run, at: float) -> None:
        tenant = self._tenants.get(run.id)
        if tenant is None:
            self._see_shell(run, at)
        elif not is_stopped(tenant.seen.process.pid):
            self._pace.changed(run.id, at)

    def _see_shell(self, run: Run, at: float) -> None:
        if run.first is None:
            return
        reading, occupant = at_prompt(run.first, self._world.now())
        if reading is not None:
            self.supervisor.observe(run.id, reading, self._world.now())
        if occupant == self._occupants.get(run.id):
            return
        self._occupants[run.id] = occupant
        if occupant is not None and may_be_an_agent(occupant.pid, self._agents):
            self._suspect(run, FOLLOW_UPS)
        else:
            # What is kept of the pane has changed, but nothing that is worth a look at once.
            self._later(run, at + LATER)


def _is_watched(glimpse: Glimpse, now: datetime) -> bool:
    """Tell whether somebody is likely to sit before the pane: a client shows it, and was used lately."""
    used_at = glimpse.client_activity_at
    return glimpse.visible and used_at is not None and now - used_at < PRESENT
