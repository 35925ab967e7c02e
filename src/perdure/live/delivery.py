"""Which thought may take the place of which: an older one never replaces a newer, whatever order they arrive in."""

from __future__ import annotations

from msgspec import structs

from perdure.model.thought import Delivery, Thought, ThoughtSource

#: What a thought that has nothing to say may say; the last real one says more.
_NOTHING = frozenset({"sleeping", "sleeping."})


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


def _is_nothing(thought: Thought) -> bool:
    return (thought.text or "").strip().lower() in _NOTHING
