"""What is left of a thought when its run comes into another state, or is about something else. Pure.

A thought is thought now and then; a state changes at once. Words that were found for the state before would contradict the
one after, so they go with it, in the same moment, and those that belong to the new one follow (`Thinking`).
"""

from __future__ import annotations

from datetime import datetime

from msgspec import structs

from perdure.live.rest import rest_of
from perdure.model.run import RunState, Status
from perdure.model.thought import Cue, Rest, Thought, ThoughtSource, ThoughtState


def outlived(thought: Thought | None, before: Status, after: Status, now: datetime) -> Thought | None:
    """Return what is still true of a thought of `before` now that the run is in `after`.

    All of it when the run waits as it did, noticed or not. Otherwise what it was asked for, what is known of its files, and
    which thought was last taken.
    """
    if thought is None or (before.waits and after.waits):
        return thought
    # Whoever has ended has nothing left to be done about.
    cues = () if after.state is RunState.EXITED else thought.cues
    cues = tuple(cue for cue in cues if cue is not Cue.AWAITING_USER)
    return structs.replace(
        thought,
        at=now,
        text=None,
        state=ThoughtState.HOLDING,
        source=ThoughtSource.CARRIED,
        rest=rest_of(after.state, ThoughtState.HOLDING),
        commit_candidate=Cue.COMMIT_READY in cues,
        cues=cues,
    )


def cleared(now: datetime, before: Thought | None, rest: Rest) -> Thought:
    """Return a thought that says nothing, for a run of which nothing is to be said any more."""
    if before is None:
        return Thought(at=now, rest=rest)
    return Thought(at=now, rest=rest, objective_changed_at=before.objective_changed_at, delivery=before.delivery)
