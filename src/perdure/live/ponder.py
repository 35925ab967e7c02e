"""What every run is thinking: derived here and now, and put better by a model or a command when one is configured.

For the daemon's worker thread. For a run that went quiet, and every fifteen seconds while it is busy:

    thought = ponder.thought(run, lines, now)          # None: nothing new
    for id, better in ponder.poll(runs.get, now): …    # what was answered since

A thought is stored with `delivery.merged(run.thought, thought)`; when that fails, `delivery.unstored` is published, and the
same thought comes again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from msgspec import structs

from perdure.agents import Roster
from perdure.live.cadence import Cadence
from perdure.live.hear import Ears, Heard
from perdure.live.outlived import cleared
from perdure.live.question import Answer, Question, question_of
from perdure.live.rest import rest_by_age
from perdure.live.think import carried_over, is_news, thought_of
from perdure.live.words import same
from perdure.model.config import ThoughtsConfig
from perdure.model.run import Run
from perdure.model.thought import Delivery, Thought, ThoughtState
from perdure.ports import HostView

_REMEMBERED = 3


class Voice(Protocol):
    """Somebody who puts thoughts into words, and takes their time."""

    #: Why the last question has no answer, in a sentence without secrets; None when it has one.
    trouble: str | None

    def ask(self, question: Question, now: datetime) -> bool:
        """Ask without waiting; return whether it was asked."""

    def answers(self, now: datetime) -> list[Answer]:
        """Return what was answered since the last time."""

    def close(self) -> None:
        """Ask nothing more."""


def voice_of(config: ThoughtsConfig, environ: Mapping[str, str]) -> Voice | None:
    """Return who is configured to put thoughts into words, None when nobody is."""
    if not config.enabled or config.source == "derived":
        return None
    if config.source == "model":
        from perdure.live.ask_model import ModelVoice  # brings urllib

        return ModelVoice(config, environ)
    from perdure.live.ask_command import CommandVoice

    return CommandVoice(config, environ)


class Ponder:
    """The thoughts of all runs. Nothing in it waits for anybody but the disk and git."""

    def __init__(
        self,
        config: ThoughtsConfig,
        view_of: Callable[[Run], HostView | None],
        roster: Roster,
        *,
        stream: str,
        voice: Voice | None = None,
    ) -> None:
        """`stream` is a name that no other start of the daemon has had."""
        self._config = config
        self._stream = stream
        self._voice = voice
        self._cadence = Cadence(*config.cadence)
        self._topics: dict[str, str] = {}
        self._said: dict[str, deque[str]] = {}
        #: Whom that was said of.
        self._whom: dict[str, object] = {}
        #: Reads what thoughts are made of; the last skill and the colours of a run are to be had there as well.
        self.ears = Ears(view_of, roster)

    @property
    def trouble(self) -> str | None:
        """Why a model or a command does not answer, in a sentence without secrets; None when it does, or nobody is asked."""
        return self._voice.trouble if self._voice else None

    def thought(self, run: Run, lines: Sequence[str], now: datetime, *, quickly: bool = False) -> Thought | None:
        """Return what a run is doing, None when that is what `run.thought` says already. `lines` are on its screen.

        `quickly` is for those others wait for: see `Ears.hear`.
        """
        before = run.thought
        if not self._config.enabled:
            nothing = cleared(now, before, rest_by_age(run.status.state, run.last_activity_at, now))
            return self._delivered(nothing, before) if before and (before.text or before.cues) else None
        heard = self.ears.hear(run, now, quickly=quickly)
        thought = carried_over(thought_of(run, heard.story, heard.git, now, before, lines=lines), before)
        self._ask(run, thought, heard, lines, now)
        return self._delivered(thought, before) if is_news(thought, before) else None

    def poll(self, run_of: Callable[[str], Run | None], now: datetime) -> list[tuple[str, Thought]]:
        """Return the runs, by id, for which better words were found; a run that has turned to something else is not one."""
        found = []
        for answer in self._voice.answers(now) if self._voice else ():
            run = run_of(answer.run)
            before = run.thought if run is not None and not run.is_over else None
            if before is None or before.fingerprint != answer.fingerprint or before.state is ThoughtState.SLEEPING:
                continue
            if same(answer.text, before.text):
                continue
            self._said.setdefault(answer.run, deque(maxlen=_REMEMBERED)).append(answer.text)
            changed_at = now if answer.objective_changed else before.objective_changed_at
            better = structs.replace(
                before, at=now, text=answer.text, source=answer.source, objective_changed_at=changed_at, unstored=False
            )
            found.append((answer.run, self._delivered(better, before)))
        return found

    def forget(self, run: str) -> None:
        """Let go of what is kept of a run."""
        self.ears.forget(run)
        self._cadence.forget(run)
        self._topics.pop(run, None)
        self._said.pop(run, None)
        self._whom.pop(run, None)

    def close(self) -> None:
        """Let go of whoever is asked."""
        if self._voice is not None:
            self._voice.close()

    def _ask(self, run: Run, thought: Thought, heard: Heard, lines: Sequence[str], now: datetime) -> None:
        if self._voice is None or thought.state is ThoughtState.SLEEPING or thought.fingerprint is None:
            return
        if not self._cadence.is_due(run.id, thought.objective_changed_at, now):
            return
        whom = run.occupant and (run.occupant.agent, run.occupant.conversation)
        if self._whom.get(run.id) != whom:
            self._whom[run.id] = whom
            self._said.pop(run.id, None)
        question = question_of(run, thought, heard, lines, tuple(self._said.get(run.id, ())))
        # The same question would get the same answer, for the same money.
        if question is None or self._topics.get(run.id) == question.topic:
            return
        if self._voice.ask(question, now):
            self._topics[run.id] = question.topic
            self._cadence.asked(run.id, now)

    def _delivered(self, thought: Thought, before: Thought | None) -> Thought:
        """With the next number behind what is stored: one that was not stored comes again under the same number."""
        last = before.delivery if before else Delivery()
        seq = last.seq + 1 if last.stream == self._stream else 1
        return structs.replace(thought, delivery=Delivery(stream=self._stream, seq=seq))
