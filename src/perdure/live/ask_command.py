"""Asking a command for lines about runs: one JSON line to it, one back, in a thread of its own.

To it: {"type":"sync","id":"7","now":…,"config":{…},"sessions":[{…},…]}
Back:  {"type":"sync_result","id":"7","stream_instance_id":"…","updates":[{"session_id":"r1","thought":"…",…},…]}

Its words and whether the objective has changed are taken from it. How awake a run is and what there is to do about it follow
from the transcript alone, whatever it says.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec
from msgspec import Struct

from perdure.errors import PerdureError
from perdure.host.dialogue import Dialogue
from perdure.live.cadence import Backoff
from perdure.live.delivery import accepts
from perdure.live.question import Answer, Question, answer_line
from perdure.model.config import ThoughtsConfig
from perdure.model.decoding import decoder_of
from perdure.model.thought import Delivery, ThoughtSource

_PATIENCE = 30.0
_ANSWERS = frozenset({"sync_result", "sync_response", "sync"})
#: After so many questions without it, it is forgotten how far a run's updates had come.
_ABSENT = 5


class Update(Struct, frozen=True, kw_only=True):
    """What a command says of one run. Whatever else it says is left unread."""

    session_id: str
    thought: str | None = None
    stream_instance_id: str | None = None
    emission_seq: int | None = None
    objective_changed: bool = False


class _Reply(Struct, frozen=True, kw_only=True):
    type: str
    id: str | int | None = None
    request_id: str | int | None = None
    stream_instance_id: str | None = None
    #: Each is read by itself: one that is wrong costs only itself.
    updates: tuple[msgspec.Raw, ...] = ()


class _Said(Struct, frozen=True, kw_only=True):
    updates: tuple[tuple[Update, Delivery], ...] = ()
    trouble: str | None = None


class CommandVoice:
    """`Voice` of a command that is kept running, and started again when it has ended or lost its place."""

    def __init__(
        self, config: ThoughtsConfig, environ: Mapping[str, str], *, cwd: str = "/", patience: float = _PATIENCE
    ) -> None:
        self._config = config
        self._environ = environ
        self._cwd = cwd
        self._patience = patience
        self._backoff = Backoff(0.5, 60)
        self._staged: dict[str, Question] = {}
        self._asked: dict[str, Question] = {}
        self._taken: dict[str, Delivery] = {}
        self._absent: dict[str, int] = {}
        self._waiting: queue.SimpleQueue[tuple[str, bytes] | None] = queue.SimpleQueue()
        self._said: queue.SimpleQueue[_Said] = queue.SimpleQueue()
        self._dialogue: Dialogue | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._thread: threading.Thread | None = None
        self._number = 0
        #: Why the last question has no answer; None when it has one.
        self.trouble: str | None = None

    def ask(self, question: Question, now: datetime) -> bool:
        """Note a question; all that are noted are asked together with the next `answers`."""
        self._staged[question.run] = question
        return True

    def answers(self, now: datetime) -> list[Answer]:
        """Return what was answered since the last time, and ask what was noted, one batch at a time."""
        found: list[Answer] = []
        while not self._said.empty():
            said = self._said.get()
            self.trouble = said.trouble
            if said.trouble is None:
                self._backoff.succeeded()
                found += self._accepted(said.updates)
            else:
                self._backoff.failed(now)
            self._asked = {}
        if self._staged and not self._asked and not self._closed and self._backoff.is_over(now):
            self._send(now)
        return found

    def close(self) -> None:
        """End the command."""
        with self._lock:
            self._closed = True
            if self._dialogue is not None:
                self._dialogue.stop()
        self._waiting.put(None)
        if self._thread is not None:
            self._thread.join()

    def _send(self, now: datetime) -> None:
        self._asked, self._staged = self._staged, {}
        self._number += 1
        hot, warm, cold = (round(1000 * each) for each in self._config.cadence)
        config = {"enabled": True, "model": self._config.model, "backend": "command", "cadence_hot_ms": hot}
        config |= {"cadence_warm_ms": warm, "cadence_cold_ms": cold, "agent_prompt": "", "terminal_prompt": ""}
        sessions = [question.session for question in self._asked.values()]
        line = msgspec.json.encode(
            {"type": "sync", "id": str(self._number), "now": now, "config": config, "sessions": sessions}
        )
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="thoughts", daemon=True)
            self._thread.start()
        self._waiting.put((str(self._number), line))

    def _accepted(self, updates: Sequence[tuple[Update, Delivery]]) -> list[Answer]:
        found = []
        for update, delivery in updates:
            question = self._asked.get(update.session_id)
            taken = self._taken.get(update.session_id, Delivery())
            if question is None or not accepts(taken, delivery):
                continue
            self._taken[update.session_id] = delivery
            text = answer_line(update.thought)
            if text is not None and text.lower().rstrip(".") != "sleeping":
                found.append(
                    Answer(
                        run=question.run,
                        fingerprint=question.fingerprint,
                        text=text,
                        source=ThoughtSource.COMMAND,
                        objective_changed=update.objective_changed,
                    )
                )
        self._age()
        return found

    def _age(self) -> None:
        for run in list(self._taken):
            self._absent[run] = 0 if run in self._asked else self._absent.get(run, 0) + 1
            if self._absent[run] >= _ABSENT:
                del self._taken[run], self._absent[run]

    # In the thread

    def _work(self) -> None:
        while (waiting := self._waiting.get()) is not None and not self._closed:
            try:
                self._said.put(_Said(updates=self._exchange(*waiting)))
            except PerdureError as error:
                self._end()
                self._said.put(_Said(trouble=error.message))
            except Exception:
                self._end()
                self._said.put(_Said(trouble=f"{self._config.command[0]} answered what cannot be read."))
        self._end()

    def _exchange(self, id: str, line: bytes) -> tuple[tuple[Update, Delivery], ...]:
        dialogue = self._started()
        dialogue.tell(line, self._patience)
        reply = self._heard(dialogue)
        if reply.type == "hello":
            reply = self._heard(dialogue)
        if reply.type not in _ANSWERS or id not in (str(reply.id), str(reply.request_id)):
            # Whatever it answers next would be taken for the answer to something else.
            raise PerdureError(f"{self._config.command[0]} answered something else than it was asked.")
        return tuple(_updates(reply))

    def _heard(self, dialogue: Dialogue) -> _Reply:
        return decoder_of(_Reply).decode(dialogue.hear(self._patience))

    def _started(self) -> Dialogue:
        with self._lock:
            if self._closed:
                raise PerdureError("Nothing is asked any more.")
            if self._dialogue is None:
                self._dialogue = Dialogue(self._config.command, environ=self._environ, cwd=self._cwd)
            return self._dialogue

    def _end(self) -> None:
        with self._lock:
            ended, self._dialogue = self._dialogue, None
        if ended is not None:
            ended.close()


def _updates(reply: _Reply) -> list[tuple[Update, Delivery]]:
    found: list[tuple[Update, Delivery]] = []
    for raw in reply.updates:
        try:
            update = decoder_of(Update).decode(raw)
        except msgspec.DecodeError:
            continue
        stream = update.stream_instance_id or reply.stream_instance_id
        found.append((update, Delivery(stream=stream, seq=max(0, update.emission_seq or 0))))
    return found
