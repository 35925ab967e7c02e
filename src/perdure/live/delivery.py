"""Which thought may take the place of which, and what is told of it. An older one never replaces a newer, whatever order
they arrive in."""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from perdure.model.event import Event, EventKind
from perdure.model.run import Run
from perdure.model.thought import Delivery, Thought, ThoughtSource, ThoughtState

#: What a thought that has nothing to say may say; the last real one says more.
_NOTHING = frozenset({"sleeping", "sleeping."})
#: Those who may say themselves that the objective is another.
_VOICES = (ThoughtSource.MODEL, ThoughtSource.COMMAND)


def accepts(before: Delivery, incoming: Delivery) -> bool:
    """Return whether a thought may follow the one that was last taken.

    One without a number only as long as no stream has been taken from. One with a number but no stream always. The same
    stream must have gone on. Another stream must be at its beginning: then its sender was started anew; otherwise it
    comes too late.
    """
    if incoming.seq <= 0:
        return before.stream is None
    if incoming.stream is None or before.stream is None:
        return True
    return incoming.seq > before.seq if incoming.stream == before.stream else incoming.seq == 1


def merged(before: Thought | None, incoming: Thought) -> Thought:
    """Return what is to be kept after a thought arrived: `before` itself when it came too late.

    When the objective last changed stays known until it changes again, and a thought that only says that the run sleeps
    keeps the last words that said more.
    """
    if before is None:
        return incoming if not _is_nothing(incoming) else structs.replace(incoming, text=None)
    if not accepts(before.delivery, incoming.delivery):
        return before
    changed_at = incoming.objective_changed_at or before.objective_changed_at
    taken: Thought = structs.replace(incoming, objective_changed_at=changed_at)
    if _is_nothing(incoming):
        return structs.replace(taken, text=before.text, source=ThoughtSource.CARRIED)
    return taken


def unstored(before: Thought | None, incoming: Thought) -> Thought:
    """Return what is published of a thought that could not be stored.

    It is marked, and has the delivery of the one that is stored: the same thought may come again.
    """
    return structs.replace(incoming, unstored=True, delivery=before.delivery if before else Delivery())


def told(run: Run, thought: Thought, before: Thought | None, now: datetime) -> Event | None:
    """Return what is told of a thought, None when it says nothing that the one before did not.

    Without a transcript all that is known of an objective is that the screen is another: nobody is told of that.
    """
    changed = thought.objective_changed_at != (before.objective_changed_at if before is not None else None)
    changed = changed and (thought.objective is not None or thought.source in _VOICES)
    data = {
        "thought": thought.text,
        "objective": thought.objective,
        "objective_changed": changed,
        "objective_changed_at": thought.objective_changed_at,
        "state": thought.state,
        "source": thought.source,
        "rest": thought.rest,
        "commit_candidate": thought.commit_candidate,
        "cues": list(thought.cues),
    }
    if thought.unstored:
        data["unstored"] = True
    if before is not None and not changed and _words(thought) == _words(before):
        return None
    return Event(kind=EventKind.THOUGHT, at=now, run=run.id, server=run.server.key, data=data)


def _words(thought: Thought) -> object:
    sleeps = thought.state is ThoughtState.SLEEPING
    return (thought.text, thought.objective, thought.rest, thought.commit_candidate, thought.cues, sleeps)


def _is_nothing(thought: Thought) -> bool:
    return (thought.text or "").strip().lower() in _NOTHING
