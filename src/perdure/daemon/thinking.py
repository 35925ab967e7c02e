"""When runs are thought about, and what becomes of the thoughts."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime

from perdure.agents import roster
from perdure.daemon.world import World
from perdure.host.users import user_by_uid
from perdure.live.delivery import merged, told, unstored
from perdure.live.ponder import Ponder, voice_of
from perdure.live.supervise import Supervisor
from perdure.model.event import StoredEvent
from perdure.model.observation import Answered
from perdure.model.run import Run, RunState, Status
from perdure.model.thought import Rest, Thought
from perdure.model.user import User
from perdure.ports import HostView

#: How long after it last did something a run is thought about, in seconds …
QUIET = 1.0
#: … and how often while it goes on.
BUSY_EVERY = 15.0
#: When one that does nothing is seen to be drowsy; a little after it is.
DROWSY_AFTER = 30.5
#: How many are thought about the moment their states change: whoever waits to hear of one does not wait for a crowd.
AT_ONCE = 8
#: How often it is seen whether somebody who was asked has answered.
ANSWERS_EVERY = 1.0

log = logging.getLogger(__name__)


class Thinking:
    """The thoughts of all runs, in the thread of the rounds."""

    def __init__(self, world: World, supervisor: Supervisor, lines_of: Callable[[str], Sequence[str]]) -> None:
        self.supervisor = supervisor
        self._lines_of = lines_of
        #: When a run is to be thought about, and since when it has been stirring.
        self._due: dict[str, float] = {}
        self._stirring: dict[str, float] = {}
        self._thought_of: set[str] = set()
        #: The state in which each was last thought about at once: writing it down may take several tries.
        self._kept_up: dict[str, Status] = {}
        self._asks = False
        self._answers_at = 0.0
        #: Events of thoughts that are not recorded yet, with what was thought before.
        self._before: dict[str, Thought | None] = {}
        self._begin(world)

    def _begin(self, world: World) -> None:
        self._world = world
        voice = voice_of(world.config.thoughts, world.environ)
        self._asks = voice is not None
        self._ponder = Ponder(
            world.config.thoughts, self._view_of, roster(world.config.agents), stream=os.urandom(8).hex(), voice=voice
        )

    def reload(self, world: World) -> None:
        """Go on with another configuration."""
        self._ponder.close()
        self._begin(world)

    def close(self) -> None:
        """Ask nobody any more."""
        self._ponder.close()

    def stirred(self, run: str, at: float) -> None:
        """A run did something: it is thought about once it is quiet, and every so often until then."""
        since = self._stirring.setdefault(run, at)
        self._due[run] = min(at + QUIET, since + BUSY_EVERY)

    def next(self) -> float | None:
        """When there is something to think about next."""
        times = list(self._due.values())
        if self._asks:
            times.append(self._answers_at)
        return min(times, default=None)

    def keep_up(self, changed: Iterable[str | None]) -> None:
        """Think at once about those whose states have changed, so that both are told together.

        Of those who are too many for that nothing is said until it is their turn.
        """
        now, left = self._world.now(), AT_ONCE
        for id in changed:
            run = None if id is None else self._thinkable(id)
            if run is None or self._kept_up.get(run.id) == run.status or not left:
                continue
            left -= 1
            self._kept_up[run.id] = run.status
            self._try(run, now, quickly=True)

    def think(self, at: float) -> None:
        """Think about everyone whose turn it is."""
        now = self._world.now()
        for id in [id for id, due in self._due.items() if due <= at]:
            del self._due[id]
            run = self._thinkable(id)
            if run is None:
                continue
            self._stirring.pop(id, None)
            self._try(run, now)
            again = self._again_in(id)
            if again is not None:
                self._due[id] = at + again
        if self._asks and at >= self._answers_at:
            self._answers_at = at + ANSWERS_EVERY
            for id, thought in self._ponder.poll(self.supervisor.get, now):
                run = self.supervisor.get(id)
                if run is not None:
                    self._take(run, thought, now)

    def _thinkable(self, id: str) -> Run | None:
        run = self.supervisor.get(id)
        return None if run is None or run.is_over or run.agent is None else run

    def _try(self, run: Run, now: datetime, *, quickly: bool = False) -> None:
        self._thought_of.add(run.id)
        try:
            self._about(run, now, quickly=quickly)
        except Exception:
            # A transcript that breaks whoever reads it costs its run a thought, and nobody anything else.
            log.exception("nothing can be thought about %s", run.id)

    def _again_in(self, id: str) -> float | None:
        """Return after how long a run is thought about again although nothing has happened: it grows drowsy, once."""
        run = self.supervisor.get(id)
        if run is None or run.thought is None:
            return None
        if run.status.state is RunState.BUSY:
            return BUSY_EVERY
        return DROWSY_AFTER if run.thought.rest is Rest.ACTIVE and run.status.state is RunState.IDLE else None

    def forget(self, keep: Callable[[str], bool]) -> None:
        """Let go of runs that are over."""
        for id in [id for id in self._thought_of if not keep(id)]:
            self._thought_of.discard(id)
            self._stirring.pop(id, None)
            self._due.pop(id, None)
            self._kept_up.pop(id, None)
            self._ponder.forget(id)

    def recorded(self) -> None:
        """What was thought is written down."""
        self._before.clear()

    def not_recorded(self, at: float) -> tuple[StoredEvent, ...]:
        """Return what could not be written down as it is published all the same, marked; it is thought again later."""
        found = []
        for id, before in self._before.items():
            run = self.supervisor.get(id)
            if run is not None and run.thought is not None:
                event = told(run, unstored(before, run.thought), before, self._world.now())
                found += [StoredEvent(seq=0, event=event)] if event is not None else []
            self.supervisor.unthink(id, before)
            self._due[id] = at + BUSY_EVERY
        self._before.clear()
        return tuple(found)

    def _about(self, run: Run, now: datetime, *, quickly: bool) -> None:
        theme = self._ponder.ears.theme(run, now)
        self.supervisor.paint(run.id, theme.root if theme is not None else None)
        story = self._ponder.ears.hear(run, now, quickly=True).story
        if story.skill is not None:
            self.supervisor.learn_skill(run.id, story.skill, now)
        if story.answered_at is not None and story.final is not False:
            self.supervisor.observe(run.id, Answered(at=story.answered_at), now)
            run = self.supervisor.get(run.id) or run
        thought = self._ponder.thought(run, self._lines_of(run.id), now, quickly=quickly)
        if thought is not None:
            self._take(run, thought, now)

    def _take(self, run: Run, thought: Thought, now: datetime) -> None:
        kept = merged(run.thought, thought)
        if kept is run.thought:
            return
        self._before.setdefault(run.id, run.thought)
        self.supervisor.think(run.id, kept, told(run, kept, run.thought, now))

    def _view_of(self, run: Run) -> HostView | None:
        me = self._world.me
        user = me if run.server.uid == me.uid else user_by_uid(run.server.uid)
        return self._world.around.view_of(user or User(run.server.user, run.server.uid, run.server.uid, "/"))
