"""What a restore does, decided before anything is done. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from os.path import basename

from msgspec import Struct, structs

from perdure.agents.generic import is_waiting_shell
from perdure.model.identity import Identity
from perdure.model.plan import AGENT_ACTIONS, Action, Plan, Restore, Step
from perdure.model.process import Command
from perdure.model.snapshot import CAPTURED, Snapshot
from perdure.model.topology import Link, Pane, Topology
from perdure.ports import AgentAdapter
from perdure.restore.match import There, free_index, match, used_indexes

#: Agent, profile and id: a copied profile has conversations of the same ids that are others.
Conversation = tuple[str, str | None, str]


class Holder(Struct, frozen=True, kw_only=True):
    """Who is in a conversation now."""

    #: A phrase such as "pane %3 on /tmp/tmux-1000/default".
    place: str
    #: The pane, when it is one of the server that is restored.
    pane: str | None = None


class Living(Struct, frozen=True, kw_only=True):
    """What is so now, as far as a plan depends on it."""

    #: The server's panes; None while no server runs there.
    topology: Topology | None = None
    #: Who is in which conversation, anywhere on this machine.
    held: Mapping[Conversation, Holder] = {}
    #: For every directory of the snapshot one that is there: itself, its nearest parent, or the home.
    directories: Mapping[str, str] = {}
    #: By pane of the snapshot: why its conversation cannot be resumed, though its id is known.
    lost: Mapping[str, str] = {}
    #: A restore of this snapshot that did not come to its end.
    interrupted: Restore | None = None


class Policy(Struct, frozen=True, kw_only=True):
    """What is wanted back, and how."""

    #: Names of programs that are started again; None for every program.
    programs: frozenset[str] | None = frozenset()
    #: Every agent waits for Enter.
    lazy: bool = False
    #: The sessions and panes asked for; None for all.
    sessions: frozenset[str] | None = None
    panes: frozenset[str] | None = None

    def wants(self, pane: str) -> bool:
        """Say whether a pane was asked for."""
        return self.panes is None or pane in self.panes

    def runs(self, argv: tuple[str, ...]) -> bool:
        """Say whether a program is started again."""
        return self.programs is None or basename(argv[0]) in self.programs


def plan(snapshot: Snapshot, living: Living, adapters: Mapping[str, AgentAdapter], policy: Policy) -> Plan:
    """Return what is to be done: one step for every pane of the snapshot, in the order a person would count them."""
    interrupted = living.interrupted
    begun = interrupted.making if interrupted and interrupted.snapshot == snapshot.id else frozenset()
    there = match(snapshot.topology, living.topology, begun)
    wanted = _wanted(snapshot.topology, policy)
    panes = frozenset(pane.id for pane in snapshot.topology.panes if policy.wants(pane.id))
    decide = _Decider(snapshot, living, adapters, policy, there, begun)
    steps = tuple(decide(n, target, pane) for n, (target, pane) in enumerate(targets(snapshot.topology), 1))
    windows = {pane.window for pane in snapshot.topology.panes if pane.id in panes}
    making = (wanted - there.sessions.keys()) | (windows - there.windows.keys()) | (panes - there.panes.keys())
    return Plan(
        snapshot=snapshot.id,
        server=snapshot.server,
        steps=steps,
        sessions=there.sessions,
        windows=there.windows,
        panes=there.panes,
        unfinished=decide.unfinished & (wanted | windows | panes),
        making=frozenset(making),
        links=tuple(_links(snapshot.topology, living.topology, there, wanted, windows)),
        moves=tuple(_moves(snapshot.topology, living.topology, there, decide.unfinished)),
    )


def targets(topology: Topology) -> Iterator[tuple[str, Pane]]:
    """Yield every pane once with its `session:window.pane`, by the first session that shows it."""
    names = {session.id: session.name for session in topology.sessions}
    panes: dict[str, list[Pane]] = {}
    for pane in sorted(topology.panes, key=lambda pane: pane.index):
        panes.setdefault(pane.window, []).append(pane)
    for link in topology.links:
        for pane in panes.pop(link.window, ()):
            yield f"{names[link.session]}:{link.index}.{pane.index}", pane


def _wanted(topology: Topology, policy: Policy) -> frozenset[str]:
    """The sessions that were asked for: those named, and those that show a pane that was."""
    windows = {pane.window for pane in topology.panes if policy.wants(pane.id)}
    showing = {link.session for link in topology.links if link.window in windows}
    return frozenset(showing if policy.sessions is None else showing & policy.sessions)


def _links(
    saved: Topology, living: Topology | None, there: There, sessions: frozenset[str], windows: set[str]
) -> Iterator[Link]:
    """Yield where windows have to be put: all of those of a new session, and those a living one lacks."""
    used = used_indexes(living.links if living else ())
    for link in saved.links:
        if link.session not in sessions or link.window not in windows:
            continue
        session = there.sessions.get(link.session)
        if session is None:
            yield link
        elif link.window not in there.windows:
            index = free_index(link.index, taken := used.setdefault(session, set()))
            taken.add(index)
            yield Link(session=link.session, window=link.window, index=index, active=link.active, last=link.last)


def _moves(saved: Topology, living: Topology | None, there: There, unfinished: frozenset[str]) -> Iterator[Link]:
    now = {(link.session, link.window): link.index for link in (living.links if living else ())}
    for link in saved.links:
        if link.session in unfinished and link.window in unfinished:
            index = now.get((there.sessions[link.session], there.windows[link.window]), link.index)
            if index != link.index:
                yield link


class _Decider:
    """Decides what becomes of each pane; a conversation is given to one pane only."""

    def __init__(
        self,
        snapshot: Snapshot,
        living: Living,
        adapters: Mapping[str, AgentAdapter],
        policy: Policy,
        there: There,
        begun: frozenset[str],
    ) -> None:
        self._snapshot = snapshot
        self._living = living
        self._adapters = adapters
        self._policy = policy
        self._there = there
        self._given: dict[Conversation, str] = {}
        #: What an interrupted restore made.
        self.unfinished = begun & (there.sessions.keys() | there.windows.keys() | there.panes.keys())

    def __call__(self, n: int, target: str, pane: Pane) -> Step:
        step = self._step(pane)
        if step.agent is None and pane.identity is not None:
            step = _with(step, agent=pane.identity.agent, conversation=pane.identity.conversation)
        return _with(step, n=n, target=target)

    def _step(self, pane: Pane) -> Step:
        if not self._policy.wants(pane.id):
            return _step(pane, Action.LEAVE, why="not asked for")
        if pane.id in self._there.panes and pane.id not in self.unfinished:
            return self._kept(pane)
        if pane.dead:
            return self._somewhere(_step(pane, Action.DEAD), pane.start_path)
        if pane.identity is not None:
            return self._agent(pane, pane.identity)
        if pane.program is not None and pane.program.argv:
            return self._program(pane, pane.program)
        return self._somewhere(_step(pane, Action.SHELL, argv=self._shell(pane)), pane.cwd or pane.start_path)

    def _kept(self, pane: Pane) -> Step:
        key = _key(pane.identity)
        why = "it is there already"
        if key is not None and key not in self._living.held:
            why = f"a pane is there already and was left alone; {key[2]} is not running in it"
        return _step(pane, Action.KEEP, why=why)

    def _shell(self, pane: Pane) -> tuple[str, ...]:
        """The shell a person chose for this pane; () for the login shell tmux starts by itself."""
        details = self._snapshot.details.panes.get(pane.id)
        argv = details.processes[0].argv if details and details.processes else ()
        return argv if argv and not argv[0].startswith("-") and is_waiting_shell(argv) else ()

    def _program(self, pane: Pane, program: Command) -> Step:
        runs = self._policy.runs(program.argv)
        why = "" if runs else f"{basename(program.argv[0])} is not among the programs that are started again"
        step = _step(pane, Action.RUN if runs else Action.SHOW, argv=program.argv, environ=program.environ, why=why)
        return self._somewhere(step, program.cwd or pane.cwd)

    def _agent(self, pane: Pane, identity: Identity) -> Step:
        launched = pane.program or Command(argv=(), cwd=pane.cwd)
        adapter = self._adapters.get(identity.agent)
        command, problem = _command(adapter, identity, launched)
        cwd = (identity.home if identity.conversation else None) or (command or launched).cwd or pane.cwd
        step = _step(
            pane,
            Action.START if identity.prompted is False else Action.RESUME,
            agent=identity.agent,
            conversation=identity.conversation,
            argv=(command or launched).argv,
            environ=(command or launched).environ,
            active_at=self._active_at(pane),
        )
        problem = problem or self._living.lost.get(pane.id, "") or self._twice(pane, identity)
        if not problem and adapter is not None and adapter.same_directory and not self._is_there(cwd):
            problem = f"{cwd} is gone, and {identity.agent} finds a conversation only where it was begun"
        if problem:
            return self._somewhere(_with(step, action=Action.SHOW, why=problem), cwd)
        return self._somewhere(self._asking(step, identity), cwd)

    def _asking(self, step: Step, identity: Identity) -> Step:
        """Let a person decide where nobody can be sure, and everywhere when that is wanted."""
        is_guess = step.action is Action.RESUME and not identity.certain and self._snapshot.origin == CAPTURED
        if is_guess:
            why = f"that it was in {identity.conversation} is not certain; Enter in the pane resumes it"
            return _with(step, asks=True, why=why)
        if self._policy.lazy:
            return _with(step, asks=True, why="Enter in the pane starts it")
        return step

    def _twice(self, pane: Pane, identity: Identity) -> str:
        """Why a conversation must not be resumed here because it is in use, "" when it is not."""
        key = _key(identity)
        if key is None:
            return ""
        in_use = self._living.held.get(key)
        # An interrupted restore may have started it in the very pane it is for.
        if in_use is not None and (in_use.pane is None or in_use.pane != self._there.panes.get(pane.id)):
            return f"{key[2]} is in use already, in {in_use.place}"
        holder = self._given.setdefault(key, pane.id)
        return "" if holder == pane.id else f"{key[2]} goes to pane {holder}"

    def _active_at(self, pane: Pane) -> datetime | None:
        details = self._snapshot.details.panes.get(pane.id)
        return details.agent.last_activity_at if details and details.agent else None

    def _is_there(self, cwd: str) -> bool:
        return not cwd or self._living.directories.get(cwd, cwd) == cwd

    def _somewhere(self, step: Step, cwd: str) -> Step:
        """Return the step in a directory that is there, and say so when that is another one."""
        if self._is_there(cwd):
            return _with(step, cwd=cwd)
        place = self._living.directories[cwd]
        said = f"{cwd} is gone, so it is in {place}"
        return _with(step, cwd=place, why=f"{step.why}; {said}" if step.why else said)


def _command(adapter: AgentAdapter | None, identity: Identity, launched: Command) -> tuple[Command | None, str]:
    """Return what starts the agent again, or why nothing can."""
    if adapter is None:
        return None, f"no agent called {identity.agent} is known"
    if identity.conversation is None and identity.prompted is not False:
        return None, f"which conversation {identity.agent} was in is not known"
    command = adapter.resume(identity, launched)
    if command is None or not command.argv:
        return None, f"{identity.agent} cannot be started in {identity.conversation or 'the same way'} again"
    return command, ""


def _key(identity: Identity | None) -> Conversation | None:
    if identity is None or identity.conversation is None or identity.prompted is False:
        return None
    return (identity.agent, identity.profile, identity.conversation)


def _step(pane: Pane, action: Action, **more: object) -> Step:
    return Step(n=0, pane=pane.id, target="", action=action, **more)  # type: ignore[arg-type]


def _with(step: Step, **changes: object) -> Step:
    changed: Step = structs.replace(step, **changes)
    return changed


def starts_an_agent(step: Step) -> bool:
    """Say whether a step starts an agent by itself, without anybody pressing Enter."""
    return step.action in AGENT_ACTIONS and not step.asks
