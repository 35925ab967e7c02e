"""The real world an agent is started in: its server, its files, its processes, the machine's memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from msgspec import Struct, structs

from perdure.errors import Unanswered
from perdure.host.clock import pause, ticking
from perdure.host.pressure import memory_pressure
from perdure.host.processes import is_alive
from perdure.host.scratch import Kind, Scratch
from perdure.host.vault import keep_copies, put_back
from perdure.model.identity import AgentDetails
from perdure.model.plan import Action
from perdure.model.process import Process
from perdure.model.screen import Screen
from perdure.model.server import Server, ServerProcess
from perdure.model.snapshot import Capture, Miss, Missed, Snapshot
from perdure.model.topology import Pane
from perdure.model.user import User
from perdure.ports import AgentAdapter
from perdure.restore.judge import Seen, is_in_title
from perdure.restore.living import conversation_of, lost_now
from perdure.restore.match import INSTEAD
from perdure.restore.pieces import start_of, text_of
from perdure.restore.plan import Conversation, Holder
from perdure.restore.replay import below_marker
from perdure.restore.starting import Candidate, Stage
from perdure.snapshots.ask import ask
from perdure.snapshots.capture import Memory, Reading, receive
from perdure.snapshots.kept import OPTION
from perdure.snapshots.look import Looked, Surroundings, look
from perdure.tmux import run
from perdure.tmux.quote import line
from perdure.tmux.screen import read_lines_and_history
from perdure.tmux.wrap import command

#: How far back the words are looked for that were last said: an answer may be long.
_HISTORY = 1000


#: For how many seconds it is believed who is in which conversation: as long as a handful of starts takes.
_STALE = 0.2


class World(Struct, frozen=True, kw_only=True):
    """Which server is worked on, for whom, and from what."""

    server: Server
    #: Which run of the server it is: panes of another have the same ids.
    process: ServerProcess | None
    user: User
    around: Surroundings
    scratch: Scratch
    adapters: Mapping[str, AgentAdapter]
    snapshot: Snapshot
    #: Where copies of transcripts are kept.
    vault: str
    now: Callable[[], datetime]
    #: Tells whoever waits why nothing happens.
    say: Callable[[str], None]
    #: Finds out who is in which conversation at this moment.
    held: Callable[[], Mapping[Conversation, tuple[Holder, ...]]]


class RealStage(Stage):
    """`Stage` over the real server."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._memory = Memory()
        self._seen: Capture | None = None
        self._held: tuple[float, Mapping[Conversation, tuple[Holder, ...]]] | None = None
        #: What was done for an agent before it was started, by pane of the snapshot.
        self.notes: dict[str, str] = {}
        #: Panes of the snapshot whose agent was given up, and that show what would have been started.
        self.shown: set[str] = set()

    def look(self, panes: Collection[str]) -> Mapping[str, Seen]:
        """Return what is to be seen of these panes; a server that does not answer now leaves it open for a while."""
        looked = self._look()
        if self._is_over(looked):
            return {}
        capture = looked.capture if isinstance(looked, Looked) else self._seen
        if capture is None:
            return {pane: Seen() for pane in panes}
        self._seen = capture
        there = {pane.id: pane for pane in capture.topology.panes}

        def seen(pane: Pane) -> Seen:
            details = capture.details.panes.get(pane.id)
            is_bare = details is not None and details.agent is not None and details.agent.task is None
            return Seen(identity=None if pane.dead else pane.identity, is_bare=is_bare)

        return {pane: seen(there[pane]) if pane in there else Seen(there=False) for pane in panes}

    def panes(self) -> frozenset[str]:
        """Return the ids of all panes there are; raises `Unanswered` when nobody tells."""
        world = self._world
        timeout = world.around.config.tmux.timeout_seconds
        question = ask(world.server.socket, world.user, options=False, timeout=timeout)
        (answer,) = receive([question], host=world.server.host, now=world.now(), timeout=timeout)
        if self._is_over(answer):
            return frozenset()
        if isinstance(answer, Missed):
            raise Unanswered(answer.message)
        return frozenset(pane.id for pane in answer.capture.topology.panes)

    def statuses(self) -> Mapping[int, int]:
        """Return how agents have ended, by step."""
        return self._world.scratch.statuses()

    def screen(self, candidate: Candidate, seen: Seen) -> Seen:
        """Return the same with what the pane shows, and what that says; what was replayed in it says nothing."""
        world = self._world
        timeout = world.around.config.tmux.timeout_seconds
        shown = read_lines_and_history(world.server.socket, candidate.pane, world.user, most=_HISTORY, timeout=timeout)
        if shown is None:
            return seen
        visible, above = shown
        lines, whole = below_marker(visible), below_marker((*above, *visible))
        adapter = world.adapters.get(candidate.step.agent or "")
        details = self._seen.details.panes.get(candidate.pane) if self._seen else None
        title = details.title if details else ""
        reading = adapter.read_screen(Screen(lines=lines, title=title)) if adapter else None
        saved = world.snapshot.details.panes.get(candidate.step.pane)
        name = saved.agent.title if saved and saved.agent else None
        return structs.replace(seen, screen=lines, whole=whole, is_titled=is_in_title(name, title), reading=reading)

    def release(self, candidate: Candidate) -> str:
        """Open the gate the agent waits at, unless its transcript has gone since the plan was made: return that."""
        world, step = self._world, candidate.step
        if step.action is Action.RESUME:
            view = world.around.view_of(world.user)
            lost = lost_now(world.snapshot, step.pane, world.adapters, view, world.user, world.around.me)
            if lost:
                return lost
        world.scratch.release(step.n)
        return ""

    def safeguard(self, candidate: Candidate) -> str:
        """Copy what the agent may delete, and put back what it has deleted; return why it must not start, or ""."""
        world, step = self._world, candidate.step
        adapter = world.adapters.get(step.agent or "")
        details = world.snapshot.details.panes.get(step.pane)
        if adapter is None or step.action is not Action.RESUME:
            return ""
        known = details.agent if details is not None and details.agent is not None else AgentDetails()
        about = (step.conversation or "", known, adapter, world.user, world.vault)
        said = put_back(*about)
        if said is not None:
            self.notes[step.pane] = said
        return keep_copies(*about)

    def cancel(self, candidate: Candidate, why: str, *, until: Process | None = None) -> None:
        """Leave a shell that says why, in place of what waits in the pane.

        With `until` the agent itself waits there, for that process to end and for Enter: no snapshot forgets it.
        """
        world = self._world
        pane = next(each for each in world.snapshot.topology.panes if each.id == candidate.step.pane)
        waits = until is not None
        step = structs.replace(
            candidate.step, action=candidate.step.action if waits else Action.SHOW, asks=waits, why=why
        )
        text = text_of(step, None, saved_at=world.snapshot.last_seen_at, now=world.now(), width=pane.width)
        # What waits in the pane has printed its own text: this number is nobody else's.
        number = step.n + INSTEAD
        world.scratch.prepare({number: text or b""}, ())
        start = start_of(step, pane, world.scratch.path, has_text=False, before=until)
        words = command(structs.replace(start, text=world.scratch.path(number, Kind.TEXT)))
        self._tell(line(("respawn-pane", "-k", "-t", candidate.pane, *words)))
        world.scratch.release(step.n)
        if not waits:
            self.shown.add(step.pane)

    def mark(self, marks: Mapping[str, str]) -> None:
        """Leave a mark on panes, by what they are called now, for the saves to come."""
        self._tell(b"".join(line(("set-option", "-p", "-t", pane, OPTION, mark)) for pane, mark in marks.items()))

    def _tell(self, commands: bytes) -> None:
        """Have tmux do this about panes of ours."""
        world = self._world
        # Only on the server they were made on: on another, these are somebody's panes.
        same = f"#{{==:#{{pid}},{world.process.pid}}}" if world.process is not None else "1"
        script = b'%%if "%s"\n%s%%endif\n' % (same.encode(), commands)
        run.gather([run.start(world.server.socket, ["source-file", "-"], owner=world.user, script=script)])

    def is_alive(self, process: Process) -> bool:
        """Say whether this very process still runs."""
        return is_alive(process.pid, process.start_ticks)

    def holder(self, candidate: Candidate) -> str:
        """Return who else is in the conversation at this moment, "" for nobody."""
        pane = next(each for each in self._world.snapshot.topology.panes if each.id == candidate.step.pane)
        key = conversation_of(pane.identity)
        if key is None:
            return ""
        now = ticking()
        if self._held is None or now - self._held[0] > _STALE:
            self._held = now, self._world.held()
        # The pane that waits for it holds it too.
        others = (each.place for each in self._held[1].get(key, ()) if each.pane != candidate.pane)
        return next(others, "")

    def pressure(self) -> bool:
        """Say whether memory is so short that nothing may be started."""
        now = memory_pressure()
        return now is not None and now > self._world.around.config.restore.memory_pressure

    def say(self, sentence: str) -> None:
        """Tell whoever waits why nothing happens."""
        self._world.say(sentence)

    def clock(self) -> float:
        """Return seconds that only ever grow."""
        return ticking()

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        pause(seconds)

    def _is_over(self, looked: Looked | Reading | Missed) -> bool:
        """Say whether the server has ended, with all its panes; another may have taken its place."""
        if isinstance(looked, Missed):
            return looked.reason is Miss.NO_SERVER
        return self._world.process not in (None, looked.capture.topology.process)

    def _look(self) -> Looked | Missed:
        world = self._world
        timeout = world.around.config.tmux.timeout_seconds
        now = world.now()
        fresh = self._memory.is_fresh(world.server.socket, now)
        question = ask(world.server.socket, world.user, options=not fresh, timeout=timeout)
        return look([question], world.around, now, memory=self._memory)[0]
