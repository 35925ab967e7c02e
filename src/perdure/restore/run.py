"""The verb: bring a snapshot back, and tell what came of every pane of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, closing, suppress
from datetime import timedelta

import msgspec

from perdure.agents import roster
from perdure.errors import PerdureError, ScrollbackNotFound, SnapshotDamaged, Unanswered
from perdure.host.directories import make_for
from perdure.host.lock import held
from perdure.host.processes import is_alive, read_processes
from perdure.host.scope import outside_service
from perdure.host.scratch import Scratch, remove_stale
from perdure.host.terminals import Terminal
from perdure.host.vault import vault_dir
from perdure.host.waiting import wait_until
from perdure.model.plan import AGENT_ACTIONS, Action, Kept, Outcome, Restore, Result, Scope, Step
from perdure.model.process import Process
from perdure.model.server import Server, ServerProcess
from perdure.model.topology import Topology
from perdure.restore.build import Builder, Built, Pieces
from perdure.restore.living import agent_process, agents_of, conversation_of, held_now
from perdure.restore.pieces import start_of, text_of, words_of
from perdure.restore.plan import Conversation, Holder, starts_an_agent
from perdure.restore.prepare import Ground, Prepared
from perdure.restore.stage import RealStage, World
from perdure.restore.starting import Candidate, Starter
from perdure.snapshots.kept import mark_of
from perdure.snapshots.look import Looked, look
from perdure.tmux.control import Control
from perdure.tmux.names import TEMPORARY

#: How long panes may take to print what they were handed, in seconds.
_PATIENCE = 10.0
#: How often it is looked whether they have.
_INTERVAL = 0.01
#: How an agent ends that somebody did not want to start (tmux/wrap.py), or stopped with Ctrl-C.
_UNWANTED = 130
#: What is done about a pane that has, or had, an agent, and that is made.
_WITH_AGENT = AGENT_ACTIONS | {Action.SHOW}


def restore(
    server: Server,
    prepared: Callable[[], Prepared],
    ground: Ground,
    *,
    most: int,
    report: Callable[[Outcome], None],
) -> tuple[Prepared, list[Outcome]]:
    """Carry out a plan for a server, made once nobody else is at work on it, and return what came of each step."""
    # One for all servers of a user: a conversation may be in snapshots of two.
    path = os.path.join(ground.lock_dir, f"restore-{server.uid}.lock")
    with held(path, f"restore for {server.user}"):
        ready = prepared()
        try:
            return ready, _Run(ready, ground, most=most, report=report).run()
        except Unanswered:
            # A server that another restore had only just started, and that was interrupted, ends about now: with the
            # session that one spoke through. Whatever has been made by now is gone on with.
            ready = prepared()
            return ready, _Run(ready, ground, most=most, report=report).run()


class _Run:
    """One restore of one server."""

    def __init__(self, prepared: Prepared, ground: Ground, *, most: int, report: Callable[[Outcome], None]) -> None:
        self._prepared = prepared
        self._plan = prepared.plan
        self._snapshot = prepared.snapshot
        self._ground = ground
        self._most = most
        self._report = report
        self._panes = {pane.id: pane for pane in prepared.snapshot.topology.panes}
        self._outcomes: dict[str, Outcome] = {}
        #: The run of the server everything is made on, once it answers.
        self._process: ServerProcess | None = None
        #: The panes there were when everything was made, where nothing is started after that.
        self._there: Collection[str] | None = None
        #: What keeps panes from printing, and from starting their shells.
        self._hold = ExitStack()
        #: The client everything is made through, until it is gone.
        self._speaking = ExitStack()
        #: Panes that are started with words that name their step.
        self._worded: frozenset[str] = frozenset()
        begun = prepared.living.interrupted
        self._id = begun.id if begun is not None else os.urandom(8).hex()
        self._began_at = begun.began_at if begun is not None else ground.now()
        self._scratch = Scratch(ground.state_dir_of(prepared.user), self._id, prepared.user)
        #: What an interrupted restore was going to make, and nobody asks for this time: it stays open for that.
        others = begun.making - self._plan.making - self._plan.unfinished if begun is not None else frozenset()
        self._others = others if others & self._panes.keys() else frozenset()

    def run(self) -> list[Outcome]:
        """Make, start, verify; return an outcome for each step, in their order."""
        if self._plan.is_done:
            self._settle_rest({})
            return self._in_order()
        begun = self._prepared.living.interrupted
        if begun is None:
            self._remove_abandoned()
        # Until the end, for as long as nobody waits for it: starting shells take the machine for themselves.
        with self._hold, self._speaking:
            built = self._build()
            self._settle_rest(built.panes, built)
            stage = self._stage()
            self._keep(stage)
            self._start_agents(built, stage)
            self._keep(stage)
            self._confirm(built)
            if self._others:
                self._ground.store.note_outcomes(self._id, self._outcomes)
            else:
                # First: whoever is interrupted in between finds everything made, and nothing left behind.
                self._clean_up()
                self._ground.store.end_restore(self._id, self._ground.now(), self._outcomes)
        return self._in_order()

    def _remove_abandoned(self) -> None:
        """Remove what an interrupted restore had laid out for panes that never were, or are gone with their server."""
        found = self._ground.store.open_restore(self._plan.server)
        topology = self._prepared.living.topology
        if found is not None and (found.process is None or topology is None or found.process != topology.process):
            Scratch(self._ground.state_dir_of(self._prepared.user), found.id, self._prepared.user).remove()

    def _clean_up(self) -> None:
        """Remove what the panes were handed, once they have taken it; what is left behind goes some other day."""
        if self._scratch.unprinted():
            self._hold.close()
        printed = wait_until(lambda: not self._scratch.unprinted(), _PATIENCE, every=_INTERVAL)
        if printed:
            self._scratch.remove()
        state_dir = self._ground.state_dir_of(self._prepared.user)
        remove_stale(
            state_dir, self._prepared.user, keep={self._id}, older_than=timedelta(days=30), now=self._ground.now()
        )

    def _in_order(self) -> list[Outcome]:
        return [self._outcomes[step.pane] for step in self._plan.steps]

    def _note_beginning(self, process: ServerProcess | None) -> None:
        making = self._plan.making | self._plan.unfinished | self._others
        begun = self._prepared.living.interrupted
        self._ground.store.begin_restore(
            Restore(
                id=self._id,
                snapshot=self._snapshot.id,
                composed=self._prepared.composed,
                scope=_together(begun.scope if begun else None, self._prepared.scope),
                server=self._plan.server,
                began_at=self._began_at,
                process=process,
                making=making,
                links=(*(begun.links if begun else ()), *self._plan.links),
                worded=self._worded | (begun.worded if begun else frozenset()),
                # Panes of it may bear marks that lead there.
                outcomes=begun.outcomes if begun else {},
            )
        )

    # Making

    def _new_steps(self) -> list[Step]:
        return [step for step in self._plan.steps if step.pane in self._plan.making]

    def _prepare_files(self) -> None:
        now = self._ground.now().astimezone()
        texts = {}
        for step in self._new_steps():
            text = text_of(
                step,
                self._scrollback(step.pane),
                saved_at=self._snapshot.last_seen_at.astimezone(),
                now=now,
                width=self._panes[step.pane].width,
            )
            if text is not None:
                texts[step.n] = text
        self._worded = frozenset(
            step.pane for step in self._new_steps() if step.n in texts and step.action is not Action.DEAD
        )
        gates = {step.n for step in self._new_steps() if starts_an_agent(step)}
        # What an interrupted restore has left for a pane that has not begun to print is still to be printed.
        self._texts = frozenset(texts) | self._scratch.unprinted()
        private = {step.n: step.private for step in self._new_steps() if step.private}
        # Of a pane that was made before and is gone, what it left behind says nothing about the new one.
        self._scratch.forget(*(step.n for step in self._new_steps()))
        if texts or gates or private:
            self._scratch.prepare(texts, gates, private)

    def _scrollback(self, pane: str) -> bytes | None:
        details = self._snapshot.details.panes.get(pane)
        if details is None or details.scrollback is None:
            return None
        with suppress(ScrollbackNotFound, SnapshotDamaged):
            return self._ground.store.read_scrollback(details.scrollback)
        return None

    def _build(self) -> Built:
        topology, begun = self._prepared.living.topology, self._prepared.living.interrupted
        # A server takes its time to start, and makes nothing before it is told to.
        starting = self._speaking.enter_context(closing(self._control(topology)))
        self._note_beginning(begun.process if begun else None)
        self._prepare_files()
        pieces = Pieces(
            words={step.pane: self._words(step) for step in self._plan.steps},
            directories={step.pane: step.cwd for step in self._plan.steps},
        )
        return self._build_with(starting, Builder(self._snapshot, self._plan, pieces, topology))

    def _build_with(self, starting: Control, builder: Builder) -> Built:
        topology = self._prepared.living.topology
        are_held = self._hold.enter_context(self._scratch.held_back())
        control = self._speaking.enter_context(starting)
        self._process = control.server
        if topology is not None and self._process != topology.process:
            # Another server answers than the one the plan was made for: its ids mean something else there.
            raise Unanswered(f"The server on {self._plan.server.socket} was replaced by another meanwhile.")
        self._note_beginning(self._process)
        built = builder.build(control)
        there = _panes(control)
        # It takes a few milliseconds to go, in which there is enough to do.
        control.leave()
        if are_held:
            self._print({pane: there[now] for pane, now in built.panes.items() if now in there})
        if not any(map(starts_an_agent, self._plan.steps)):
            # Nobody is started any more: what is there now is all there is to see.
            self._there = there.keys()
        return built

    def _print(self, terminals: Mapping[str, Terminal]) -> None:
        """Print for the panes that wait to print."""
        waiting = [step for step in self._new_steps() if step.pane in self._worded and step.pane in terminals]
        self._scratch.print_into({step.n: terminals[step.pane] for step in waiting})

    def _control(self, topology: Topology | None) -> Control:
        user = self._prepared.user
        if topology is None:
            # After a boot /tmp is empty, and a server does not make the directory it is to listen in.
            make_for(user, os.path.dirname(self._plan.server.socket))
        return Control(
            self._plan.server.socket,
            user,
            # A name of its own: that of an interrupted run may not be gone yet.
            f"{TEMPORARY}{self._id}-{os.urandom(3).hex()}",
            environ=self._ground.environ_of(user),
            timeout=self._ground.around.config.tmux.timeout_seconds,
            prefix=outside_service(user) if topology is None else (),
        )

    def _words(self, step: Step) -> tuple[str, ...]:
        if step.action in (Action.KEEP, Action.LEAVE):
            return ()
        has_text, before = step.n in self._texts, self._before(step)
        return words_of(start_of(step, self._panes[step.pane], self._scratch.path, has_text=has_text, before=before))

    def _before(self, step: Step) -> Process | None:
        """Return the process that is in a step's conversation at this moment, in no pane; None when there is none."""
        key = conversation_of(self._panes[step.pane].identity)
        holder = self._prepared.living.held.get(key) if key is not None else None
        known = (agent_process(self._snapshot, step.pane), holder.process if holder is not None else None)
        return next((each for each in known if each is not None and is_alive(each.pid, each.start_ticks)), None)

    # Telling

    def _tell(self, outcome: Outcome) -> None:
        self._outcomes[outcome.step.pane] = outcome
        self._report(outcome)

    def _settle_rest(self, panes: Mapping[str, str], built: Built | None = None) -> None:
        """Tell what came of every step that does not start an agent."""
        for step in self._plan.steps:
            if step.action in (Action.KEEP, Action.LEAVE):
                self._tell(
                    Outcome(step=step, result=Result.SKIPPED, why=step.why, pane=self._plan.panes.get(step.pane))
                )
            elif step.pane not in panes:
                self._tell(Outcome(step=step, result=Result.FAILED, why=self._problem(step, built)))
            elif step.asks:
                self._tell(Outcome(step=step, result=Result.UNVERIFIED, why=step.why, pane=panes[step.pane]))
            elif step.action is Action.SHOW:
                self._tell(Outcome(step=step, result=Result.SKIPPED, why=step.why, pane=panes[step.pane]))
            elif not starts_an_agent(step):
                why = "; ".join(filter(None, (step.why, self._refused(step, built))))
                self._tell(Outcome(step=step, result=Result.DONE, why=why, pane=panes[step.pane]))

    def _problem(self, step: Step, built: Built | None) -> str:
        return self._refused(step, built) or "tmux did not make the pane"

    def _refused(self, step: Step, built: Built | None) -> str:
        """What tmux refused of this pane, of its window, or of a session that shows it."""
        if built is None or not built.problems:
            return ""
        window = self._panes[step.pane].window
        sessions = [link.session for link in self._snapshot.topology.links if link.window == window]
        return next((built.problems[id] for id in (step.pane, window, *sessions) if id in built.problems), "")

    # Starting

    def _start_agents(self, built: Built, stage: RealStage) -> None:
        candidates, running = [], []
        if any(step.agent is not None for step in self._plan.steps):
            # That takes a while.
            self._hold.close()
        waiting = self._scratch.waiting()
        for step in self._plan.steps:
            pane = built.panes.get(step.pane)
            if pane is None or step.agent is None or step.action in (Action.KEEP, Action.LEAVE):
                continue
            each = self._candidate(step, pane)
            if step.action is Action.SHOW:
                # An interrupted restore was going to start it, and it must not be started any more.
                if step.pane in self._plan.unfinished and step.n in waiting:
                    stage.cancel(each, step.why)
            # All of them before the first is started: an agent may delete another's transcript as well as its own.
            elif not self._is_safe(stage, each):
                continue
            elif step.n in waiting:
                candidates.append(each)
            elif not step.asks:
                running.append(each)
        limit = self._ground.around.config.restore.verify_seconds

        def settle(outcome: Outcome) -> None:
            self._settle_agent(outcome, stage.notes.get(outcome.step.pane, ""))
            self._keep(stage)

        Starter(stage, most=self._most, limit=limit, report=settle).start(candidates, running)

    def _is_safe(self, stage: RealStage, each: Candidate) -> bool:
        """Make an agent safe to start; one that must not start gets a shell that says why."""
        refusal = stage.safeguard(each)
        if refusal:
            refusal = "; ".join(filter(None, (stage.notes.get(each.step.pane), refusal)))
            stage.cancel(each, refusal)
            self._tell(Outcome(step=each.step, result=Result.FAILED, why=refusal, pane=each.pane))
        return not refusal

    def _settle_agent(self, outcome: Outcome, note: str) -> None:
        why = "; ".join(filter(None, (outcome.why, note, outcome.step.why)))
        settled: Outcome = msgspec.structs.replace(outcome, why=why)
        self._tell(settled)
        self._ground.store.note_outcomes(self._id, {outcome.step.pane: settled})

    def _keep(self, stage: RealStage) -> None:
        """Let no save forget a conversation that was not resumed: its pane is a shell now, and nothing else tells."""
        new = {}
        ended = self._scratch.statuses()
        for pane, outcome in self._outcomes.items():
            kept = None if outcome.kept is not None else self._kept(outcome, stage.shown)
            if kept is not None and ended.get(outcome.step.n) != _UNWANTED:
                new[pane] = msgspec.structs.replace(outcome, kept=kept)
        if new:
            self._outcomes |= new
            self._ground.store.note_outcomes(self._id, new)
            stage.mark({each.pane: mark_of(self._id, pane) for pane, each in new.items() if each.pane is not None})

    def _kept(self, outcome: Outcome, shown: Collection[str]) -> Kept | None:
        """What is to be kept of a pane of ours, None when nothing is: it has its agent, or another pane gets that."""
        step, pane = outcome.step, self._panes[outcome.step.pane]
        key = conversation_of(pane.identity)
        if pane.identity is None or key is None or outcome.pane is None or step.action not in _WITH_AGENT:
            return None
        if step.action is Action.SHOW:
            if key in self._prepared.conversations:
                return None
        elif outcome.result is not Result.FAILED and step.pane not in shown:
            return None
        details = self._snapshot.details.panes.get(step.pane)
        return Kept(identity=pane.identity, program=pane.program, agent=details.agent if details else None)

    def _candidate(self, step: Step, pane: str) -> Candidate:
        details = self._snapshot.details.panes.get(step.pane)
        task = details.agent.task if details and details.agent else None
        return Candidate(step=step, pane=pane, before=self._before(step), task=task)

    def _held(self) -> Mapping[Conversation, tuple[Holder, ...]]:
        """Return who is in which conversation now: a person may have opened one since the plan was made."""
        ground, user = self._ground, self._prepared.user
        known = roster(ground.around.config.agents)
        looked = look(ground.ask(user, [self._plan.server.socket]), ground.around, ground.now())
        captures = [each.capture for each in looked if isinstance(each, Looked)]
        table = read_processes(known.environment)
        view, me = ground.around.view_of(user), ground.around.me
        return held_now(self._snapshot, captures, table, known, view, user, me)

    def _stage(self) -> RealStage:
        config = self._ground.around.config
        world = World(
            server=self._plan.server,
            process=self._process,
            user=self._prepared.user,
            around=self._ground.around,
            scratch=self._scratch,
            adapters=roster(config.agents).called(agents_of(self._snapshot)),
            snapshot=self._snapshot,
            vault=vault_dir(self._ground.state_dir_of(self._prepared.user)),
            now=self._ground.now,
            say=self._ground.say,
            held=self._held,
        )
        return RealStage(world)

    def _confirm(self, built: Built) -> None:
        """See that what was made is still there: a program may have ended at once, and its pane with it."""
        there = self._there
        try:
            there = self._stage().panes() if there is None else there
        except PerdureError:
            return
        for pane, outcome in list(self._outcomes.items()):
            if outcome.result is Result.DONE and built.panes.get(pane) not in there:
                gone: Outcome = msgspec.structs.replace(
                    outcome, result=Result.FAILED, why="the pane was made, and is gone again", pane=None
                )
                self._tell(gone)


def _together(begun: Scope | None, now: Scope) -> Scope:
    """What an interrupted restore was asked for, and who goes on with it."""
    if begun is None:
        return now
    both: Scope = msgspec.structs.replace(
        now, panes=_either(begun.panes, now.panes), sessions=_either(begun.sessions, now.sessions)
    )
    return both


def _either(one: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    return None if one is None or other is None else one | other


def _panes(control: Control) -> dict[str, Terminal]:
    """Return all panes there are, by their ids, each with its terminal."""
    reply = control.ask([("list-panes", "-a", "-F", "#{pane_id} #{pane_pid} #{pane_tty}")])[0]
    words = (line.split(" ", 2) for line in reply.lines)
    return {id: Terminal(path=path, pid=int(pid)) for id, pid, path in words}
