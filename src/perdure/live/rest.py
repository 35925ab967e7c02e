"""How awake a run is. `sleeping` always means that the transcript says it waits for a person, never that it is old."""

from __future__ import annotations

from datetime import datetime, timedelta

from perdure.model.run import RunState
from perdure.model.thought import Rest, ThoughtState

#: How long nothing may have happened before a run is drowsy.
DROWSY_AFTER = timedelta(seconds=30)

_OF_THOUGHTS = {
    ThoughtState.ACTIVE: Rest.ACTIVE,
    ThoughtState.HOLDING: Rest.DROWSY,
    ThoughtState.SLEEPING: Rest.SLEEPING,
}


def rest_of(state: RunState, thought: ThoughtState) -> Rest:
    """Return how awake a run is that nobody looks at: one that is only remembered, or has just come back."""
    return _awake(state) or _OF_THOUGHTS[thought]


def rest_by_age(state: RunState, last_activity_at: datetime | None, now: datetime) -> Rest:
    """Return how awake a run is by when something last happened; never `sleeping`, however long ago that was.

    A time that is still to come is a clock that was set: the run is awake.
    """
    if (known := _awake(state)) is not None:
        return known
    if last_activity_at is None:
        return rest_of(state, ThoughtState.HOLDING)
    return Rest.DROWSY if now - last_activity_at >= DROWSY_AFTER else Rest.ACTIVE


def _awake(state: RunState) -> Rest | None:
    """What follows from the state alone. A state that is not known is no sign of life."""
    if state is RunState.EXITED:
        return Rest.DEEP_SLEEP
    return None if state in (RunState.IDLE, RunState.UNKNOWN) else Rest.ACTIVE
