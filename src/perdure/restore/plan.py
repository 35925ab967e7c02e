"""What a restore does, decided before anything is done. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from os.path import basename

from msgspec import Struct, structs

from perdure.agents.generic import is_waiting_shell
from perdure.model.identity import Identity
from perdure.model.plan import AGENT_ACTIONS, Action, Plan, Restore, Scope, Step
from perdure.model.process import Command, Process
from perdure.model.secrets import is_secret_name, is_secret_value
from perdure.model.snapshot import CAPTURED, Snapshot
from perdure.model.topology import Link, Pane, Topology
from perdure.ports import AgentAdapter
from perdure.restore.match import (
    Begun,
    There,
    by_window,
    chosen_indexes,
    free_index,
    is_same_process,
    match,
    placeholders,
    step_in,
)

#: Agent, profile and id: a copied profile has conversations of the same ids that are others.
Conversation = tuple[str, str | None, str]


#: Said of a pane that is there, in which the conversation is not that was saved in its place.
LEFT_ALONE = "left alone"


class Holder(Struct, frozen=True, kw_only=True):
    """Who is in a conversation now."""

    #: A phrase such as "pane %3 on /tmp/tmux-1000/default".
    place: str
    #: The pane, when it is one of the server that is restored.
    pane: str | None = None
    #: The process, when it runs in no pane: it may be one that outlives its server by some seconds.
    process: Process | None = None


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
    #: Panes of this server in which an agent waits for Enter.
    asking: frozenset[str] = frozenset()
    #: Where what has no directory of its own starts.
    home: str = ""
    #: A restore of this snapshot that did not come to its end.
    interrupted: Restore | None = None
    #: What earlier restores of this snapshot made on this very server: panes there, and the pane of the snapshot each is.
    made: Mapping[str, str] = {}


class Policy(Scope, frozen=True, kw_only=True):
    """What is wanted back, and how."""

    #: Names of programs that are started again; None for every program.
    programs: frozenset[str] | None = frozenset()
    #: Every agent waits for Enter.
    lazy: bool = False
    #: Variables that are given back though they may be secrets, and that nobody else may read.
    private: frozenset[str] = frozenset()

    @property
    def scope(self) -> Scope:
        """What is wanted back, apart from how."""
        return Scope(sessions=self.sessions, panes=self.panes, commands=self.commands, as_saved=self.as_saved)

    def runs(self, argv: tuple[str, ...]) -> bool:
        """Say whether a program is started again."""
        return self.programs is None or basename(argv[0]) in self.programs


def plan(snapshot: Snapshot, living: Living, adapters: Mapping[str, AgentAdapter], policy: Policy) -> Plan:
    """Return what is to be done: one step for every pane of the snapshot, in the order a person would count them."""
    saved = snapshot.topology
    begun = _begun(snapshot, living)
    there = match(saved, living.topology, begun)
    unfinished = _unfinished(begun, there, living.topology)
    sessions, panes = _wanted(saved, policy)
    windows = {pane.window for pane in saved.panes if pane.id in panes}
    decide = _Decider(snapshot, living, adapters, policy, panes, there, unfinished)
    steps = tuple(decide(n, target, pane) for n, (target, pane) in enumerate(targets(saved), 1))
    making = _missing(saved, sessions, panes, there)
    placing = _Placing(saved, living.topology, there, begun, unfinished)
    showing = (sessions & (making | there.sessions.keys())) | _sharing(saved, sessions, there)
    shown = windows & (making | there.windows.keys())
    return Plan(
        snapshot=snapshot.id,
        server=snapshot.server,
        steps=steps,
        sessions=there.sessions,
        windows=there.windows,
        panes=there.panes,
        unfinished=unfinished & (sessions | windows | panes),
        making=making,
        links=tuple(link for link in placing.links() if link.session in showing and link.window in shown),
        moves=tuple(placing.moves),
        placeholders=placing.placeholders,
    )


def targets(topology: Topology) -> Iterator[tuple[str, Pane]]:
    """Yield every pane once with its `session:window.pane`, by the first session that shows it."""
    names = {session.id: session.name for session in topology.sessions}
    panes = by_window(topology.panes)
    for link in topology.links:
        for pane in panes.pop(link.window, ()):
            yield f"{names[link.session]}:{link.index}.{pane.index}", pane


def _wanted(topology: Topology, policy: Policy) -> tuple[frozenset[str], frozenset[str]]:
    """The sessions and panes that were asked for: a session too when it shows a pane that was."""
    windows = {pane.window for pane in topology.panes if policy.wants(pane.id)}
    links = [link for link in topology.links if policy.sessions is None or link.session in policy.sessions]
    sessions = frozenset(link.session for link in links if link.window in windows)
    shown = {link.window for link in links}
    return sessions, frozenset(pane.id for pane in topology.panes if policy.wants(pane.id) and pane.window in shown)


def _missing(topology: Topology, sessions: frozenset[str], panes: frozenset[str], there: There) -> frozenset[str]:
    """What of that is not there. A window, or a session, whose panes all live elsewhere is not missing: somebody put
    them there.
    """
    lost = panes - there.panes.keys()
    windows = {pane.window for pane in topology.panes if pane.id in lost} - there.windows.keys()
    wanted = {pane.window for pane in topology.panes if pane.id in panes}
    shown = windows | (wanted & there.windows.keys() & _shared(topology))
    showing = {link.session for link in topology.links if link.window in shown}
    return lost | windows | ((sessions & showing) - there.sessions.keys())


def _shared(topology: Topology) -> frozenset[str]:
    """The windows that more than one session shows."""
    places = {(link.session, link.window) for link in topology.links}
    times = Counter(window for _, window in places)
    return frozenset(window for window, number in times.items() if number > 1)


def _sharing(topology: Topology, sessions: frozenset[str], there: There) -> frozenset[str]:
    """The sessions that live and share their windows with some of these: a window these lack is made there."""
    groups = {session.group for session in topology.sessions if session.id in sessions} - {""}
    return frozenset(each.id for each in topology.sessions if each.group in groups and each.id in there.sessions)


def _begun(snapshot: Snapshot, living: Living) -> Begun:
    """What an interrupted restore of this very snapshot, on the server that lives, was about to make.

    And what others made that came to their end: on a server that lived on, nothing else tells that a pane with a new
    id stands for one of the snapshot.
    """
    restore = living.interrupted
    if restore is None or living.topology is None or restore.snapshot != snapshot.id:
        return Begun(marked=living.made)
    if restore.process is not None and restore.process != living.topology.process:
        return Begun(marked=living.made)
    steps = {n: pane.id for n, (_, pane) in enumerate(targets(snapshot.topology), 1)}
    numbers = {pane.id: step_in(pane.start_command, restore.id) for pane in living.topology.panes}
    marked = {now: steps[n] for now, n in numbers.items() if n in steps and steps[n] in restore.making}
    return Begun(making=restore.making, links=restore.links, worded=restore.worded, marked={**living.made, **marked})


def _unfinished(begun: Begun, there: There, living: Topology | None) -> frozenset[str]:
    """What an interrupted restore made. A session without a window of it is somebody else's, of the same name."""
    if living is None:
        return frozenset()
    windows = {there.windows[id] for id in begun.making if id in there.windows} | placeholders(living)
    sessions = {link.session for link in living.links if link.window in windows}
    made = {id for id, now in there.sessions.items() if now in sessions}
    return begun.making & (made | there.windows.keys() | there.panes.keys())


class _Placing:
    """Where windows have to be put: all of those of a new session, and those a session that is there lacks."""

    def __init__(
        self, saved: Topology, living: Topology | None, there: There, begun: Begun, unfinished: frozenset[str]
    ) -> None:
        self._saved = saved
        self._there = there
        self._unfinished = unfinished
        self._is_new_server = living is None or not is_same_process(saved, living)
        ours = {there.sessions[id] for id in unfinished if id in there.sessions}
        waiting = placeholders(living) - set(there.windows.values()) if living else frozenset()
        held = [link for link in living.links if link.session in ours and link.window in waiting] if living else []
        #: Placeholders of sessions that an interrupted restore made.
        self.placeholders = tuple(link.window for link in held)
        self._chosen = chosen_indexes(saved, begun)
        self._shared = _shared(saved)
        lost = {pane.window for pane in saved.panes if pane.id not in there.panes}
        #: Windows that are gone, and all of whose panes live elsewhere.
        self._left = {window.id for window in saved.windows} - lost - there.windows.keys()
        # By session as it is called now: what stands at which index.
        self._now: dict[str, dict[int, str]] = {}
        for link in living.links if living else ():
            if link not in held:
                self._now.setdefault(link.session, {})[link.index] = link.window
        groups = {session.id: session.group for session in living.sessions} if living else {}
        # By session as it is called now: all that share their windows with it, itself too.
        self._together = {
            id: [other for other, each in groups.items() if other == id or (group and each == group)]
            for id, group in groups.items()
        }
        #: First windows that were not yet put to their index.
        self.moves = list(self._move())

    def _move(self) -> Iterator[Link]:
        for link in self._saved.links:
            if link.session not in self._unfinished or link.window not in self._unfinished:
                continue
            window, now = self._there.windows[link.window], self._now.get(self._there.sessions[link.session], {})
            index = self._chosen.get((link.session, link.window), link.index)
            places = [place for place, each in now.items() if each == window]
            if len(now) == 1 and places and places != [index]:
                now[index] = now.pop(places[0])
                yield structs.replace(link, index=index)

    def links(self) -> Iterator[Link]:
        """Yield every place to be made, with an index that is free there, the same in all that share their windows."""
        placed: dict[tuple[str, str, int], int] = {}
        for link in self._saved.links:
            session, window = self._there.sessions.get(link.session), self._there.windows.get(link.window)
            if link.window in self._left:
                continue
            if session is None:
                # What only this session showed, and is shown by another now, was moved there.
                if window is None or link.window in self._shared:
                    yield link
                continue
            now = self._now.setdefault(session, {})
            if window is None:
                index = self._chosen.get((link.session, link.window), link.index)
                index = placed.get((session, link.window, link.index), free_index(index, now))
                for each in self._together[session]:
                    # What is to be made has no id yet, and the snapshot's may be another's now.
                    self._now.setdefault(each, {})[index] = ""
                    placed[each, link.window, link.index] = index
            elif self._is_missing(link, window, now):
                index = link.index
                now[index] = window
            else:
                continue
            yield structs.replace(link, index=index)

    def _is_missing(self, link: Link, window: str, now: Mapping[int, str]) -> bool:
        """Whether a window that is there is not shown where it was, for a reason that is not somebody's wish."""
        if link.index in now or not (self._is_new_server or link.session in self._unfinished):
            return False
        shown = sum(1 for each in now.values() if each == window)
        return shown < sum(1 for each in self._saved.links if _place(each) == _place(link))


def _place(link: Link) -> tuple[str, str]:
    return link.session, link.window


class _Decider:
    """Decides what becomes of each pane; a conversation is given to one pane only."""

    def __init__(
        self,
        snapshot: Snapshot,
        living: Living,
        adapters: Mapping[str, AgentAdapter],
        policy: Policy,
        wanted: frozenset[str],
        there: There,
        unfinished: frozenset[str],
    ) -> None:
        self._snapshot = snapshot
        self._living = living
        self._adapters = adapters
        self._policy = policy
        self._wanted = wanted
        self._there = there
        self._unfinished = unfinished
        self._heirs = self._find_heirs()

    def __call__(self, n: int, target: str, pane: Pane) -> Step:
        step = self._step(pane)
        if step.agent is None and pane.identity is not None:
            step = _with(step, agent=pane.identity.agent, conversation=pane.identity.conversation)
        return _with(step, n=n, target=target)

    def _step(self, pane: Pane) -> Step:
        if pane.id not in self._wanted:
            return _step(pane, Action.LEAVE, why="not asked for")
        if self._is_kept(pane):
            return self._kept(pane)
        if pane.dead:
            return self._somewhere(_step(pane, Action.DEAD), pane.start_path)
        if pane.identity is not None:
            return self._agent(pane, pane.identity)
        if pane.program is not None and pane.program.argv:
            return self._program(pane, pane.program)
        return self._somewhere(_step(pane, Action.SHELL, argv=self._shell(pane)), pane.cwd or pane.start_path)

    def _is_kept(self, pane: Pane) -> bool:
        return pane.id in self._there.panes and pane.id not in self._unfinished

    def _kept(self, pane: Pane) -> Step:
        key = _key(pane.identity)
        why = "it is there already"
        if key is not None and key not in self._living.held:
            why = f"a pane is there already and was {LEFT_ALONE}; {key[2]} is not running in it"
        return _step(pane, Action.KEEP, why=why)

    def _shell(self, pane: Pane) -> tuple[str, ...]:
        """The shell a person chose for this pane; () for the login shell tmux starts by itself."""
        details = self._snapshot.details.panes.get(pane.id)
        argv = details.processes[0].argv if details and details.processes else ()
        return argv if argv and not argv[0].startswith("-") and is_waiting_shell(argv) else ()

    def _program(self, pane: Pane, program: Command) -> Step:
        runs = self._policy.runs(program.argv)
        why = "" if runs else f"{basename(program.argv[0])} is not among the programs that are started again"
        step = _step(pane, Action.RUN if runs else Action.SHOW, argv=program.argv, why=why, **self._variables(program))
        return self._somewhere(step, program.cwd or pane.cwd)

    def _agent(self, pane: Pane, identity: Identity) -> Step:
        command, problem = self._command(pane, identity)
        cwd = self._agent_cwd(pane, identity, command)
        step = _step(
            pane,
            Action.START if identity.prompted is False or identity.conversation is None else Action.RESUME,
            agent=identity.agent,
            conversation=identity.conversation,
            argv=command.argv,
            **self._variables(command),
            active_at=self._active_at(pane),
        )
        problem = problem or self._hindrance(pane, identity, cwd) or self._twice(pane, identity)
        if problem:
            return self._somewhere(_with(step, action=Action.SHOW, why=problem), cwd)
        return self._somewhere(self._asking(self._after(step, identity), pane, identity), cwd)

    def _after(self, step: Step, identity: Identity) -> Step:
        """Say for whom the step has to wait: two in one conversation would fork it."""
        holder = self._living.held.get(_key(identity) or ("", None, ""))
        if holder is None or holder.process is None:
            return step
        return _with(step, why=f"after {holder.place}, has ended")

    def _variables(self, command: Command) -> dict[str, Mapping[str, str]]:
        """Tell apart which variables everybody may see, which nobody else may, and which are not given back at all."""
        private = {name: value for name, value in command.environ.items() if name in self._policy.private}
        shown = {
            name: value
            for name, value in command.environ.items()
            if name not in private and not is_secret_name(name) and not is_secret_value(value)
        }
        return {"environ": shown, "private": private}

    def _command(self, pane: Pane, identity: Identity) -> tuple[Command, str]:
        """Return what starts the agent again; or what started it, and why that is all there is."""
        launched = pane.program or Command(argv=(), cwd=pane.cwd)
        adapter = self._adapters.get(identity.agent)
        if adapter is None:
            return launched, f"no agent called {identity.agent} is known"
        if pane.id in self._policy.commands:
            return self._policy.commands[pane.id], ""
        if identity.conversation is None and identity.prompted is not False:
            return launched, f"which conversation {identity.agent} was in is not known"
        try:
            command = adapter.resume(identity, launched)
        except Exception:  # one broken adapter costs only itself
            command = None
        if command is None or not command.argv:
            return launched, f"{identity.agent} cannot be started in {identity.conversation or 'the same way'} again"
        return command, ""

    def _agent_cwd(self, pane: Pane, identity: Identity, command: Command) -> str:
        return (identity.home if identity.conversation else None) or command.cwd or pane.cwd

    def _hindrance(self, pane: Pane, identity: Identity, cwd: str) -> str:
        """Why an agent cannot be started though it is known how, "" when it can."""
        if pane.id in self._living.lost:
            return self._living.lost[pane.id]
        if self._adapters[identity.agent].same_directory and not self._is_there(cwd):
            return f"{cwd} is gone, and {identity.agent} finds a conversation only where it was begun"
        return ""

    def _find_heirs(self) -> dict[Conversation, str]:
        """Give every conversation to one pane: the first that can have it, those that are certain before the others."""
        heirs: dict[Conversation, str] = {}
        agents = [
            (pane, pane.identity)
            for _, pane in targets(self._snapshot.topology)
            if pane.identity and pane.id in self._wanted and not pane.dead and not self._is_kept(pane)
        ]
        for pane, identity in sorted(agents, key=lambda each: not each[1].certain):
            key = _key(identity)
            command, problem = self._command(pane, identity)
            cwd = self._agent_cwd(pane, identity, command)
            if key is not None and not problem and not self._hindrance(pane, identity, cwd):
                heirs.setdefault(key, pane.id)
        return heirs

    def _asking(self, step: Step, pane: Pane, identity: Identity) -> Step:
        """Let a person decide where nobody can be sure, and everywhere when that is wanted.

        A pane that an interrupted restore has made asks, or waits for its turn, as it was told then.
        """
        is_guess = step.action is Action.RESUME and not identity.certain and self._snapshot.origin == CAPTURED
        begun = self._here(pane) if pane.id in self._unfinished else ()
        if begun and begun[0] not in self._living.asking:
            return step
        if is_guess:
            why = f"that it was in {identity.conversation} is not certain; Enter in the pane resumes it"
            return _with(step, asks=True, is_guess=True, why=why)
        if self._policy.lazy or begun:
            return _with(step, asks=True, why="Enter in the pane starts it")
        return step

    def _twice(self, pane: Pane, identity: Identity) -> str:
        """Why a conversation must not be resumed here because it is in use, "" when it is not."""
        key = _key(identity)
        if key is None:
            return ""
        in_use = self._living.held.get(key)
        # An interrupted restore may have started it in the very pane it is for.
        if in_use is not None and in_use.process is None and in_use.pane not in self._here(pane):
            return f"{key[2]} is in use already, in {in_use.place}"
        heir = self._heirs[key]
        return "" if heir == pane.id else f"{key[2]} goes to pane {heir}"

    def _here(self, pane: Pane) -> tuple[str, ...]:
        """The pane as it is now, () when it is not there."""
        return tuple(now for id, now in self._there.panes.items() if id == pane.id)

    def _active_at(self, pane: Pane) -> datetime | None:
        details = self._snapshot.details.panes.get(pane.id)
        return details.agent.last_activity_at if details and details.agent else None

    def _is_there(self, cwd: str) -> bool:
        return not cwd or self._living.directories.get(cwd, cwd) == cwd

    def _somewhere(self, step: Step, cwd: str) -> Step:
        """Return the step in a directory that is there, and say so when that is another one."""
        cwd = cwd or self._living.home
        if self._is_there(cwd):
            return _with(step, cwd=cwd)
        place = self._living.directories[cwd]
        said = f"{cwd} is gone, so it is in {place}"
        return _with(step, cwd=place, why=f"{step.why}; {said}" if step.why else said)


def _key(identity: Identity | None) -> Conversation | None:
    """What only one agent may be in. A fresh start under an id nobody can have any more is in none."""
    if identity is None or identity.conversation is None or (identity.prompted is False and identity.taken):
        return None
    return (identity.agent, identity.profile, identity.conversation)


def _step(pane: Pane, action: Action, **more: object) -> Step:
    return Step(n=0, pane=pane.id, target="", action=action, **more)  # type: ignore[arg-type]


def _with(step: Step, **changes: object) -> Step:
    changed: Step = structs.replace(step, **changes)
    return changed


def is_left_alone(step: Step) -> bool:
    """Say whether a pane is there in which a conversation is not that was saved in its place."""
    return step.action is Action.KEEP and LEFT_ALONE in step.why


def starts_an_agent(step: Step) -> bool:
    """Say whether a step starts an agent by itself, without anybody pressing Enter."""
    return step.action in AGENT_ACTIONS and not step.asks
